ALTER TABLE "webhook" ADD COLUMN "paused" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "webhook" ADD COLUMN "rate_limit" integer;--> statement-breakpoint
ALTER TABLE "webhook" ADD COLUMN "max_concurrency" integer;