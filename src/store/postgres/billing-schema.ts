import { sql } from "drizzle-orm";
import { boolean, check, index, integer, pgTable, primaryKey, text, timestamp, uniqueIndex } from "drizzle-orm/pg-core";
import { tiersAscending } from "../../domain/plans.ts";
import { bytes, whole } from "./columns.ts";
import { tenant } from "./schema.ts";

/**
 * The tables of payments. They belong to the billing account, not to the tenant: a deleted tenant's rows can go immediately,
 * while its last charge is made and late payments are refunded. Money is an integer number of kobo.
 *
 * The indexes refuse what must never happen: two open verifications of an account, a day in two invoices, two open or two
 * successful charges of one invoice, one reference used twice.
 */

export const billingAccount = pgTable(
  "billing_account",
  {
    key: whole("key").primaryKey().generatedByDefaultAsIdentity(),
    id: text("id").notNull(),
    tenantKey: whole("tenant_key").references(() => tenant.key),
    state: text("state", { enum: ["active", "closing", "closed"] }).notNull(),
    verifiedAt: whole("verified_at"),
    creditKobo: whole("credit_kobo").notNull().default(0),
    nextInvoiceAt: whole("next_invoice_at"),
    cardKey: whole("card_key"),
    /** When the biller has to look at it; null: nothing to do. */
    dueAt: whole("due_at"),
    /** Incremented by every change. */
    version: integer("version").notNull().default(1),
    /** Incarnation of the node that is working on it, and until when no other may, by the database's clock. */
    leasedBy: integer("leased_by"),
    leasedUntil: timestamp("leased_until", { withTimezone: true }),
  },
  (t) => [
    uniqueIndex("billing_account_by_id").on(t.id),
    uniqueIndex("billing_account_by_tenant").on(t.tenantKey),
    index("billing_account_due").on(t.dueAt).where(sql`${t.dueAt} is not null`),
    check("billing_account_state", sql`${t.state} in ('active', 'closing', 'closed')`),
    check("billing_account_credit", sql`${t.creditKobo} >= 0`),
    check("billing_account_has_tenant_while_active", sql`(${t.state} = 'active') = (${t.tenantKey} is not null)`),
  ],
);

const accountKey = () =>
  whole("account_key")
    .notNull()
    .references(() => billingAccount.key);

export const cardVerification = pgTable(
  "card_verification",
  {
    key: whole("key").primaryKey().generatedByDefaultAsIdentity(),
    accountKey: accountKey(),
    token: text("token").notNull(),
    state: text("state", { enum: ["open", "succeeded", "given_up"] }).notNull(),
    createdAt: whole("created_at").notNull(),
    chargeKey: whole("charge_key"),
  },
  (t) => [
    uniqueIndex("card_verification_by_token").on(t.token),
    uniqueIndex("card_verification_open").on(t.accountKey).where(sql`${t.state} = 'open'`),
    index("card_verification_by_account").on(t.accountKey),
    check("card_verification_state", sql`${t.state} in ('open', 'succeeded', 'given_up')`),
  ],
);

export const savedCard = pgTable(
  "saved_card",
  {
    key: whole("key").primaryKey().generatedByDefaultAsIdentity(),
    accountKey: accountKey(),
    processor: text("processor").notNull(),
    sealed: bytes("sealed").notNull(),
    signature: text("signature"),
    brand: text("brand").notNull(),
    last4: text("last4").notNull(),
    expMonth: text("exp_month").notNull(),
    expYear: text("exp_year").notNull(),
    refused: boolean("refused").notNull().default(false),
    /** When the processor has to be told to forget it; null while it is in use. */
    forgetAt: whole("forget_at"),
    /** The row may be older: the same card, verified again, keeps it. */
    savedAt: whole("created_at").notNull(),
  },
  (t) => [index("saved_card_by_account").on(t.accountKey)],
);

export const planPeriod = pgTable(
  "plan_period",
  {
    key: whole("key").primaryKey().generatedByDefaultAsIdentity(),
    accountKey: accountKey(),
    tier: text("tier", { enum: tiersAscending }).notNull(),
    startedAt: whole("started_at").notNull(),
    endedAt: whole("ended_at"),
  },
  (t) => [
    index("plan_period_by_account").on(t.accountKey),
    uniqueIndex("plan_period_open").on(t.accountKey).where(sql`${t.endedAt} is null`),
  ],
);

