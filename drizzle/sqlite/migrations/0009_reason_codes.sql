ALTER TABLE `attempt` ADD `error_code` text;--> statement-breakpoint
ALTER TABLE `delivery` ADD `error_code` text;--> statement-breakpoint
ALTER TABLE `delivery` ADD `status_code` integer;