CREATE TABLE `api_key` (
	`key` integer PRIMARY KEY NOT NULL,
	`id` text NOT NULL,
	`tenant_key` integer NOT NULL,
	`hash` blob NOT NULL,
	`sealed` blob NOT NULL,
	`created_at` integer NOT NULL,
	`last_used_at` integer,
	`expires_at` integer,
	FOREIGN KEY (`tenant_key`) REFERENCES `tenant`(`key`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE UNIQUE INDEX `api_key_by_hash` ON `api_key` (`hash`);--> statement-breakpoint
CREATE INDEX `api_key_by_tenant` ON `api_key` (`tenant_key`);--> statement-breakpoint
CREATE TABLE `attempt` (
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
	FOREIGN KEY (`tenant_key`,`event_seq`) REFERENCES `event`(`tenant_key`,`seq`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE INDEX `attempt_by_event` ON `attempt` (`event_seq`);--> statement-breakpoint
CREATE TABLE `delivery` (
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
	FOREIGN KEY (`tenant_key`,`event_seq`) REFERENCES `event`(`tenant_key`,`seq`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "delivery_state" CHECK("delivery"."state" in (0, 1, 2)),
	CONSTRAINT "delivery_waits_for_a_time" CHECK(("delivery"."state" = 0) = ("delivery"."next_attempt_at" is not null)),
	CONSTRAINT "delivery_ends_at_a_time" CHECK(("delivery"."state" = 0) = ("delivery"."finished_at" is null)),
	CONSTRAINT "delivery_without_webhook_is_failed" CHECK("delivery"."webhook_key" is not null or "delivery"."state" = 2)
);
--> statement-breakpoint
CREATE INDEX `delivery_by_tenant` ON `delivery` (`tenant_key`,"event_seq" desc,`key`,`webhook_key`);--> statement-breakpoint
CREATE INDEX `delivery_by_state` ON `delivery` (`tenant_key`,`state`,"event_seq" desc);--> statement-breakpoint
CREATE INDEX `delivery_due` ON `delivery` (`webhook_key`,`next_attempt_at`) WHERE "delivery"."state" = 0;--> statement-breakpoint
CREATE TABLE `ended_session` (
	`id` text PRIMARY KEY NOT NULL,
	`expires_at` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `ended_session_by_expiry` ON `ended_session` (`expires_at`);--> statement-breakpoint
CREATE TABLE `event` (
	`seq` integer PRIMARY KEY NOT NULL,
	`tenant_key` integer NOT NULL,
	`id_tail` blob NOT NULL,
	`payload` blob NOT NULL,
	FOREIGN KEY (`tenant_key`) REFERENCES `tenant`(`key`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE UNIQUE INDEX `event_by_tenant` ON `event` (`tenant_key`,`seq`);--> statement-breakpoint
CREATE TABLE `idempotency` (
	`tenant_key` integer NOT NULL,
	`key` text NOT NULL,
	`fingerprint` blob NOT NULL,
	`event_ids` text NOT NULL,
	`created_at` integer NOT NULL,
	PRIMARY KEY(`tenant_key`, `key`),
	FOREIGN KEY (`tenant_key`) REFERENCES `tenant`(`key`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE INDEX `idempotency_by_time` ON `idempotency` (`created_at`);--> statement-breakpoint
CREATE TABLE `lane` (
	`id` integer PRIMARY KEY NOT NULL,
	`batch` integer NOT NULL,
	`last_event_seq` integer NOT NULL,
	CONSTRAINT "lane_is_one_row" CHECK("lane"."id" = 1)
);
--> statement-breakpoint
CREATE TABLE `login_address` (
	`tenant_key` integer NOT NULL,
	`address` text NOT NULL,
	`last_login_at` integer NOT NULL,
	PRIMARY KEY(`tenant_key`, `address`),
	FOREIGN KEY (`tenant_key`) REFERENCES `tenant`(`key`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE INDEX `login_address_by_time` ON `login_address` (`last_login_at`);--> statement-breakpoint
CREATE TABLE `replay` (
	`key` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`id` text NOT NULL,
	`tenant_key` integer NOT NULL,
	`kind` text NOT NULL,
	`label` text NOT NULL,
	`phase` text NOT NULL,
	`from_seq` integer NOT NULL,
	`to_seq` integer NOT NULL,
	`cursor_seq` integer NOT NULL,
	`selected` integer NOT NULL,
	`queued` integer DEFAULT 0 NOT NULL,
	`delivered` integer DEFAULT 0 NOT NULL,
	`failed` integer DEFAULT 0 NOT NULL,
	`superseded` integer DEFAULT 0 NOT NULL,
	`skipped` integer DEFAULT 0 NOT NULL,
	`created_at` integer NOT NULL,
	`completed_at` integer,
	FOREIGN KEY (`tenant_key`) REFERENCES `tenant`(`key`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "replay_ended_at_most_queued" CHECK("replay"."delivered" + "replay"."failed" + "replay"."superseded" <= "replay"."queued")
);
--> statement-breakpoint
CREATE UNIQUE INDEX `replay_by_id` ON `replay` (`id`);--> statement-breakpoint
CREATE INDEX `replay_by_tenant` ON `replay` (`tenant_key`,`key`);--> statement-breakpoint
CREATE INDEX `replay_to_queue` ON `replay` (`tenant_key`,`key`) WHERE "replay"."phase" in ('waiting', 'queueing', 'queued');--> statement-breakpoint
CREATE TABLE `signing_key` (
	`key` integer PRIMARY KEY NOT NULL,
	`id` text NOT NULL,
	`tenant_key` integer NOT NULL,
	`public_key` blob NOT NULL,
	`sealed_seed` blob NOT NULL,
	`activates_at` integer NOT NULL,
	`retires_at` integer,
	FOREIGN KEY (`tenant_key`) REFERENCES `tenant`(`key`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE INDEX `signing_key_by_tenant` ON `signing_key` (`tenant_key`);--> statement-breakpoint
CREATE INDEX `signing_key_to_prune` ON `signing_key` (`retires_at`) WHERE "signing_key"."retires_at" is not null;--> statement-breakpoint
CREATE TABLE `signing_secret` (
	`key` integer PRIMARY KEY NOT NULL,
	`tenant_key` integer NOT NULL,
	`sealed` blob NOT NULL,
	`created_at` integer NOT NULL,
	`expires_at` integer,
	FOREIGN KEY (`tenant_key`) REFERENCES `tenant`(`key`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE INDEX `signing_secret_by_tenant` ON `signing_secret` (`tenant_key`);--> statement-breakpoint
CREATE INDEX `signing_secret_to_prune` ON `signing_secret` (`expires_at`) WHERE "signing_secret"."expires_at" is not null;--> statement-breakpoint
CREATE TABLE `stat` (
	`tenant_key` integer NOT NULL,
	`minute` integer NOT NULL,
	`accepted` integer NOT NULL,
	`delivered` integer NOT NULL,
	`failed` integer NOT NULL,
	`attempts` integer NOT NULL,
	PRIMARY KEY(`tenant_key`, `minute`),
	FOREIGN KEY (`tenant_key`) REFERENCES `tenant`(`key`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE TABLE `stat_latency` (
	`tenant_key` integer NOT NULL,
	`minute` integer NOT NULL,
	`bucket` integer NOT NULL,
	`count` integer NOT NULL,
	PRIMARY KEY(`tenant_key`, `minute`, `bucket`),
	FOREIGN KEY (`tenant_key`) REFERENCES `tenant`(`key`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE TABLE `tenant` (
	`key` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`id` text NOT NULL,
	`name` text NOT NULL,
	`email` text NOT NULL,
	`login_email` text,
	`tier` text NOT NULL,
	`enforced_tier` text,
	`password_hash` text NOT NULL,
	`session_version` integer DEFAULT 1 NOT NULL,
	`created_at` integer NOT NULL,
	`operator_suspended_at` integer,
	`payment_suspended_at` integer,
	`past_due_at` integer,
	`deleted_at` integer,
	CONSTRAINT "tenant_tier" CHECK("tenant"."tier" in ('free', 'pro', 'business', 'enterprise')),
	CONSTRAINT "tenant_enforced_tier" CHECK("tenant"."enforced_tier" in ('free', 'pro', 'business', 'enterprise')),
	CONSTRAINT "tenant_free_has_no_login_email" CHECK("tenant"."tier" <> 'free' or "tenant"."login_email" is null)
);
--> statement-breakpoint
CREATE UNIQUE INDEX `tenant_by_id` ON `tenant` (`id`);--> statement-breakpoint
CREATE UNIQUE INDEX `tenant_by_login_email` ON `tenant` (`login_email`);--> statement-breakpoint
CREATE INDEX `tenant_to_erase` ON `tenant` (`deleted_at`) WHERE "tenant"."deleted_at" is not null;--> statement-breakpoint
CREATE TABLE `tenant_usage` (
	`tenant_key` integer PRIMARY KEY NOT NULL,
	`month` integer NOT NULL,
	`events_in_month` integer NOT NULL,
	`events` integer NOT NULL,
	`pending` integer NOT NULL,
	`delivered` integer NOT NULL,
	`failed` integer NOT NULL,
	FOREIGN KEY (`tenant_key`) REFERENCES `tenant`(`key`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "usage_not_negative" CHECK("tenant_usage"."pending" >= 0 and "tenant_usage"."delivered" >= 0 and "tenant_usage"."failed" >= 0)
);
--> statement-breakpoint
CREATE TABLE `webhook` (
	`key` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`id` text NOT NULL,
	`tenant_key` integer NOT NULL,
	`url` text NOT NULL,
	`name` text NOT NULL,
	`position` integer NOT NULL,
	`created_at` integer NOT NULL,
	`removed_at` integer,
	`drained` integer DEFAULT false NOT NULL,
	FOREIGN KEY (`tenant_key`) REFERENCES `tenant`(`key`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE INDEX `webhook_to_drain` ON `webhook` (`removed_at`) WHERE "webhook"."removed_at" is not null and "webhook"."drained" = 0;--> statement-breakpoint
CREATE INDEX `webhook_by_tenant` ON `webhook` (`tenant_key`,`position`);--> statement-breakpoint
CREATE UNIQUE INDEX `webhook_url_once` ON `webhook` (`tenant_key`,`url`) WHERE "webhook"."removed_at" is null;