import type { AfterFailure, Charge, ChargeFailure, NewCard } from "./books.ts";
import {
  type BooksChange,
  type ChargeChange,
  type OpenBooks,
  type OpenInvoice,
  type RowKey,
  withPeriod,
} from "./books-change.ts";
import { giveBack, isSettled, refundDue, supersede, toBeForgotten, voidInvoices } from "./charges.ts";
import { isHigherTier } from "./plans.ts";
import type { Tenant, TenantChange } from "./tenant.ts";
import { toLogin, toPlanInForce } from "./tenant-change.ts";
import { closeVerification, isNeedless, leadOn, toBeConfirmed } from "./verifications.ts";

/**
 * The effect of a payment that the processor reports as made:
 *
 *   reported ──its outcome is known──▶ known: nothing
 *      ├──open, and what it is for is open──▶ applied
 *      ├──a month's charge that was given up, and nothing else pays its days──▶ applied
 *      └──too late, or once too often──▶ refund_due
 */
export type PaymentOutcome =
  | { readonly kind: "applied" | "refund_due"; readonly change: BooksChange }
  | { readonly kind: "known"; readonly change: null };

export interface PaidVerification {
  readonly card: NewCard;
  readonly transactionId: string;
  /** Used only for the account's first verification. */
  readonly nextInvoiceAt: number;
}

/** A hosted page was paid with a card that can be charged again: that card is in use from now on. */
export function payVerification(
  books: OpenBooks,
  charge: Charge,
  { card, transactionId, nextInvoiceAt }: PaidVerification,
  now: number,
): PaymentOutcome {
  if (isSettled(charge)) return { kind: "known", change: null };
  const { account, tenant, verification, invoices } = books;
  if (charge.state !== "open" || verification?.chargeKey !== charge.key || !tenant) {
    return { kind: "refund_due", change: giveBack(charge, { transactionId, card }, now) };
  }
  const { cardKey, ...saved } = saveCard(books, card, now);
  const left = supersede(books, toBeConfirmed(books), now);
  const owed = invoices.filter(({ kind }) => kind === "subscription");
  const change: BooksChange = {
    ...left,
    ...saved,
    account: {
      ...left.account,
      cardKey,
      verifiedAt: account.verifiedAt ?? now,
      nextInvoiceAt: account.nextInvoiceAt ?? nextInvoiceAt,
    },
    ...(isPlanToCome(tenant) && { tenant: { enforcedTier: tenant.tier } }),
    verification: { key: verification.key, state: "succeeded" },
    charges: [
      {
        ...succeeded(charge, transactionId, now),
        cardKey,
        // 100 NGN once: only the payment for an account's first verification is kept (rules, section 12).
        ...(account.verifiedAt !== null && refundDue(now)),
      },
      ...left.charges,
    ],
    // What the earlier card did not pay, this one pays immediately.
    invoices: [...left.invoices, ...owed.map(({ key }) => ({ key, nextAttemptAt: now }))],
  };
  return { kind: "applied", change: withPeriod(books, change, now) };
}

export interface PaidCharge {
  readonly transactionId: string;
  /** What was paid, if known. */
  readonly amountKobo?: number;
}

/** A charge of a saved card was paid: that pays its invoice, whatever the amount was. */
export function payCharge(
  books: OpenBooks,
  charge: Charge,
  { transactionId, amountKobo = charge.amountKobo }: PaidCharge,
  now: number,
): PaymentOutcome {
  if (isSettled(charge)) return { kind: "known", change: null };
  const invoice = books.invoices.find(({ key }) => key === charge.invoiceKey);
  if (!invoice || !(charge.state === "open" || paysAfterAll(books, charge))) {
    return { kind: "refund_due", change: giveBack(charge, { transactionId, card: null }, now) };
  }
  const { account, tenant, verification } = books;
  const changed =
    tenant && (charge.kind === "upgrade" ? upgraded(books, tenant, charge, invoice) : restored(books, tenant, invoice));
  const after = tenant && { ...tenant, ...changed };
  const isWaiting = after !== null && after.tier !== after.enforcedTier;
  const ended =
    verification && after && isNeedless(books, verification, charge, after) ? closeVerification(books, now) : null;
  // If it was found after a restore, the amount may differ. It pays its days and no more is charged for them: nobody owes
  // the rest, and any excess is credited.
  const paidKobo = amountKobo + invoice.creditUsedKobo;
  const change: BooksChange = {
    ...ended,
    ...(paidKobo > invoice.totalKobo && { account: { creditKobo: account.creditKobo + paidKobo - invoice.totalKobo } }),
    charges: [{ ...succeeded(charge, transactionId, now), amountKobo }, ...(ended?.charges ?? [])],
    invoices: [
      {
        key: invoice.key,
        state: "paid",
        paidAt: now,
        nextAttemptAt: null,
        login: null,
        ...(paidKobo < invoice.totalKobo && { totalKobo: paidKobo, amountKobo }),
      },
    ],
    ...(changed && { tenant: changed }),
    ...(verification && !ended && leadOn(books, verification, charge, isWaiting ? null : "succeeded")),
  };
  return { kind: "applied", change: withPeriod(books, change, now) };
}