export const invoice = pgTable(
  "invoice",
  {
    key: whole("key").primaryKey().generatedByDefaultAsIdentity(),
    id: text("id").notNull(),
    accountKey: accountKey(),
    kind: text("kind", { enum: ["upgrade", "subscription", "closing"] }).notNull(),
    state: text("state", { enum: ["open", "paid", "void"] }).notNull(),
    /** JSON. */
    lines: text("lines").notNull(),
    totalKobo: whole("total_kobo").notNull(),
    creditUsedKobo: whole("credit_used_kobo").notNull(),
    amountKobo: whole("amount_kobo").notNull(),
    attempts: integer("attempts").notNull().default(0),
    firstFailedAt: whole("first_failed_at"),
    nextAttemptAt: whole("next_attempt_at"),
    createdAt: whole("created_at").notNull(),
    paidAt: whole("paid_at"),
    /** What an upgrade changes once it is paid. */
    targetTier: text("target_tier", { enum: tiersAscending }),
    newEmail: text("new_email"),
    newPasswordHash: text("new_password_hash"),
  },
  (t) => [
    uniqueIndex("invoice_by_id").on(t.id),
    index("invoice_open").on(t.accountKey).where(sql`${t.state} = 'open'`),
    index("invoice_by_account").on(t.accountKey),
    check("invoice_kind", sql`${t.kind} in ('upgrade', 'subscription', 'closing')`),
    check("invoice_state", sql`${t.state} in ('open', 'paid', 'void')`),
    check("invoice_amounts", sql`${t.totalKobo} >= 0 and ${t.creditUsedKobo} >= 0 and ${t.amountKobo} > 0`),
  ],
);

/** Invoiced days, each at most once. A void invoice releases its days. */
export const invoiceDay = pgTable(
  "invoice_day",
  {
    accountKey: accountKey(),
    /** A calendar day of the billing time zone, counted from 1970-01-01. */
    day: integer("day").notNull(),
    invoiceKey: whole("invoice_key")
      .notNull()
      .references(() => invoice.key),
    tier: text("tier", { enum: tiersAscending }).notNull(),
  },
  (t) => [primaryKey({ columns: [t.accountKey, t.day] }), index("invoice_day_by_invoice").on(t.invoiceKey)],
);

export const charge = pgTable(
  "charge",
  {
    key: whole("key").primaryKey().generatedByDefaultAsIdentity(),
    accountKey: accountKey(),
    reference: text("reference").notNull(),
    processor: text("processor").notNull(),
    kind: text("kind", { enum: ["verification", "upgrade", "subscription", "closing"] }).notNull(),
    state: text("state", { enum: ["open", "succeeded", "failed", "superseded"] }).notNull(),
    amountKobo: whole("amount_kobo").notNull(),
    invoiceKey: whole("invoice_key").references(() => invoice.key),
    cardKey: whole("card_key"),
    createdAt: whole("created_at").notNull(),
    sentAt: whole("sent_at"),
    resendAt: whole("resend_at"),
    lookUps: integer("look_ups").notNull().default(0),
    lookUpAt: whole("look_up_at"),
    pageUrl: text("page_url"),
    transactionId: text("transaction_id"),
    settledAt: whole("settled_at"),
    reason: text("reason"),
    refund: text("refund", { enum: ["due", "requested", "done"] }),
    refundAt: whole("refund_at"),
  },
  (t) => [
    uniqueIndex("charge_by_reference").on(t.reference),
    index("charge_by_account").on(t.accountKey, t.key),
    index("charge_unfinished")
      .on(t.accountKey, t.key)
      .where(sql`${t.state} = 'open' or ${t.lookUpAt} is not null or ${t.refundAt} is not null`),
    index("charge_by_invoice").on(t.invoiceKey),
    uniqueIndex("charge_one_open").on(t.invoiceKey).where(sql`${t.state} = 'open'`),
    uniqueIndex("charge_one_success").on(t.invoiceKey).where(sql`${t.state} = 'succeeded'`),
    check("charge_kind", sql`${t.kind} in ('verification', 'upgrade', 'subscription', 'closing')`),
    check("charge_state", sql`${t.state} in ('open', 'succeeded', 'failed', 'superseded')`),
    check("charge_amount", sql`${t.amountKobo} > 0`),
    check("charge_refund", sql`${t.refund} in ('due', 'requested', 'done')`),
  ],
);
