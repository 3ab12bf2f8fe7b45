ALTER TABLE `delivery` DROP CONSTRAINT `delivery_state`;--> statement-breakpoint
ALTER TABLE `delivery` ADD CONSTRAINT `delivery_state` CHECK("state" between 0 and 3);