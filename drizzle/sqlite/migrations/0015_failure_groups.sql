CREATE TABLE `failure_count` (
	`tenant_key` integer NOT NULL,
	`failure_key` integer NOT NULL,
	`hour` integer NOT NULL,
	`waiting` integer NOT NULL,
	`failed` integer NOT NULL,
	`last_failed_at` integer NOT NULL,
	PRIMARY KEY(`tenant_key`, `failure_key`, `hour`),
	FOREIGN KEY (`tenant_key`) REFERENCES `tenant`(`key`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE TABLE `failure_group` (
	`tenant_key` integer NOT NULL,
	`key` integer NOT NULL,
	`webhook_key` integer,
	`code` text NOT NULL,
	`status` integer,
	`line` text NOT NULL,
	PRIMARY KEY(`tenant_key`, `key`),
	FOREIGN KEY (`tenant_key`) REFERENCES `tenant`(`key`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
ALTER TABLE `delivery` ADD `failure_key` integer;--> statement-breakpoint
CREATE INDEX `delivery_by_failure` ON `delivery` (`tenant_key`,`failure_key`,"event_seq" desc,`key`,`type_hash`) WHERE "delivery"."failure_key" is not null;