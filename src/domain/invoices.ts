import type { Charge, Invoice, NewCharge, NewInvoice, NewLogin } from "./books.ts";
import {
  type BooksChange,
  type ChargeToAdd,
  type InvoiceToAdd,
  type OpenBooks,
  type RowKey,
  withPeriod,
} from "./books-change.ts";
import { voidInvoices } from "./charges.ts";
import type { Tier } from "./tenant.ts";
import { closeVerification } from "./verifications.ts";

/** An invoice that is charged as it is made. */
export interface Order {
  readonly invoice: NewInvoice;
  readonly charge: NewCharge;
}

export interface UpgradeOrder extends Order {
  readonly tier: Tier;
  readonly login: NewLogin | null;
}

/**
 * Invoices are drawn up before the books are locked. These are the keys of stored invoices that share a day with a new
 * one: then it was drawn up too early, and has to be drawn up again.
 */
export type Overlapping = readonly number[];

/**
 * An upgrade is about to be charged. Null if another one is, if a day of it has been invoiced, or if the account is being
 * deleted.
 */
export function orderUpgrade(
  { account, charges }: OpenBooks,
  { invoice, charge, tier, login }: UpgradeOrder,
  overlapping: Overlapping,
  now: number,
): BooksChange | null {
  if (account.state !== "active" || charges.some(({ kind }) => kind === "upgrade")) return null;
  if (overlapping.length > 0) return null;
  return {
    account: { creditKobo: account.creditKobo - invoice.creditUsedKobo },
    addsInvoice: { ...charged(invoice, now), targetTier: tier, login },
    addsCharge: chargeOf("upgrade", "added", charge, now),
  };
}

/**
 * A month has ended: its invoice, or none, and the next month's end. What the last invoice did not charge, the next one does.
 * Null if the account is being deleted, if a day of the invoice is in another one, or if this month's end has been dealt with.
 */
export function endMonth(
  { account }: Pick<OpenBooks, "account">,
  invoice: NewInvoice | null,
  overlapping: Overlapping,
  nextInvoiceAt: number,
  now: number,
): BooksChange | null {
  if (account.state !== "active" || nextInvoiceAt <= (account.nextInvoiceAt ?? 0)) return null;
  if (overlapping.length > 0) return null;
  if (!invoice) return { account: { nextInvoiceAt } };
  return {
    account: { nextInvoiceAt, creditKobo: account.creditKobo - invoice.creditUsedKobo },
    addsInvoice: { ...charged(invoice, now), attempts: 0, nextAttemptAt: now },
  };
}

/**
 * The last charge of a deleted account replaces whatever is still open. Null if there was one already, or if a day of it
 * was paid in the meantime.
 */
export function settleUp(
  { account, invoices }: OpenBooks,
  order: Order | null,
  overlapping: Overlapping,
  now: number,
): BooksChange | null {
  if (account.state !== "closing" || account.nextInvoiceAt === null) return null;
  const voided = voidInvoices(account, invoices);
  if (overlapping.some((key) => !voided.freesDaysOf.includes(key))) return null;
  const creditKobo = voided.account.creditKobo - (order?.invoice.creditUsedKobo ?? 0);
  return {
    ...voided,
    account: { nextInvoiceAt: null, creditKobo },
    ...(order && {
      addsInvoice: charged(order.invoice, now),
      addsCharge: chargeOf("closing", "added", order.charge, now),
    }),
  };
}

/** The next charge of an open invoice. Null if the invoice is no longer open, or a charge of it is. */
export function beginAttempt(
  { invoices, charges }: OpenBooks,
  invoiceKey: number,
  charge: NewCharge,
  now: number,
): BooksChange | null {
  const invoice = invoices.find(({ key }) => key === invoiceKey);
  if (!invoice || charges.some((open) => open.invoiceKey === invoiceKey)) return null;
  return {
    invoices: [{ key: invoiceKey, attempts: invoice.attempts + 1, nextAttemptAt: null }],
    addsCharge: chargeOf(invoice.kind, invoiceKey, charge, now),
  };
}

/**
 * The tenant was deleted: from here on the account belongs to no tenant, and what is left to do happens in the
 * background. Only days since the first verification are owed.
 */
export function leaveTenant(books: OpenBooks, now: number): BooksChange {
  const closed = closeVerification(books, now);
  const { verifiedAt } = books.account;
  const account = {
    ...closed.account,
    tenantKey: null,
    state: "closing",
    nextInvoiceAt: verifiedAt === null ? null : now,
  } as const;
  return withPeriod({ ...books, tenant: null }, { ...closed, account }, now);
}

/** All that is left of a deleted account is the amounts, dates and references of its charges. Null: there is more to do first. */
export const closeBooks = ({ state }: OpenBooks["account"]): BooksChange["account"] | null =>
  state === "closing" ? { state: "closed", verifiedAt: null, creditKobo: 0 } : null;

/** An invoice made together with its first charge. */
const charged = (invoice: NewInvoice, now: number): InvoiceToAdd => ({
  ...invoice,
  attempts: 1,
  nextAttemptAt: null,
  createdAt: now,
  targetTier: null,
  login: null,
});

/** Stored before the processor hears of it. */
const chargeOf = (kind: Invoice["kind"], invoiceKey: RowKey, charge: NewCharge, now: number): ChargeToAdd => ({
  ...charge,
  kind: kind satisfies Charge["kind"],
  state: "open",
  invoiceKey,
  createdAt: now,
  sentAt: null,
  settledAt: null,
  transactionId: null,
});
