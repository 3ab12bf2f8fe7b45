ALTER TABLE `replay` ADD `payloads_erased` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `tenant` ADD `payloads_erased_to` integer;