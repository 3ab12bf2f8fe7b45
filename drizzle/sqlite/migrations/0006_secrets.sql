CREATE TABLE `vault_check` (
	`id` integer PRIMARY KEY NOT NULL,
	`sealed` blob NOT NULL,
	CONSTRAINT "vault_check_is_one_row" CHECK("vault_check"."id" = 1)
);
--> statement-breakpoint
ALTER TABLE `event` ADD `checksum` integer;