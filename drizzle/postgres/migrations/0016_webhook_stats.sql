CREATE TABLE "refused_events" (
	"tenant_key" bigint NOT NULL,
	"month" integer NOT NULL,
	"reason" text NOT NULL,
	"slot" smallint NOT NULL,
	"events" bigint NOT NULL,
	CONSTRAINT "refused_events_tenant_key_month_reason_slot_pk" PRIMARY KEY("tenant_key","month","reason","slot")
);
--> statement-breakpoint
CREATE TABLE "webhook_stat" (
	"tenant_key" bigint NOT NULL,
	"webhook_key" bigint NOT NULL,
	"minute" integer NOT NULL,
	"slot" smallint NOT NULL,
	"delivered" integer NOT NULL,
	"failed" integer NOT NULL,
	"attempts" integer NOT NULL,
	"latency" text NOT NULL,
	CONSTRAINT "webhook_stat_tenant_key_webhook_key_minute_slot_pk" PRIMARY KEY("tenant_key","webhook_key","minute","slot")
);
