CREATE TABLE `mail` (
	`kind` text NOT NULL,
	`recipient` text NOT NULL,
	`facts` text NOT NULL,
	`left_out` integer NOT NULL,
	`queued_at` integer NOT NULL,
	`due_at` integer,
	`attempts` integer NOT NULL,
	`sent_at` integer,
	PRIMARY KEY(`kind`, `recipient`)
);
--> statement-breakpoint
CREATE INDEX `mail_due` ON `mail` (`due_at`) WHERE "mail"."due_at" is not null;--> statement-breakpoint
CREATE INDEX `mail_to_prune` ON `mail` (`sent_at`) WHERE "mail"."due_at" is null;--> statement-breakpoint
CREATE TABLE `password_reset` (
	`tenant_key` integer PRIMARY KEY NOT NULL,
	`token_hash` blob NOT NULL,
	`recipient` text NOT NULL,
	`session_version` integer NOT NULL,
	`expires_at` integer NOT NULL,
	FOREIGN KEY (`tenant_key`) REFERENCES `tenant`(`key`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE INDEX `password_reset_by_token` ON `password_reset` (`token_hash`);--> statement-breakpoint
CREATE INDEX `password_reset_to_prune` ON `password_reset` (`expires_at`);