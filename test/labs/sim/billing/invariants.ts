import { leastChargeKobo } from "../../../../src/billing/terms.ts";
import { usageOf } from "../../../../src/billing/usage.ts";
import type { Charge } from "../../../../src/domain/books.ts";
import { tiersAscending } from "../../../../src/domain/plans.ts";
import type { Tier } from "../../../../src/domain/tenant.ts";
import { type HistoryEnd, prices, type Sample } from "./history.ts";
import { calendar } from "./incarnation.ts";
import type { SimulatedStore } from "./simulated-store.ts";

type ChargeRow = Pick<Charge, "reference" | "kind" | "state" | "amountKobo" | "invoiceKey" | "refund" | "createdAt">;
interface InvoiceRow {
  key: number;
  id: string;
  kind: string;
  state: string;
  totalKobo: number;
  creditUsedKobo: number;
  amountKobo: number;
  firstFailedAt: number | null;
  nextAttemptAt: number | null;
}
interface AccountRow {
  state: string;
  credit: number;
  verifiedAt: number | null;
  nextInvoiceAt: number | null;
  cardKey: number | null;
  dueAt: number | null;
}
interface TenantRow {
  tier: Tier;
  enforcedTier: Tier | null;
  pastDueAt: number | null;
  paymentSuspendedAt: number | null;
  operatorSuspendedAt: number | null;
}

