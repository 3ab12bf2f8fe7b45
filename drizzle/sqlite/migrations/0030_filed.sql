DROP INDEX `delivery_by_tenant`;--> statement-breakpoint
DROP INDEX `delivery_by_state`;--> statement-breakpoint
ALTER TABLE `delivery` ADD `filed` integer DEFAULT true NOT NULL;--> statement-breakpoint
CREATE INDEX `delivery_by_tenant` ON `delivery` (`tenant_key`,"event_seq" desc,`key`,`webhook_key`,`type_hash`) WHERE "delivery"."filed" = 1;--> statement-breakpoint
CREATE INDEX `delivery_by_state` ON `delivery` (`tenant_key`,`state`,"event_seq" desc) WHERE "delivery"."filed" = 1;--> statement-breakpoint
ALTER TABLE `lane` ADD `filed_to` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
UPDATE `lane` SET `filed_to` = (SELECT coalesce(max(`key`), 0) FROM `delivery`);
