import type { BillingAccount, Charge, NewCard, SavedCard } from "./books.ts";
import type { BooksChange, CardToAdd, ChargeChange, InvoiceChange, OpenBooks, OpenInvoice } from "./books-change.ts";

/** When an abandoned page is checked again at the latest, if it has no time of its own. */
const watchAgainMs = 60 * 60 * 1000;

/** Its outcome is known and has had its consequences. */
export const isSettled = ({ state, refund }: Pick<Charge, "state" | "refund">): boolean =>
  state === "succeeded" || refund !== null;

/** The month's charge of an account that was deleted meanwhile: its days are in the closing charge. */
export const isObsolete = ({ kind }: Pick<Charge, "kind">, { state }: Pick<BillingAccount, "state">): boolean =>
  kind === "subscription" && state !== "active";

/** Whether the bank may accept a charge of the card. @param processor the one in use: it does not know another's cards */
export const isChargeable = (card: SavedCard | null, processor: string): boolean =>
  card !== null && card.processor === processor && !card.refused;

/** A charge that only the processor knows about, found after a restore. */
export interface FoundCharge extends Pick<Charge, "kind" | "reference" | "processor" | "amountKobo"> {
  /** Null: it is still under way. */
  readonly transactionId: string | null;
}

/**
 * Takes it into the books without an invoice: if paid, it is credited; otherwise it is watched, and refunded should it be paid.
 */
export function adoptCharge(
  { account }: Pick<OpenBooks, "account">,
  { transactionId, amountKobo, ...found }: FoundCharge,
  now: number,
): BooksChange {
  const isPaid = transactionId !== null;
  return {
    ...(isPaid && { account: { creditKobo: account.creditKobo + amountKobo } }),
    addsCharge: {
      ...found,
      amountKobo,
      transactionId,
      state: isPaid ? "succeeded" : "superseded",
      cardKey: null,
      invoiceKey: null,
      createdAt: now,
      sentAt: null,
      settledAt: now,
      lookUpAt: isPaid ? null : now + watchAgainMs,
    },
  };
}

/** Whether it may be made, or made again: it is open, and an earlier request has surely ended. */
export const mayBeSent = ({ state, resendAt }: Pick<Charge, "state" | "resendAt">, now: number): boolean =>
  state === "open" && (resendAt === null || resendAt <= now);

/**
 * The processor is about to be asked. Null if the charge is no longer open, or a request for it may be under way: another
 * process working on the account may just have sent it, and two at the same moment might both be paid.
 */
export const sendCharge = (
  charge: Charge,
  times: { readonly lookUpAt: number; readonly resendAt: number },
  now: number,
): ChargeChange | null => (mayBeSent(charge, now) ? { key: charge.key, sentAt: now, ...times } : null);

/**
 * It was looked up, and is still under way or still watched. Null if another process has settled it in the meantime: if
 * it were looked up again, it would come back as known and paid each time, without end. If another process was told of news
 * since (`lookUpSoon`), the answer may not know of them, so the earlier time stays.
 * @param seenAt when it was to be looked up, as the processor was asked
 */
export function keepWaiting(
  charge: Charge,
  seenAt: number | null,
  until: { readonly lookUpAt: number | null; readonly resendAt?: number; readonly reason?: string },
): ChargeChange | null {
  if (isSettled(charge)) return null;
  const { key, lookUps, lookUpAt } = charge;
  const isHurried = lookUpAt !== null && lookUpAt !== seenAt && lookUpAt < (until.lookUpAt ?? Number.POSITIVE_INFINITY);
  return { key, lookUps: lookUps + 1, ...until, ...(isHurried && { lookUpAt }) };
}

/** There is news of a charge, or of its refund. */
export function lookUpSoon(charge: Charge, now: number): ChargeChange {
  if (charge.refund === "requested") return { key: charge.key, refundAt: now };
  return { key: charge.key, ...(!isSettled(charge) && { lookUpAt: now }) };
}

/** Money that moved has to go back. */
export const refundDue = (now: number) => ({ refund: "due", refundAt: now, lookUpAt: null }) as const;

/** A card that is not to be kept: the processor will be told to forget it. */
export const toBeForgotten = (card: NewCard, now: number): CardToAdd => ({ ...card, forgetAt: now, savedAt: now });

/** The processor has forgotten a card: so do the books. */
export const removeCard = ({ card }: Pick<OpenBooks, "card">, cardKey: number): BooksChange => ({
  removesCard: cardKey,
  ...(card?.key === cardKey && { account: { cardKey: null } }),
});

/** Refunds a payment that nobody is waiting for; its card is not kept. */
export const giveBack = (
  { key }: Charge,
  { card, transactionId }: { readonly card: NewCard | null; readonly transactionId?: string },
  now: number,
): BooksChange => ({
  charges: [{ key, ...refundDue(now), ...(transactionId !== undefined && { transactionId }) }],
  ...(card && { addsCard: toBeForgotten(card, now) }),
});

export interface Superseded {
  readonly charges: readonly ChargeChange[];
  readonly invoices: readonly InvoiceChange[];
  readonly freesDaysOf: readonly number[];
  readonly account: Pick<BillingAccount, "creditKobo">;
}

/**
 * Abandons open charges, and with an upgrade's charge its invoice. They are still looked up: should one be paid after
 * all, the money goes back.
 */
export function supersede({ account, invoices }: OpenBooks, charges: readonly Charge[], now: number): Superseded {
  const isLeft = ({ key }: OpenInvoice) =>
    charges.some(({ kind, invoiceKey }) => kind === "upgrade" && invoiceKey === key);
  return {
    charges: charges.map(({ key, lookUpAt }) => ({
      key,
      state: "superseded",
      settledAt: now,
      lookUpAt: lookUpAt ?? now + watchAgainMs,
    })),
    ...voidInvoices(account, invoices.filter(isLeft)),
  };
}

/** Frees the days of open invoices, and gives back the credit that they used. */
export function voidInvoices(
  { creditKobo }: Pick<BillingAccount, "creditKobo">,
  invoices: readonly OpenInvoice[],
): Omit<Superseded, "charges"> {
  return {
    invoices: invoices.map(({ key }) => ({ key, state: "void", nextAttemptAt: null, login: null })),
    freesDaysOf: invoices.map(({ key }) => key),
    account: { creditKobo: invoices.reduce((sum, { creditUsedKobo }) => sum + creditUsedKobo, creditKobo) },
  };
}
