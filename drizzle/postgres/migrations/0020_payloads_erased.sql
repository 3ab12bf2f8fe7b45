ALTER TABLE "replay" ADD COLUMN "payloads_erased" bigint DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "tenant" ADD COLUMN "payloads_erased_to" bigint;