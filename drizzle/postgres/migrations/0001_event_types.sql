ALTER TABLE "delivery" ADD COLUMN "type_hash" bigint;--> statement-breakpoint
ALTER TABLE "event" ADD COLUMN "type" text;--> statement-breakpoint
ALTER TABLE "pending" ADD COLUMN "type_hash" bigint;--> statement-breakpoint
DROP INDEX "delivery_by_tenant";--> statement-breakpoint
CREATE UNIQUE INDEX "delivery_by_tenant" ON "delivery" USING btree ("tenant_key","event_seq" DESC NULLS FIRST,"key") INCLUDE ("state","webhook_key","type_hash");
