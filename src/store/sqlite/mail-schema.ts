import { sql } from "drizzle-orm";
import { blob, index, integer, primaryKey, sqliteTable, text } from "drizzle-orm/sqlite-core";
import { tenant } from "./schema.ts";

/** The outbox (`src/domain/mail.ts`): a row for each kind of mail and recipient, kept for an hour after it was sent. */
export const mail = sqliteTable(
  "mail",
  {
    kind: text("kind").notNull(),
    recipient: text("recipient").notNull(),
    /** JSON. */
    facts: text("facts").notNull(),
    leftOut: integer("left_out").notNull(),
    queuedAt: integer("queued_at").notNull(),
    dueAt: integer("due_at"),
    attempts: integer("attempts").notNull(),
    sentAt: integer("sent_at"),
  },
  (t) => [
    primaryKey({ columns: [t.kind, t.recipient] }),
    index("mail_due").on(t.dueAt).where(sql`${t.dueAt} is not null`),
    index("mail_to_prune").on(t.sentAt).where(sql`${t.dueAt} is null`),
  ],
);

/** An account's link for setting a new password. */
export const passwordReset = sqliteTable(
  "password_reset",
  {
    tenantKey: integer("tenant_key")
      .primaryKey()
      .references(() => tenant.key),
    /** SHA-256 of what the link carries. */
    tokenHash: blob("token_hash", { mode: "buffer" }).notNull(),
    /** Where the mail with the link was sent. */
    recipient: text("recipient").notNull(),
    sessionVersion: integer("session_version").notNull(),
    expiresAt: integer("expires_at").notNull(),
  },
  (t) => [index("password_reset_by_token").on(t.tokenHash), index("password_reset_to_prune").on(t.expiresAt)],
);
