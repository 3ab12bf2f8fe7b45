CREATE TABLE `refused_events` (
	`tenant_key` integer NOT NULL,
	`month` integer NOT NULL,
	`reason` text NOT NULL,
	`events` integer NOT NULL,
	PRIMARY KEY(`tenant_key`, `month`, `reason`),
	FOREIGN KEY (`tenant_key`) REFERENCES `tenant`(`key`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE TABLE `webhook_stat` (
	`tenant_key` integer NOT NULL,
	`webhook_key` integer NOT NULL,
	`minute` integer NOT NULL,
	`delivered` integer NOT NULL,
	`failed` integer NOT NULL,
	`attempts` integer NOT NULL,
	`latency` text NOT NULL,
	PRIMARY KEY(`tenant_key`, `webhook_key`, `minute`),
	FOREIGN KEY (`tenant_key`) REFERENCES `tenant`(`key`) ON UPDATE no action ON DELETE no action
);
