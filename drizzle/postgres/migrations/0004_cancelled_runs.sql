ALTER TABLE "replay" ADD COLUMN "returned" bigint DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "replay" ADD COLUMN "is_returning" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "pending" ADD COLUMN "before" text;--> statement-breakpoint
CREATE INDEX "replay_to_return" ON "replay" USING btree ("key") WHERE "replay"."is_returning";--> statement-breakpoint
CREATE INDEX "pending_to_return" ON "pending" USING btree ("tenant_key","replay_key") WHERE "pending"."before" is not null;