CREATE TABLE "mail" (
	"kind" text NOT NULL,
	"recipient" text NOT NULL,
	"facts" text NOT NULL,
	"left_out" integer NOT NULL,
	"queued_at" bigint NOT NULL,
	"due_at" bigint,
	"attempts" integer NOT NULL,
	"sent_at" bigint,
	CONSTRAINT "mail_kind_recipient_pk" PRIMARY KEY("kind","recipient")
);
--> statement-breakpoint
CREATE TABLE "password_reset" (
	"tenant_key" bigint PRIMARY KEY NOT NULL,
	"token_hash" "bytea" NOT NULL,
	"recipient" text NOT NULL,
	"session_version" integer NOT NULL,
	"expires_at" bigint NOT NULL
);
--> statement-breakpoint
ALTER TABLE "password_reset" ADD CONSTRAINT "password_reset_tenant_key_tenant_key_fk" FOREIGN KEY ("tenant_key") REFERENCES "public"."tenant"("key") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "mail_due" ON "mail" USING btree ("due_at") WHERE "mail"."due_at" is not null;--> statement-breakpoint
CREATE INDEX "mail_to_prune" ON "mail" USING btree ("sent_at") WHERE "mail"."due_at" is null;--> statement-breakpoint
CREATE INDEX "password_reset_by_token" ON "password_reset" USING btree ("token_hash");--> statement-breakpoint
CREATE INDEX "password_reset_to_prune" ON "password_reset" USING btree ("expires_at");