ALTER TABLE "tenant" ADD COLUMN "own_events_per_month" bigint;--> statement-breakpoint
ALTER TABLE "tenant" ADD COLUMN "own_webhooks" bigint;