import { sql } from "drizzle-orm";
import { boolean, check, pgTable, text, uniqueIndex } from "drizzle-orm/pg-core";
import { whole } from "./columns.ts";

/** The tables of the built-in payment processor. They refer to none of ours, as if they were somebody else's. */

/** A payment as the built-in processor knows it. */
export const sandboxTransaction = pgTable(
  "sandbox_transaction",
  {
    reference: text("reference").primaryKey(),
    /** The secret part of its hosted page's address. */
    accessCode: text("access_code").notNull(),
    state: text("state", { enum: ["waiting", "confirming", "paid", "failed", "reversed"] }).notNull(),
    email: text("email").notNull(),
    amountKobo: whole("amount_kobo").notNull(),
    returnUrl: text("return_url").notNull(),
    cancelUrl: text("cancel_url").notNull(),
    /** The card that has paid, or is about to. */
    cardToken: text("card_token"),
    reason: text("reason"),
    createdAt: whole("created_at").notNull(),
    paidAt: whole("paid_at"),
  },
  (t) => [
    uniqueIndex("sandbox_transaction_by_access_code").on(t.accessCode),
    check("sandbox_transaction_state", sql`${t.state} in ('waiting', 'confirming', 'paid', 'failed', 'reversed')`),
  ],
);

/** A test card that has paid once. Its number is not kept. */
export const sandboxCard = pgTable("sandbox_card", {
  token: text("token").primaryKey(),
  email: text("email").notNull(),
  signature: text("signature").notNull(),
  brand: text("brand").notNull(),
  last4: text("last4").notNull(),
  expMonth: text("exp_month").notNull(),
  expYear: text("exp_year").notNull(),
  reusable: boolean("reusable").notNull(),
  /** What it does when it is charged again: `pays`, `declines`, `asks`. */
  later: text("later", { enum: ["pays", "declines", "asks"] }).notNull(),
  forgotten: boolean("forgotten").notNull().default(false),
});
