ALTER TABLE `stat` ADD `latency` text DEFAULT '[]' NOT NULL;--> statement-breakpoint
UPDATE `stat` SET `latency` = '[' || coalesce((SELECT group_concat(`bucket` || ',' || `count`) FROM `stat_latency` WHERE `stat_latency`.`tenant_key` = `stat`.`tenant_key` AND `stat_latency`.`minute` = `stat`.`minute`), '') || ']';--> statement-breakpoint
DROP TABLE `stat_latency`;