/** What must hold when a history is over, whatever happened in it. Each violation is a sentence. */
export async function violationsOf(end: HistoryEnd, { rows }: Pick<SimulatedStore, "rows">): Promise<string[]> {
  const { model, accountKey, tenantKey, isDeleted, counts } = end;
  const violations: string[] = [...end.unexpected];
  const expect = (holds: boolean, sentence: string) => void (!holds && violations.push(sentence));

  const charges = await rows<ChargeRow>(
    `select reference, kind, state, amount_kobo as amountKobo, invoice_key as invoiceKey, refund, created_at as createdAt
     from charge where account_key = ?1`,
    accountKey,
  );
  const invoices = await rows<InvoiceRow>(
    `select key, id, kind, state, total_kobo as totalKobo, credit_used_kobo as creditUsedKobo, amount_kobo as amountKobo,
       first_failed_at as firstFailedAt, next_attempt_at as nextAttemptAt from invoice where account_key = ?1`,
    accountKey,
  );
  const [account] = await rows<AccountRow>(
    `select state, credit_kobo as credit, verified_at as verifiedAt, next_invoice_at as nextInvoiceAt, card_key as cardKey,
       due_at as dueAt from billing_account where key = ?1`,
    accountKey,
  );
  const [tenant] = await rows<TenantRow>(
    `select tier, enforced_tier as enforcedTier, past_due_at as pastDueAt, payment_suspended_at as paymentSuspendedAt,
       operator_suspended_at as operatorSuspendedAt from tenant where key = ?1 and deleted_at is null`,
    tenantKey,
  );
  const verifications = await rows<{ state: string }>(
    "select state from card_verification where account_key = ?1",
    accountKey,
  );
  const days = await rows<{ day: number; tier: Tier; state: string }>(
    `select day, invoice_day.tier, invoice.state from invoice_day join invoice on invoice.key = invoice_key
     where invoice_day.account_key = ?1`,
    accountKey,
  );
  const byReference = new Map(charges.map((charge) => [charge.reference, charge]));

  // A history in which nothing happens proves nothing.
  for (const what of ["charges", "declines", "crashes"] as const)
    expect(counts[what] > 0, `The history had no ${what}`);

  // Money: what the processor has taken is what the books say, to the kobo.
  let kept = 0;
  const keptVerifications: string[] = [];
  const paidOnce = new Map<string, number>();
  for (const { reference, state, kind, paidKobo, at } of model.transactions.values()) {
    const charge = byReference.get(reference);
    // What failed, or was paid back, before the program was put back to a backup is no longer anybody's.
    if (!charge && end.lost && state !== "paid") continue;
    // The days that it pays for are charged to nobody else: the account counts them from its verification, found again, on.
    if (!charge && kind === "card" && end.lost?.wasVerified === false && at < end.lost.to) continue;
    expect(charge !== undefined, `${reference} is not in the books`);
    if (!charge || (state !== "paid" && state !== "reversed")) {
      expect(charge?.state !== "succeeded", `${reference} counts as paid and is ${state}`);
      continue;
    }
    if (state === "reversed") {
      // Or asked for before the program was put back to a backup; then it is found failed.
      const wasAsked = charge.refund === "requested" || charge.refund === "done";
      expect(wasAsked || (end.lost && charge.state !== "succeeded") === true, `${reference} was paid back unasked`);
      continue;
    }
    expect(
      charge.state === "succeeded" && charge.refund === null,
      `${reference} was paid, is ${charge.state}, refund ${charge.refund}`,
    );
    if (kind === "page") keptVerifications.push(reference);
    else {
      kept += paidKobo;
      const invoiceId = reference.replace(/-a\d+$/, "");
      // Two may have been paid before the program was put back, one of them late; it can only credit what is over.
      const isCredited = charge.invoiceKey === null && end.lost !== null && at < end.lost.to;
      if (!isCredited) paidOnce.set(invoiceId, (paidOnce.get(invoiceId) ?? 0) + 1);
    }
  }
  for (const [id, times] of paidOnce) expect(times === 1, `${id} was paid ${times} times`);
  for (const charge of charges) {
    if (charge.state !== "succeeded") continue;
    expect(model.transactions.has(charge.reference), `${charge.reference} counts as paid, and nobody was asked`);
  }
  if (account?.verifiedAt)
    expect(keptVerifications.length === 1, `${keptVerifications.length} verifications were kept`);

  // The books add up.
  if (account && account.state === "active") {
    const paid = invoices.filter(({ state }) => state === "paid");
    const open = invoices.filter(({ state }) => state === "open");
    const due = sum(paid, "totalKobo") + account.credit + sum(open, "creditUsedKobo");
    expect(kept === due, `${kept} kobo were taken for ${due}`);
  }

  // Days: each in one invoice at most (the key sees to it), and only days on which the plan could be used.
  const held = heldDaysOf(end.samples, end.endedAt);
  const { lost } = end;
  /** Whether the plan could be used then, only the program knew that was put back. */
  const forgotten = lost && { from: calendar.dayOf(lost.from), to: calendar.dayOf(lost.to) };
  const isForgotten = (day: number) => forgotten !== null && day >= forgotten.from && day <= forgotten.to;
  if (account?.state === "active" && tenant) {
    for (const { day, tier } of days) {
      if (isForgotten(day)) continue;
      const best = held.get(day);
      expect(best !== undefined && rank(tier) <= rank(best), `Day ${day} was charged as ${tier} and was ${best}`);
    }
    const isInGoodStanding =
      tenant.pastDueAt === null && tenant.paymentSuspendedAt === null && account.verifiedAt !== null;
    if (isInGoodStanding && account.nextInvoiceAt !== null) {
      const charged = new Set(days.map(({ day }) => day));
      const firstOpen = calendar.dayOf(lastMonthEndBefore(account.nextInvoiceAt)) + 1;
      const firstPaid = calendar.dayOf(account.verifiedAt ?? 0);
      const missing = [...held].filter(
        ([day, tier]) =>
          prices[tier] > 0 && !isForgotten(day) && day >= firstPaid && day < firstOpen - 1 && !charged.has(day),
      );
      // What their cost leaves after the credit may be too little to charge: then they wait for a month that brings more.
      const { totalKobo } = usageOf(new Map(missing), () => false, prices);
      expect(
        missing.length === 0 || totalKobo - account.credit < leastChargeKobo,
        `Days were never charged: ${missing.map(([day, tier]) => `${day} ${tier}`).join(", ")}`,
      );
    }
  }

  // Standing: what the payments imply.
  if (tenant) {
    const isOpen = verifications.some(({ state }) => state === "open");
    expect(
      isOpen || tenant.tier === tenant.enforcedTier,
      `${tenant.tier} is not in force (${tenant.enforcedTier}), and nothing is open`,
    );
    const failing = invoices.filter(({ state, firstFailedAt }) => state === "open" && firstFailedAt !== null);
    expect(
      failing.length > 0 === (tenant.pastDueAt !== null),
      `${failing.length} failing invoices, past due since ${tenant.pastDueAt}`,
    );
    if (tenant.paymentSuspendedAt !== null)
      expect(failing.length > 0, "Suspended for payment with nothing outstanding");
    const isBeingTried = (key: number) =>
      charges.some(({ invoiceKey, state }) => invoiceKey === key && state === "open");
    for (const { key, nextAttemptAt } of failing) {
      const isOver = nextAttemptAt === null && !isBeingTried(key);
      expect(!isOver || tenant.paymentSuspendedAt !== null, "Dunning is over and the account is not suspended");
    }
  }

  // Nothing is left undone.
  expect((account?.dueAt ?? Number.POSITIVE_INFINITY) >= end.endedAt - 1, "Something is overdue");
  if (isDeleted && account) {
    expect(account?.state === "closed", `The account was deleted and its books are ${account?.state}`);
    expect(account?.cardKey === null, "The account was deleted and its card is still here");
    const attempts = charges.filter(({ kind }) => kind === "closing");
    // One in each life: what one that ended before the backup was restored has paid is credited.
    expect(
      attempts.length <= 1 + counts.restores,
      `${attempts.length} closing charges in ${1 + counts.restores} lives`,
    );
    const remembered = await rows("select key from saved_card where account_key = ?1", accountKey);
    expect(remembered.length === 0, "A card of a deleted account was not forgotten");
  }
  return violations;
}

const rank = (tier: Tier) => tiersAscending.indexOf(tier);

const sum = (rows: readonly InvoiceRow[], field: "totalKobo" | "creditUsedKobo") =>
  rows.reduce((total, row) => total + row[field], 0);

/** The highest plan that could be used on each day, by what was seen from outside. */
function heldDaysOf(samples: readonly Sample[], endedAt: number): Map<number, Tier> {
  const held = new Map<number, Tier>();
  samples.forEach(({ at, tier }, i) => {
    const until = samples[i + 1]?.at ?? endedAt;
    if (tier === null || tier === "free") return;
    // What ends at midnight was not held on the day that begins then.
    const lastDay = calendar.dayOf(Math.max(at, until - 1));
    for (let day = calendar.dayOf(at); day <= lastDay; day += 1) {
      const other = held.get(day);
      if (other === undefined || rank(tier) > rank(other)) held.set(day, tier);
    }
  });
  return held;
}

/** The month's end before another one. */
const lastMonthEndBefore = (monthEnd: number) => {
  let at = calendar.nextMonthEnd(monthEnd - 70 * 24 * 60 * 60 * 1000);
  for (let next = calendar.nextMonthEnd(at); next < monthEnd; next = calendar.nextMonthEnd(at)) at = next;
  return at;
};
