ALTER TABLE "tenant" ADD COLUMN "own_retention_days" integer;--> statement-breakpoint
ALTER TABLE "tenant" ADD COLUMN "own_payload_days" integer;--> statement-breakpoint
ALTER TABLE "tenant" ADD COLUMN "own_storage_bytes" bigint;--> statement-breakpoint
ALTER TABLE "tenant" ADD COLUMN "storage_full_at" bigint;--> statement-breakpoint
CREATE INDEX "tenant_to_keep_otherwise" ON "tenant" USING btree ("key") WHERE "tenant"."own_retention_days" is not null or "tenant"."own_payload_days" is not null or "tenant"."own_storage_bytes" is not null;