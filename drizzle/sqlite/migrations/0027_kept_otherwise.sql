ALTER TABLE `tenant` ADD `own_retention_days` integer;--> statement-breakpoint
ALTER TABLE `tenant` ADD `own_payload_days` integer;--> statement-breakpoint
ALTER TABLE `tenant` ADD `own_storage_bytes` integer;--> statement-breakpoint
ALTER TABLE `tenant` ADD `storage_full_at` integer;--> statement-breakpoint
CREATE INDEX `tenant_to_keep_otherwise` ON `tenant` (`key`) WHERE "tenant"."own_retention_days" is not null or "tenant"."own_payload_days" is not null or "tenant"."own_storage_bytes" is not null;