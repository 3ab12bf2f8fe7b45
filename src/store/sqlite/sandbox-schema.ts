import { sql } from "drizzle-orm";
import { check, integer, sqliteTable, text, uniqueIndex } from "drizzle-orm/sqlite-core";

/** The tables of the built-in payment processor. They refer to none of ours, as if they belonged to another company. */

/** A payment as the built-in processor knows it. */
export const sandboxTransaction = sqliteTable(
  "sandbox_transaction",
  {
    reference: text("reference").primaryKey(),
    /** The secret part of its hosted page's address. */
    accessCode: text("access_code").notNull(),
    state: text("state", { enum: ["waiting", "confirming", "paid", "failed", "reversed"] }).notNull(),
    email: text("email").notNull(),
    amountKobo: integer("amount_kobo").notNull(),
    returnUrl: text("return_url").notNull(),
    cancelUrl: text("cancel_url").notNull(),
    /** The card that paid it, or is about to. */
    cardToken: text("card_token"),
    reason: text("reason"),
    createdAt: integer("created_at").notNull(),
    paidAt: integer("paid_at"),
  },
  (t) => [
    uniqueIndex("sandbox_transaction_by_access_code").on(t.accessCode),
    check("sandbox_transaction_state", sql`${t.state} in ('waiting', 'confirming', 'paid', 'failed', 'reversed')`),
  ],
);

/** A test card that has paid once. Its number is not kept. */
export const sandboxCard = sqliteTable("sandbox_card", {
  token: text("token").primaryKey(),
  email: text("email").notNull(),
  signature: text("signature").notNull(),
  brand: text("brand").notNull(),
  last4: text("last4").notNull(),
  expMonth: text("exp_month").notNull(),
  expYear: text("exp_year").notNull(),
  reusable: integer("reusable", { mode: "boolean" }).notNull(),
  /** How it behaves when it is charged again: `pays`, `declines`, `asks`. */
  later: text("later", { enum: ["pays", "declines", "asks"] }).notNull(),
  forgotten: integer("forgotten", { mode: "boolean" }).notNull().default(false),
});
