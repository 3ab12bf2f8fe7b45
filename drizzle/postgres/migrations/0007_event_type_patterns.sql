ALTER TABLE "delivery" DROP CONSTRAINT "delivery_without_webhook_is_failed";--> statement-breakpoint
ALTER TABLE "delivery" DROP CONSTRAINT "delivery_state";--> statement-breakpoint
ALTER TABLE "webhook" ADD COLUMN "event_types" text;--> statement-breakpoint
ALTER TABLE "usage" ADD COLUMN "skipped" bigint DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "delivery" ADD CONSTRAINT "delivery_without_webhook_has_ended" CHECK ("webhook_key" is not null or "state" in (2, 3)) NOT VALID;--> statement-breakpoint
ALTER TABLE "delivery" ADD CONSTRAINT "delivery_state" CHECK ("state" in (1, 2, 3)) NOT VALID;