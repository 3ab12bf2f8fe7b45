import * as v from "valibot";
import type { BillingAccount, Charge, SavedCard } from "../domain/books.ts";
import type { Tenant } from "../domain/tenant.ts";
import { statusOf } from "../domain/tenant.ts";
import { anyTier, emailAddress, tenantStatus } from "../http/fields.ts";
import { jsonObject } from "../http/validation.ts";
import { formatIso } from "../lib/iso-time.ts";
import type { Books } from "../store/billing.ts";
import type { MonthSoFar } from "./invoicing.ts";
import type { Prices } from "./usage.ts";

/** The payment state of an account, as its owner sees it. Amounts are whole kobo: 100 are one naira. */

const kobo = v.pipe(v.number(), v.integer());
const time = v.nullable(v.string());

export const billing = v.pipe(
  v.object({
    tier: anyTier,
    status: tenantStatus,
    currency: v.literal("NGN"),
    price_kobo: v.pipe(kobo, v.description("Monthly price of the plan in force.")),
    card: v.nullable(
      v.pipe(
        v.object({ brand: v.string(), last4: v.string(), exp_month: v.string(), exp_year: v.string() }),
        v.title("Card"),
      ),
    ),
    current_month: v.object({
      amount_kobo: v.pipe(kobo, v.description("Cost of the days used so far and not charged yet.")),
      credit_kobo: v.pipe(kobo, v.description("Paid in advance; deducted at the end of the month.")),
      due_at: time,
      lines: v.array(
        v.object({ month: v.string(), tier: anyTier, days: kobo, days_in_month: kobo, amount_kobo: kobo }),
      ),
    }),
    payment_url: v.pipe(
      v.nullable(v.string()),
      v.description("Set while a card has to be verified or a charge confirmed."),
    ),
    past_due_since: time,
    next_attempt_at: time,
    charges: v.pipe(
      v.array(
        v.pipe(
          v.object({
            reference: v.string(),
            kind: v.picklist(["verification", "upgrade", "subscription", "closing"]),
            amount_kobo: kobo,
            state: v.picklist([
              "pending",
              "confirmation_required",
              "succeeded",
              "failed",
              "superseded",
              "refunding",
              "refunded",
            ]),
            reason: v.nullable(v.string()),
            created_at: v.string(),
            completed_at: time,
          }),
          v.title("Charge"),
        ),
      ),
      v.description("The latest 100, newest first."),
    ),
  }),
  v.title("Billing"),
);

export const billingExample = {
  tier: "pro",
  status: "active",
  currency: "NGN",
  price_kobo: 1_500_000,
  card: { brand: "visa", last4: "4081", exp_month: "12", exp_year: "2030" },
  current_month: {
    amount_kobo: 500_000,
    credit_kobo: 0,
    due_at: "2026-11-30T11:00:00.000Z",
    lines: [{ month: "2026-11", tier: "pro", days: 10, days_in_month: 30, amount_kobo: 500_000 }],
  },
  payment_url: null,
  past_due_since: null,
  next_attempt_at: null,
  charges: [
    {
      reference: "ver-1k2m3n4p5q6r7s8t9v0w1x2y3z",
      kind: "verification",
      amount_kobo: 10_000,
      state: "succeeded",
      reason: null,
      created_at: "2026-11-21T09:00:00.000Z",
      completed_at: "2026-11-21T09:01:30.000Z",
    },
  ],
};

export interface BillingView {
  readonly tenant: Tenant;
  readonly prices: Prices;
  /** Null until the account first has to do with payments. */
  readonly books: Books | null;
  readonly month: MonthSoFar;
  readonly history: readonly Charge[];
  readonly paymentUrl: string | null;
}

/** What `GET /v1/tenants/billing` answers. */
export function toBilling({ tenant, prices, books, month, history, paymentUrl }: BillingView) {
  const attempts = (books?.invoices ?? []).flatMap(({ nextAttemptAt }) => nextAttemptAt ?? []);
  return {
    tier: tenant.tier,
    status: statusOf(tenant),
    currency: "NGN",
    price_kobo: prices[tenant.enforcedTier ?? tenant.tier],
    card: books?.card ? toCard(books.card) : null,
    current_month: toMonth(month, books?.account ?? null),
    payment_url: paymentUrl,
    past_due_since: iso(tenant.pastDueAt),
    next_attempt_at: iso(attempts.length === 0 ? null : Math.min(...attempts)),
    charges: history.map(toCharge),
  };
}

const toCard = ({ brand, last4, expMonth, expYear }: SavedCard) => ({
  brand,
  last4,
  exp_month: expMonth,
  exp_year: expYear,
});

const toMonth = ({ lines, totalKobo }: MonthSoFar, account: BillingAccount | null) => ({
  amount_kobo: totalKobo,
  credit_kobo: account?.creditKobo ?? 0,
  due_at: iso(account?.nextInvoiceAt ?? null),
  lines: lines.map(({ month, tier: plan, days, daysInMonth, amountKobo }) => ({
    month,
    tier: plan,
    days,
    days_in_month: daysInMonth,
    amount_kobo: amountKobo,
  })),
});

const toCharge = (charge: Charge) => ({
  reference: charge.reference,
  kind: charge.kind,
  amount_kobo: charge.amountKobo,
  state: shownState(charge),
  reason: charge.reason,
  created_at: formatIso(charge.createdAt),
  completed_at: iso(charge.settledAt),
});

function shownState({ state, refund, pageUrl, kind }: Charge) {
  if (refund !== null) return refund === "done" ? "refunded" : "refunding";
  if (state !== "open") return state;
  return kind !== "verification" && pageUrl !== null ? "confirmation_required" : "pending";
}

const iso = (at: number | null): string | null => (at === null ? null : formatIso(at));

/** Accompanies `payment_url`. */
export const paymentNote =
  "Open payment_url to verify a card. The verification charges 100 NGN once; the subscription is charged at the end of the month.";

export const paymentMethodBody = jsonObject({ email: v.optional(emailAddress) });

export const paymentMethod = v.object({ payment_url: v.string(), payment_note: v.string() });

export const paymentMethodExample = {
  payment_url: "https://relay.example.com/pay/8d0f4nq2c6t1",
  payment_note: paymentNote,
};
