ALTER TABLE `delivery` ADD `before` text;--> statement-breakpoint
CREATE INDEX `delivery_to_return` ON `delivery` (`replay_key`) WHERE "delivery"."state" = 0 and "delivery"."before" is not null;--> statement-breakpoint
ALTER TABLE `replay` ADD `returned` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `replay` ADD `is_returning` integer DEFAULT false NOT NULL;--> statement-breakpoint
CREATE INDEX `replay_to_return` ON `replay` (`key`) WHERE "replay"."is_returning" = 1;