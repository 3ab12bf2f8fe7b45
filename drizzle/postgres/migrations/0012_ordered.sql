ALTER TABLE "webhook" ADD COLUMN "ordered" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "webhook" ADD COLUMN "is_releasing" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "event" ADD COLUMN "ordering_key" text;--> statement-breakpoint
ALTER TABLE "pending" ADD COLUMN "order_hash" bigint;--> statement-breakpoint
CREATE INDEX "webhook_to_release" ON "webhook" USING btree ("key") WHERE "webhook"."is_releasing";--> statement-breakpoint
CREATE UNIQUE INDEX "pending_head_of_line" ON "pending" USING btree ("webhook_key","order_hash") WHERE "pending"."order_hash" is not null and "pending"."owner" is distinct from 0;--> statement-breakpoint
CREATE INDEX "pending_held_back" ON "pending" USING btree ("webhook_key","order_hash","event_seq") WHERE "pending"."owner" = 0;