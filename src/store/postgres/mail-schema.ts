import { sql } from "drizzle-orm";
import { index, integer, pgTable, primaryKey, text } from "drizzle-orm/pg-core";
import { bytes, whole } from "./columns.ts";
import { tenant } from "./schema.ts";

/** The outbox (`src/domain/mail.ts`): a row per kind of mail and recipient, kept for an hour after it was sent. */
export const mail = pgTable(
  "mail",
  {
    kind: text("kind").notNull(),
    recipient: text("recipient").notNull(),
    /** JSON. */
    facts: text("facts").notNull(),
    leftOut: integer("left_out").notNull(),
    queuedAt: whole("queued_at").notNull(),
    dueAt: whole("due_at"),
    attempts: integer("attempts").notNull(),
    sentAt: whole("sent_at"),
  },
  (t) => [
    primaryKey({ columns: [t.kind, t.recipient] }),
    index("mail_due").on(t.dueAt).where(sql`${t.dueAt} is not null`),
    index("mail_to_prune").on(t.sentAt).where(sql`${t.dueAt} is null`),
  ],
);

/** An account's link for setting a new password. */
export const passwordReset = pgTable(
  "password_reset",
  {
    tenantKey: whole("tenant_key")
      .primaryKey()
      .references(() => tenant.key),
    /** SHA-256 of the token in the link. */
    tokenHash: bytes("token_hash").notNull(),
    /** Where the mail with the link went. */
    recipient: text("recipient").notNull(),
    sessionVersion: integer("session_version").notNull(),
    expiresAt: whole("expires_at").notNull(),
  },
  (t) => [index("password_reset_by_token").on(t.tokenHash), index("password_reset_to_prune").on(t.expiresAt)],
);
