ALTER TABLE `delivery` DROP CONSTRAINT `delivery_state`;--> statement-breakpoint
ALTER TABLE `delivery` ADD CONSTRAINT `delivery_state` CHECK("state" in (0, 1, 2, 3));--> statement-breakpoint
ALTER TABLE `delivery` DROP CONSTRAINT `delivery_without_webhook_is_failed`;--> statement-breakpoint
ALTER TABLE `delivery` ADD CONSTRAINT `delivery_without_webhook_has_ended` CHECK("webhook_key" is not null or "state" in (2, 3));--> statement-breakpoint
ALTER TABLE `tenant_usage` ADD `skipped` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `webhook` ADD `event_types` text;
