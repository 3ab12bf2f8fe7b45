ALTER TABLE `tenant` ADD `own_events_per_month` integer;--> statement-breakpoint
ALTER TABLE `tenant` ADD `own_webhooks` integer;