DROP INDEX `delivery_by_tenant`;--> statement-breakpoint
ALTER TABLE `delivery` ADD `type_hash` integer;--> statement-breakpoint
CREATE INDEX `delivery_by_tenant` ON `delivery` (`tenant_key`,"event_seq" desc,`key`,`webhook_key`,`type_hash`);--> statement-breakpoint
CREATE TABLE `__new_event` (
	`seq` integer PRIMARY KEY NOT NULL,
	`tenant_key` integer NOT NULL,
	`id_tail` blob NOT NULL,
	`type` text,
	`payload` blob NOT NULL,
	`checksum` integer
);
--> statement-breakpoint
INSERT INTO `__new_event`("seq", "tenant_key", "id_tail", "payload", "checksum") SELECT "seq", "tenant_key", "id_tail", "payload", "checksum" FROM `event`;--> statement-breakpoint
DROP TABLE `event`;--> statement-breakpoint
ALTER TABLE `__new_event` RENAME TO `event`;
