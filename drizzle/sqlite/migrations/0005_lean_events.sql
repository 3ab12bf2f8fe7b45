CREATE TABLE `__new_attempt` (
	`key` integer PRIMARY KEY NOT NULL,
	`tenant_key` integer NOT NULL,
	`event_seq` integer NOT NULL,
	`webhook_key` integer NOT NULL,
	`number` integer NOT NULL,
	`started_at` integer NOT NULL,
	`duration_ms` integer NOT NULL,
	`status_code` integer,
	`error` text,
	`response_body` blob,
	`replay_key` integer,
	FOREIGN KEY (`event_seq`) REFERENCES `event`(`seq`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
INSERT INTO `__new_attempt`("key", "tenant_key", "event_seq", "webhook_key", "number", "started_at", "duration_ms", "status_code", "error", "response_body", "replay_key") SELECT "key", "tenant_key", "event_seq", "webhook_key", "number", "started_at", "duration_ms", "status_code", "error", "response_body", "replay_key" FROM `attempt`;--> statement-breakpoint
DROP TABLE `attempt`;--> statement-breakpoint
ALTER TABLE `__new_attempt` RENAME TO `attempt`;--> statement-breakpoint
CREATE INDEX `attempt_by_event` ON `attempt` (`event_seq`);--> statement-breakpoint
CREATE TABLE `__new_delivery` (
	`key` integer PRIMARY KEY NOT NULL,
	`tenant_key` integer NOT NULL,
	`event_seq` integer NOT NULL,
	`webhook_key` integer,
	`state` integer NOT NULL,
	`run` integer NOT NULL,
	`attempts_in_run` integer NOT NULL,
	`attempts` integer NOT NULL,
	`next_attempt_at` integer,
	`last_attempt_at` integer,
	`finished_at` integer,
	`error_reason` text,
	`replay_key` integer,
	CONSTRAINT "delivery_state" CHECK("__new_delivery"."state" in (0, 1, 2)),
	CONSTRAINT "delivery_waits_for_a_time" CHECK(("__new_delivery"."state" = 0) = ("__new_delivery"."next_attempt_at" is not null)),
	CONSTRAINT "delivery_ends_at_a_time" CHECK(("__new_delivery"."state" = 0) = ("__new_delivery"."finished_at" is null)),
	CONSTRAINT "delivery_without_webhook_is_failed" CHECK("__new_delivery"."webhook_key" is not null or "__new_delivery"."state" = 2)
);
--> statement-breakpoint
INSERT INTO `__new_delivery`("key", "tenant_key", "event_seq", "webhook_key", "state", "run", "attempts_in_run", "attempts", "next_attempt_at", "last_attempt_at", "finished_at", "error_reason", "replay_key") SELECT "key", "tenant_key", "event_seq", "webhook_key", "state", "run", "attempts_in_run", "attempts", "next_attempt_at", "last_attempt_at", "finished_at", "error_reason", "replay_key" FROM `delivery`;--> statement-breakpoint
DROP TABLE `delivery`;--> statement-breakpoint
ALTER TABLE `__new_delivery` RENAME TO `delivery`;--> statement-breakpoint
CREATE INDEX `delivery_by_tenant` ON `delivery` (`tenant_key`,"event_seq" desc,`key`,`webhook_key`);--> statement-breakpoint
CREATE INDEX `delivery_by_state` ON `delivery` (`tenant_key`,`state`,"event_seq" desc);--> statement-breakpoint
CREATE INDEX `delivery_due` ON `delivery` (`webhook_key`,`next_attempt_at`) WHERE "delivery"."state" = 0;--> statement-breakpoint
CREATE TABLE `__new_event` (
	`seq` integer PRIMARY KEY NOT NULL,
	`tenant_key` integer NOT NULL,
	`id_tail` blob NOT NULL,
	`payload` blob NOT NULL
);
--> statement-breakpoint
-- Without names of columns SQLite copies whole pages.
INSERT INTO `__new_event` SELECT * FROM `event`;--> statement-breakpoint
DROP TABLE `event`;--> statement-breakpoint
ALTER TABLE `__new_event` RENAME TO `event`;