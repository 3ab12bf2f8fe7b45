CREATE TABLE "failure_count" (
	"tenant_key" bigint NOT NULL,
	"failure_key" bigint NOT NULL,
	"hour" integer NOT NULL,
	"slot" smallint NOT NULL,
	"waiting" bigint NOT NULL,
	"failed" bigint NOT NULL,
	"last_failed_at" bigint NOT NULL,
	CONSTRAINT "failure_count_tenant_key_failure_key_hour_slot_pk" PRIMARY KEY("tenant_key","failure_key","hour","slot")
) WITH (fillfactor = 40);
--> statement-breakpoint
CREATE TABLE "failure_group" (
	"tenant_key" bigint NOT NULL,
	"key" bigint NOT NULL,
	"webhook_key" bigint,
	"code" text NOT NULL,
	"status" integer,
	"line" text NOT NULL,
	CONSTRAINT "failure_group_tenant_key_key_pk" PRIMARY KEY("tenant_key","key")
);
--> statement-breakpoint
ALTER TABLE "delivery" ADD COLUMN "failure_key" bigint;--> statement-breakpoint
ALTER TABLE "pending" ADD COLUMN "failure_key" bigint;--> statement-breakpoint
CREATE INDEX "delivery_by_failure" ON "delivery" USING btree ("tenant_key","failure_key","event_seq" DESC NULLS FIRST,"key") INCLUDE ("type_hash") WHERE "delivery"."failure_key" is not null;--> statement-breakpoint
CREATE INDEX "pending_by_failure" ON "pending" USING btree ("tenant_key","failure_key","event_seq" DESC NULLS FIRST,"key") INCLUDE ("type_hash") WHERE "pending"."failure_key" is not null;