CREATE TABLE `audit` (
	`key` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`tenant_id` text NOT NULL,
	`action` text NOT NULL,
	`actor` text NOT NULL,
	`via` text,
	`address` text,
	`times` integer NOT NULL,
	`at` integer NOT NULL,
	`last_at` integer NOT NULL,
	`detail` text
);
--> statement-breakpoint
CREATE INDEX `audit_by_tenant` ON `audit` (`tenant_id`,`at`,`key`);--> statement-breakpoint
CREATE INDEX `audit_by_time` ON `audit` (`at`,`key`);--> statement-breakpoint
CREATE INDEX `audit_of_strangers` ON `audit` (`tenant_id`,`at`,`key`) WHERE "audit"."actor" = 'stranger';