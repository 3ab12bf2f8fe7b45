ALTER TABLE "delivery" ADD COLUMN "last_duration_ms" integer;--> statement-breakpoint
ALTER TABLE "pending" ADD COLUMN "last_duration_ms" integer;