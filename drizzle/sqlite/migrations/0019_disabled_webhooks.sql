ALTER TABLE `webhook` ADD `failing_since` integer;--> statement-breakpoint
ALTER TABLE `webhook` ADD `gone_in_a_row` integer;--> statement-breakpoint
ALTER TABLE `webhook` ADD `told_at` integer;--> statement-breakpoint
ALTER TABLE `webhook` ADD `warned_at` integer;--> statement-breakpoint
ALTER TABLE `webhook` ADD `disabled_at` integer;--> statement-breakpoint
ALTER TABLE `webhook` ADD `disabled_reason` text;--> statement-breakpoint
CREATE INDEX `webhook_disabled_to_drain` ON `webhook` (`disabled_at`) WHERE "webhook"."disabled_at" is not null and "webhook"."removed_at" is null and "webhook"."drained" = 0;--> statement-breakpoint
CREATE INDEX `webhook_failing` ON `webhook` (`failing_since`) WHERE "webhook"."failing_since" is not null;