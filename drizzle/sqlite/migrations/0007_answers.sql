CREATE TABLE `replay_label` (
	`key` integer PRIMARY KEY NOT NULL,
	`tenant_key` integer NOT NULL,
	`hash` blob NOT NULL,
	`text` text NOT NULL,
	FOREIGN KEY (`tenant_key`) REFERENCES `tenant`(`key`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE UNIQUE INDEX `replay_label_once` ON `replay_label` (`tenant_key`,`hash`);--> statement-breakpoint
ALTER TABLE `replay` ADD `label_key` integer;