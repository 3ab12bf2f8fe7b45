ALTER TABLE `webhook` ADD `used` integer;--> statement-breakpoint
CREATE INDEX `webhook_by_url` ON `webhook` (`tenant_key`,`url`);--> statement-breakpoint
CREATE INDEX `webhook_by_id` ON `webhook` (`tenant_key`,`id`);--> statement-breakpoint
CREATE INDEX `webhook_to_judge` ON `webhook` (`tenant_key`,`key`) WHERE "webhook"."removed_at" is not null and "webhook"."used" is null;