/** A charge has failed permanently. Null: it had ended before, and nothing changes. */
export function failCharge(
  books: OpenBooks,
  charge: Charge,
  failure: ChargeFailure,
  after: AfterFailure | null,
  now: number,
): BooksChange | null {
  if (charge.state !== "open") {
    return failure.refund && !isSettled(charge) ? giveBack(charge, { card: failure.card }, now) : null;
  }
  const { tenant, verification } = books;
  const invoice = books.invoices.find(({ key }) => key === charge.invoiceKey);
  // It took effect when the bank asked for a confirmation, and ends because the bank refuses.
  const wasApplied = charge.kind === "upgrade" && charge.pageUrl !== null;
  const consequence = invoice && after ? consequenceOf(books, invoice, after, now) : {};
  const change: BooksChange = {
    ...consequence,
    tenant: { ...(tenant && wasApplied && toPlanInForce(tenant)), ...consequence.tenant },
    charges: [
      {
        key: charge.key,
        state: "failed",
        settledAt: now,
        reason: failure.reason,
        lookUpAt: failure.lookUpAt,
        ...(failure.refund && refundDue(now)),
      },
    ],
    ...(failure.refund && failure.card && { addsCard: toBeForgotten(failure.card, now) }),
    ...(failure.cardRefused && charge.cardKey !== null && { cards: [{ key: charge.cardKey, refused: true }] }),
    ...(verification && leadOn(books, verification, charge, wasApplied ? "given_up" : null)),
  };
  return withPeriod(books, change, now);
}

const succeeded = ({ key }: Charge, transactionId: string, now: number): ChargeChange => ({
  key,
  state: "succeeded",
  settledAt: now,
  transactionId,
  lookUpAt: null,
  reason: null,
});

/** Puts a verified card into use. The same card keeps its row and takes the newer token. */
function saveCard(
  { card: current }: OpenBooks,
  card: NewCard,
  now: number,
): Pick<BooksChange, "cards" | "addsCard"> & { readonly cardKey: RowKey } {
  const isSame =
    current !== null &&
    current.signature !== null &&
    current.signature === card.signature &&
    current.processor === card.processor;
  if (isSame) {
    const { sealed, expMonth, expYear } = card;
    return {
      cardKey: current.key,
      cards: [{ key: current.key, sealed, savedAt: now, expMonth, expYear, refused: false }],
    };
  }
  return {
    cardKey: "added",
    addsCard: { ...card, forgetAt: null, savedAt: now },
    ...(current && { cards: [{ key: current.key, forgetAt: now }] }),
  };
}

/** A monthly charge that was given up too early still pays its days, unless something else does. */
const paysAfterAll = ({ charges }: OpenBooks, { state, kind, invoiceKey }: Charge): boolean =>
  state === "failed" && kind === "subscription" && !charges.some((charge) => charge.invoiceKey === invoiceKey);

/** The plan that the account names has yet to come into force. */
const isPlanToCome = ({ tier, enforcedTier }: Tenant): boolean =>
  enforcedTier === null || isHigherTier(tier, enforcedTier);

/** The plan that was paid for comes into force. */
function upgraded({ verification }: OpenBooks, tenant: Tenant, { key }: Charge, invoice: OpenInvoice): TenantChange {
  const { targetTier, login } = invoice;
  if (targetTier === null) return {};
  const { tier, enforcedTier } = tenant;
  // The customer had to confirm it, and a later upgrade may have raised the target in the meantime.
  const wasConfirmed = verification?.chargeKey === key;
  const target = wasConfirmed && isHigherTier(tier, targetTier) ? tier : targetTier;
  return {
    ...(isHigherTier(target, tier) && { tier: target }),
    ...(isHigherTier(target, enforcedTier ?? "free") && { enforcedTier: target }),
    ...toLogin(login),
  };
}

/** The outstanding charge has succeeded: its consequences for the account end, unless another one is outstanding. */
function restored({ invoices }: OpenBooks, tenant: Tenant, paid: OpenInvoice): TenantChange {
  if (tenant.pastDueAt === null && tenant.paymentSuspendedAt === null) return {};
  const isOutstanding = invoices.some(({ key, firstFailedAt }) => key !== paid.key && firstFailedAt !== null);
  return isOutstanding ? {} : { pastDueAt: null, paymentSuspendedAt: null };
}

/** What a failed charge means for its invoice, and for the standing of the account (rules, section 12). */
function consequenceOf(
  { account, tenant }: OpenBooks,
  invoice: OpenInvoice,
  after: AfterFailure,
  now: number,
): BooksChange {
  if (after.kind === "void") return voidInvoices(account, [invoice]);
  const { key, firstFailedAt } = invoice;
  return {
    invoices: [{ key, firstFailedAt: firstFailedAt ?? now, nextAttemptAt: after.kind === "retry" ? after.at : null }],
    ...(tenant && {
      tenant: {
        pastDueAt: tenant.pastDueAt ?? now,
        ...(after.kind === "suspend" && { paymentSuspendedAt: tenant.paymentSuspendedAt ?? now }),
      },
    }),
  };
}
