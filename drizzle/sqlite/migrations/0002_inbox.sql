CREATE TABLE `inbox_delivery` (
	`key` integer PRIMARY KEY NOT NULL,
	`id` text NOT NULL,
	`tenant_key` integer NOT NULL,
	`received_at` integer NOT NULL,
	`event_id` text NOT NULL,
	`answered_status` integer,
	`is_test` integer NOT NULL,
	`headers` text NOT NULL,
	`body` blob NOT NULL,
	FOREIGN KEY (`tenant_key`) REFERENCES `tenant`(`key`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "inbox_delivery_status" CHECK("inbox_delivery"."answered_status" between 200 and 599)
);
--> statement-breakpoint
CREATE INDEX `inbox_delivery_by_tenant` ON `inbox_delivery` (`tenant_key`,`key`);--> statement-breakpoint
CREATE TABLE `inbox_setting` (
	`tenant_key` integer PRIMARY KEY NOT NULL,
	`status` integer NOT NULL,
	`delay_ms` integer NOT NULL,
	`silent` integer NOT NULL,
	FOREIGN KEY (`tenant_key`) REFERENCES `tenant`(`key`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "inbox_setting_status" CHECK("inbox_setting"."status" between 200 and 599),
	CONSTRAINT "inbox_setting_delay" CHECK("inbox_setting"."delay_ms" >= 0)
);
