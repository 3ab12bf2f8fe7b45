import type { CardVerification, Charge, Invoice, SavedCard } from "../domain/books.ts";
import type { Tenant } from "../domain/tenant.ts";
import type { Books } from "../store/billing.ts";
import { upgradePatienceMs, verificationLifetimeMs } from "./terms.ts";

/** One step of the biller: at most one call to the processor, then one transaction. */
export type Task =
  /** Ask the processor what became of a charge. */
  | { readonly kind: "look_up"; readonly charge: Charge }
  /** Have a stored charge made. */
  | { readonly kind: "send"; readonly charge: Charge }
  /** Nothing was sent, and nobody wants it any more: the request for an upgrade is gone, or the account is. */
  | { readonly kind: "drop"; readonly charge: Charge }
  | { readonly kind: "refund"; readonly charge: Charge }
  | { readonly kind: "forget_card"; readonly card: SavedCard }
  | { readonly kind: "give_up"; readonly verification: CardVerification }
  /** The account was made on a paid tier, and its verification was given up. */
  | { readonly kind: "remove_tenant"; readonly tenant: Tenant }
  | { readonly kind: "end_month" }
  | { readonly kind: "attempt"; readonly invoice: Invoice }
  | { readonly kind: "settle_up" }
  | { readonly kind: "close_books" }
  /** Nothing before `until`; null: nothing until something changes. */
  | { readonly kind: "wait"; readonly until: number | null };

/**
 * What there is to do for an account, from its books alone. The biller asks, does it, and asks again, so a crash at any
 * point leaves nothing but books that say what comes next.
 *
 * The order matters: what may have happened is found out before anything new is begun, so no second charge is ever made
 * beside one that is open.
 *
 * @param processor the name and mode that charges and cards are marked with; those of another one are left alone
 */
export function nextTask(books: Books, processor: string, now: number): Task {
  const { account, tenant, verification, card, cardsToForget, invoices } = books;
  const charges = books.charges.filter((charge) => charge.processor === processor);
  const times: number[] = [];
  const isDue = (at: number | null): boolean => {
    if (at === null) return false;
    if (at > now) times.push(at);
    return at <= now;
  };

  for (const charge of charges) {
    // Unless it was looked up before it was to be sent, and the answer was that there is none yet.
    const wasNeverSent = charge.state === "open" && charge.sentAt === null && charge.lookUpAt === null;
    if (wasNeverSent && charge.kind === "upgrade") {
      if (isDue(charge.createdAt + upgradePatienceMs)) return { kind: "drop", charge };
    } else if (wasNeverSent) {
      return { kind: charge.kind === "subscription" && account.state !== "active" ? "drop" : "send", charge };
    } else if (isDue(charge.lookUpAt)) return { kind: "look_up", charge };
    if (isDue(charge.refundAt)) return { kind: "refund", charge };
  }

  const dueCard = cardsToForget.find(({ forgetAt }) => isDue(forgetAt));
  if (dueCard) return { kind: "forget_card", card: dueCard };

  const live = charges.filter(({ state, kind }) => state === "open" && kind !== "verification");
  if (account.state === "closing") {
    if (live.length > 0) return { kind: "wait", until: earliest(times) };
    if (account.nextInvoiceAt !== null) return { kind: "settle_up" };
    if (card?.forgetAt === null) return { kind: "forget_card", card };
    if (card || cardsToForget.length > 0) return { kind: "wait", until: earliest(times) };
    return { kind: "close_books" };
  }
  if (account.state === "closed") return { kind: "wait", until: earliest(times) };

  // The address leads to the bank while that waits for its customer; what comes of the charge is looked up.
  const isAtBank = live.some(({ key }) => key === verification?.chargeKey);
  if (verification && !isAtBank && isDue(verification.createdAt + verificationLifetimeMs))
    return { kind: "give_up", verification };
  if (tenant && tenant.enforcedTier === null && !verification) return { kind: "remove_tenant", tenant };
  if (isDue(account.nextInvoiceAt)) return { kind: "end_month" };
  for (const invoice of invoices) {
    // Also by another processor, which cannot be asked: what it was told to charge may be charged.
    const isUnderWay = books.charges.some(({ state, invoiceKey }) => state === "open" && invoiceKey === invoice.key);
    if (!isUnderWay && isDue(invoice.nextAttemptAt)) return { kind: "attempt", invoice };
  }
  return { kind: "wait", until: earliest(times) };
}

const earliest = (times: readonly number[]): number | null => (times.length === 0 ? null : Math.min(...times));

/** What the processor is asked for. It counts each by itself, so each waits by itself. */
export type Call = "look_up" | "charge" | "refund" | "forget_card";

/** What a task asks of the processor first; null: nothing. */
export function callOf({ kind }: Task): Call | null {
  switch (kind) {
    case "wait":
    case "remove_tenant":
    case "close_books":
      return null;
    case "send":
      return "charge";
    case "refund":
    case "forget_card":
      return kind;
    default:
      return "look_up";
  }
}
