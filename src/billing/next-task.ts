import type { CardVerification, Charge, Invoice, SavedCard } from "../domain/books.ts";
import { isObsolete } from "../domain/charges.ts";
import type { Tenant } from "../domain/tenant.ts";
import type { Books } from "../store/billing.ts";
import { upgradePatienceMs, verificationLifetimeMs } from "./terms.ts";

/** One step of the biller: at most one call to the processor, then one transaction. */
export type Task =
  /** Ask the processor what became of a charge. */
  | { readonly kind: "look_up"; readonly charge: Charge }
  /** Make a stored charge. */
  | { readonly kind: "send"; readonly charge: Charge }
  /** Nothing was sent, and the charge is no longer wanted: the upgrade request is gone, or the account is. */
  | { readonly kind: "drop"; readonly charge: Charge }
  | { readonly kind: "refund"; readonly charge: Charge }
  | { readonly kind: "forget_card"; readonly card: SavedCard }
  | { readonly kind: "give_up"; readonly verification: CardVerification }
  /** The account was created on a paid tier, and its verification was given up. */
  | { readonly kind: "remove_tenant"; readonly tenant: Tenant }
  | { readonly kind: "end_month" }
  | { readonly kind: "attempt"; readonly invoice: Invoice }
  | { readonly kind: "settle_up" }
  | { readonly kind: "close_books" }
  /** Nothing before `until`; null: nothing until something changes. */
  | { readonly kind: "wait"; readonly until: number | null };

/**
 * What to do next for an account, decided from its books alone. The biller asks, does it, and asks again, so after a
 * crash at any point the books still say what comes next.
 *
 * The order matters: what may have happened is found out before anything new begins, so no second charge is ever made
 * alongside an open one.
 *
 * @param processor the name and mode that charges and cards are marked with; those of another processor are left alone
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
    // A charge with a look-up time is different: it was looked up before sending, without a conclusive answer so far.
    const wasNeverSent = charge.state === "open" && charge.sentAt === null && charge.lookUpAt === null;
    if (wasNeverSent && charge.kind === "upgrade") {
      if (isDue(charge.createdAt + upgradePatienceMs)) return { kind: "drop", charge };
    } else if (wasNeverSent) {
      return { kind: isObsolete(charge, account) ? "drop" : "send", charge };
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

  // The payment URL leads to the bank while the bank waits for its customer; look-ups find out what becomes of the
  // charge.
  const isAtBank = live.some(({ key }) => key === verification?.chargeKey);
  if (verification && !isAtBank && isDue(verification.createdAt + verificationLifetimeMs))
    return { kind: "give_up", verification };
  if (tenant && tenant.enforcedTier === null && !verification) return { kind: "remove_tenant", tenant };
  if (isDue(account.nextInvoiceAt)) return { kind: "end_month" };
  for (const invoice of invoices) {
    // Includes charges by another processor, which cannot be asked: what it was told to charge may be charged.
    const isUnderWay = books.charges.some(({ state, invoiceKey }) => state === "open" && invoiceKey === invoice.key);
    if (!isUnderWay && isDue(invoice.nextAttemptAt)) return { kind: "attempt", invoice };
  }
  return { kind: "wait", until: earliest(times) };
}

const earliest = (times: readonly number[]): number | null => (times.length === 0 ? null : Math.min(...times));

/** The kinds of calls to the processor. It counts each separately, so each waits separately. */
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
