ALTER TABLE "webhook" ADD COLUMN "failing_since" bigint;--> statement-breakpoint
ALTER TABLE "webhook" ADD COLUMN "gone_in_a_row" integer;--> statement-breakpoint
ALTER TABLE "webhook" ADD COLUMN "told_at" bigint;--> statement-breakpoint
ALTER TABLE "webhook" ADD COLUMN "warned_at" bigint;--> statement-breakpoint
ALTER TABLE "webhook" ADD COLUMN "disabled_at" bigint;--> statement-breakpoint
ALTER TABLE "webhook" ADD COLUMN "disabled_reason" text;--> statement-breakpoint
CREATE INDEX "webhook_disabled_to_drain" ON "webhook" USING btree ("disabled_at") WHERE "webhook"."disabled_at" is not null and "webhook"."removed_at" is null and not "webhook"."drained";--> statement-breakpoint
CREATE INDEX "webhook_failing" ON "webhook" USING btree ("failing_since") WHERE "webhook"."failing_since" is not null;