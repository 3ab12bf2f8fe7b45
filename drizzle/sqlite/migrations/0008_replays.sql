ALTER TABLE `delivery` ADD `attempts_forgotten` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `webhook` ADD `used` integer;--> statement-breakpoint
CREATE INDEX `webhook_by_url` ON `webhook` (`tenant_key`,`url`);--> statement-breakpoint
CREATE INDEX `webhook_by_id` ON `webhook` (`tenant_key`,`id`);--> statement-breakpoint
CREATE INDEX `webhook_to_judge` ON `webhook` (`tenant_key`,`key`) WHERE "webhook"."removed_at" is not null and "webhook"."used" is null;--> statement-breakpoint
CREATE INDEX `replay_of_day` ON `replay` (`tenant_key`,`created_at`) WHERE "replay"."kind" in ('timeline', 'all', 'failed');