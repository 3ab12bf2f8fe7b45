ALTER TABLE `webhook` ADD `paused` integer DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE `webhook` ADD `rate_limit` integer;--> statement-breakpoint
ALTER TABLE `webhook` ADD `max_concurrency` integer;