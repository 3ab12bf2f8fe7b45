CREATE TABLE `billing_account` (
	`key` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`id` text NOT NULL,
	`tenant_key` integer,
	`state` text NOT NULL,
	`verified_at` integer,
	`credit_kobo` integer DEFAULT 0 NOT NULL,
	`next_invoice_at` integer,
	`card_key` integer,
	`due_at` integer,
	`version` integer DEFAULT 1 NOT NULL,
	FOREIGN KEY (`tenant_key`) REFERENCES `tenant`(`key`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "billing_account_state" CHECK("billing_account"."state" in ('active', 'closing', 'closed')),
	CONSTRAINT "billing_account_credit" CHECK("billing_account"."credit_kobo" >= 0),
	CONSTRAINT "billing_account_has_tenant_while_active" CHECK(("billing_account"."state" = 'active') = ("billing_account"."tenant_key" is not null))
);
--> statement-breakpoint
CREATE UNIQUE INDEX `billing_account_by_id` ON `billing_account` (`id`);--> statement-breakpoint
CREATE UNIQUE INDEX `billing_account_by_tenant` ON `billing_account` (`tenant_key`);--> statement-breakpoint
CREATE INDEX `billing_account_due` ON `billing_account` (`due_at`) WHERE "billing_account"."due_at" is not null;--> statement-breakpoint
CREATE TABLE `card_verification` (
	`key` integer PRIMARY KEY NOT NULL,
	`account_key` integer NOT NULL,
	`token` text NOT NULL,
	`state` text NOT NULL,
	`created_at` integer NOT NULL,
	`charge_key` integer,
	FOREIGN KEY (`account_key`) REFERENCES `billing_account`(`key`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "card_verification_state" CHECK("card_verification"."state" in ('open', 'succeeded', 'given_up'))
);
--> statement-breakpoint
CREATE UNIQUE INDEX `card_verification_by_token` ON `card_verification` (`token`);--> statement-breakpoint
CREATE UNIQUE INDEX `card_verification_open` ON `card_verification` (`account_key`) WHERE "card_verification"."state" = 'open';--> statement-breakpoint
CREATE INDEX `card_verification_by_account` ON `card_verification` (`account_key`);--> statement-breakpoint
CREATE TABLE `charge` (
	`key` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`account_key` integer NOT NULL,
	`reference` text NOT NULL,
	`processor` text NOT NULL,
	`kind` text NOT NULL,
	`state` text NOT NULL,
	`amount_kobo` integer NOT NULL,
	`invoice_key` integer,
	`card_key` integer,
	`created_at` integer NOT NULL,
	`sent_at` integer,
	`resend_at` integer,
	`look_ups` integer DEFAULT 0 NOT NULL,
	`look_up_at` integer,
	`page_url` text,
	`transaction_id` text,
	`settled_at` integer,
	`reason` text,
	`refund` text,
	`refund_at` integer,
	FOREIGN KEY (`account_key`) REFERENCES `billing_account`(`key`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`invoice_key`) REFERENCES `invoice`(`key`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "charge_kind" CHECK("charge"."kind" in ('verification', 'upgrade', 'subscription', 'closing')),
	CONSTRAINT "charge_state" CHECK("charge"."state" in ('open', 'succeeded', 'failed', 'superseded')),
	CONSTRAINT "charge_amount" CHECK("charge"."amount_kobo" > 0),
	CONSTRAINT "charge_refund" CHECK("charge"."refund" in ('due', 'requested', 'done'))
);
--> statement-breakpoint
CREATE UNIQUE INDEX `charge_by_reference` ON `charge` (`reference`);--> statement-breakpoint
CREATE INDEX `charge_by_account` ON `charge` (`account_key`,`key`);--> statement-breakpoint
CREATE INDEX `charge_unfinished` ON `charge` (`account_key`,`key`) WHERE "charge"."state" = 'open' or "charge"."look_up_at" is not null or "charge"."refund_at" is not null;--> statement-breakpoint
CREATE INDEX `charge_by_invoice` ON `charge` (`invoice_key`);--> statement-breakpoint
CREATE UNIQUE INDEX `charge_one_open` ON `charge` (`invoice_key`) WHERE "charge"."state" = 'open';--> statement-breakpoint
CREATE UNIQUE INDEX `charge_one_success` ON `charge` (`invoice_key`) WHERE "charge"."state" = 'succeeded';--> statement-breakpoint
CREATE TABLE `invoice` (
	`key` integer PRIMARY KEY NOT NULL,
	`id` text NOT NULL,
	`account_key` integer NOT NULL,
	`kind` text NOT NULL,
	`state` text NOT NULL,
	`lines` text NOT NULL,
	`total_kobo` integer NOT NULL,
	`credit_used_kobo` integer NOT NULL,
	`amount_kobo` integer NOT NULL,
	`attempts` integer DEFAULT 0 NOT NULL,
	`first_failed_at` integer,
	`next_attempt_at` integer,
	`created_at` integer NOT NULL,
	`paid_at` integer,
	`target_tier` text,
	`new_email` text,
	`new_password_hash` text,
	FOREIGN KEY (`account_key`) REFERENCES `billing_account`(`key`) ON UPDATE no action ON DELETE no action,
	CONSTRAINT "invoice_kind" CHECK("invoice"."kind" in ('upgrade', 'subscription', 'closing')),
	CONSTRAINT "invoice_state" CHECK("invoice"."state" in ('open', 'paid', 'void')),
	CONSTRAINT "invoice_amounts" CHECK("invoice"."total_kobo" >= 0 and "invoice"."credit_used_kobo" >= 0 and "invoice"."amount_kobo" > 0)
);
--> statement-breakpoint
CREATE UNIQUE INDEX `invoice_by_id` ON `invoice` (`id`);--> statement-breakpoint
CREATE INDEX `invoice_open` ON `invoice` (`account_key`) WHERE "invoice"."state" = 'open';--> statement-breakpoint
CREATE INDEX `invoice_by_account` ON `invoice` (`account_key`);--> statement-breakpoint
CREATE TABLE `invoice_day` (
	`account_key` integer NOT NULL,
	`day` integer NOT NULL,
	`invoice_key` integer NOT NULL,
	`tier` text NOT NULL,
	PRIMARY KEY(`account_key`, `day`),
	FOREIGN KEY (`account_key`) REFERENCES `billing_account`(`key`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`invoice_key`) REFERENCES `invoice`(`key`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE INDEX `invoice_day_by_invoice` ON `invoice_day` (`invoice_key`);--> statement-breakpoint
CREATE TABLE `plan_period` (
	`key` integer PRIMARY KEY NOT NULL,
	`account_key` integer NOT NULL,
	`tier` text NOT NULL,
	`started_at` integer NOT NULL,
	`ended_at` integer,
	FOREIGN KEY (`account_key`) REFERENCES `billing_account`(`key`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE INDEX `plan_period_by_account` ON `plan_period` (`account_key`);--> statement-breakpoint
CREATE UNIQUE INDEX `plan_period_open` ON `plan_period` (`account_key`) WHERE "plan_period"."ended_at" is null;--> statement-breakpoint
CREATE TABLE `sandbox_card` (
	`token` text PRIMARY KEY NOT NULL,
	`email` text NOT NULL,
	`signature` text NOT NULL,
	`brand` text NOT NULL,
	`last4` text NOT NULL,
	`exp_month` text NOT NULL,
	`exp_year` text NOT NULL,
	`reusable` integer NOT NULL,
	`later` text NOT NULL,
	`forgotten` integer DEFAULT false NOT NULL
);
--> statement-breakpoint
CREATE TABLE `sandbox_transaction` (
	`reference` text PRIMARY KEY NOT NULL,
	`access_code` text NOT NULL,
	`state` text NOT NULL,
	`email` text NOT NULL,
	`amount_kobo` integer NOT NULL,
	`return_url` text NOT NULL,
	`cancel_url` text NOT NULL,
	`card_token` text,
	`reason` text,
	`created_at` integer NOT NULL,
	`paid_at` integer,
	CONSTRAINT "sandbox_transaction_state" CHECK("sandbox_transaction"."state" in ('waiting', 'confirming', 'paid', 'failed', 'reversed'))
);
--> statement-breakpoint
CREATE UNIQUE INDEX `sandbox_transaction_by_access_code` ON `sandbox_transaction` (`access_code`);--> statement-breakpoint
CREATE TABLE `saved_card` (
	`key` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`account_key` integer NOT NULL,
	`processor` text NOT NULL,
	`sealed` blob NOT NULL,
	`signature` text,
	`brand` text NOT NULL,
	`last4` text NOT NULL,
	`exp_month` text NOT NULL,
	`exp_year` text NOT NULL,
	`refused` integer DEFAULT false NOT NULL,
	`forget_at` integer,
	`created_at` integer NOT NULL,
	FOREIGN KEY (`account_key`) REFERENCES `billing_account`(`key`) ON UPDATE no action ON DELETE no action
);
--> statement-breakpoint
CREATE INDEX `saved_card_by_account` ON `saved_card` (`account_key`);