ALTER TABLE `delivery` ADD `order_hash` integer;--> statement-breakpoint
ALTER TABLE `delivery` DROP CONSTRAINT `delivery_waits_for_a_time`;--> statement-breakpoint
ALTER TABLE `delivery` ADD CONSTRAINT `delivery_waits_for_a_time` CHECK(("state" = 0) = ("next_attempt_at" is not null) or ("state" = 0 and "order_hash" is not null));--> statement-breakpoint
CREATE UNIQUE INDEX `delivery_head_of_line` ON `delivery` (`webhook_key`,`order_hash`) WHERE "delivery"."state" = 0 and "delivery"."order_hash" is not null and "delivery"."next_attempt_at" is not null;--> statement-breakpoint
CREATE INDEX `delivery_held_back` ON `delivery` (`webhook_key`,`order_hash`,`event_seq`) WHERE "delivery"."state" = 0 and "delivery"."next_attempt_at" is null;--> statement-breakpoint
ALTER TABLE `event` ADD `ordering_key` text;--> statement-breakpoint
ALTER TABLE `webhook` ADD `ordered` integer DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE `webhook` ADD `is_releasing` integer DEFAULT false NOT NULL;--> statement-breakpoint
CREATE INDEX `webhook_to_release` ON `webhook` (`key`) WHERE "webhook"."is_releasing" = 1;
