import type { CardVerification, Charge, Invoice, SavedCard } from "../domain/books.ts";
import { isChargeable, isObsolete } from "../domain/charges.ts";
import type { Tenant } from "../domain/tenant.ts";
import type { Clock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import type { Books } from "../store/billing.ts";
import type { Store } from "../store/store.ts";
import { type BillingCalendar, monthAfter, monthBefore } from "./calendar.ts";
import type { CardVault } from "./card-vault.ts";
import { type Charging, maySendAgain, newVerification, type Outcome, processorId } from "./charging.ts";
import type { EarlierLife } from "./earlier-life.ts";
import { cardCharge, cardlessCharge, type Invoicing } from "./invoicing.ts";
import type { Call, Task } from "./next-task.ts";
import type { ChargeState, PaymentProcessor, Unknown } from "./processor.ts";
import { chargeReference, type References } from "./references.ts";
import { afterRefundRequest, nextRefundStep, type RefundNote } from "./refund.ts";
import { dayMs, operatorPauseMs, refundPatienceMs, verificationKobo } from "./terms.ts";

export interface PerformDeps {
  store: Store;
  clock: Clock;
  log: Log;
  processor: PaymentProcessor;
  cards: CardVault;
  calendar: BillingCalendar;
  charging: Charging;
  invoicing: Invoicing;
  references: References;
  earlierLife: EarlierLife;
  /** No call of this kind for so long, for any account. */
  pause(call: Call, ms: number): void;
  announce(tenant: Tenant): void;
  /** Deletes an account whose verification was given up. */
  removeTenant(tenant: Tenant): Promise<void>;
}

/** Does one task of an account. @returns when to try again, if it could not be done now */
export type Perform = (books: Books, task: Exclude<Task, { kind: "wait" }>) => Promise<number | undefined>;

/** How long to wait when the processor did not answer, or did not accept our key. */
const retryPauseMs = 10 * 60_000;

/** How long after an unanswered look-up the task that needs it starts again. */
const seekPauseMs = 60_000;

/** A charge that was open in a backup is older than this by the time the backup is restored. */
const freshChargeMs = 2 * 60 * 60_000;

/** How each task of the biller is done: one call to the processor at most, then one transaction (see `nextTask`). */
export function createPerform(deps: PerformDeps): Perform {
  const { store, clock, log, processor, cards, calendar, charging, invoicing, references, earlierLife } = deps;
  const { pause, announce, removeTenant } = deps;
  const id = processorId(processor);

  return async function perform(books, task) {
    const { account } = books;
    switch (task.kind) {
      case "look_up":
        return lookUp(books, task.charge);
      case "send":
        return send(books, task.charge);
      case "drop":
        // It was not sent by this server, but perhaps before the books were restored from a backup.
        heed("look_up", await charging.settle(books, task.charge));
        return;
      case "refund":
        await refund(task.charge);
        return;
      case "forget_card":
        await forget(books, task.card);
        return;
      case "give_up":
        return giveUp(books, task.verification);
      case "remove_tenant":
        await removeTenant(task.tenant);
        return;
      case "end_month":
        return endMonth(books);
      case "attempt":
        return attempt(books, task.invoice);
      case "settle_up":
        return settleUp(books);
      case "close_books":
        await store.closeBooks(account.key, clock.now());
    }
  };

  async function endMonth({ account, tenant, invoices }: Books): Promise<number | undefined> {
    const month = calendar.monthEndedAt(account.nextInvoiceAt ?? clock.now());
    // Another charge of the previous month may exist next to the one that paid for it. While that month is unpaid, its
    // own attempts find such charges.
    const before = monthBefore(month);
    const idOfBefore = references.invoiceId(account.id, "subscription", before, 1);
    const isBeforeOpen = invoices.some((invoice) => invoice.id === idOfBefore);
    const others = await earlierLife.credit(account, [
      ...(isBeforeOpen ? [] : [{ kind: "subscription", month: before } as const]),
      { kind: "upgrade", month },
      { kind: "closing", month: "" },
    ]);
    if (others.kind === "unknown") return whenItAnswers(others);
    // The books have changed: run again with the credit.
    if (others.any) return;
    const page = await earlierLife.paidPage(account);
    if (page.kind === "unknown") return whenItAnswers(page);
    if (page.reference !== null && tenant) return saveCardOf(tenant, page.reference);
    // The days of an account that cannot be used are not charged, and its card has already been declined often enough.
    const isSuspended = tenant?.paymentSuspendedAt != null;
    const invoiceId = references.invoiceId(account.id, "subscription", month, 1);
    const invoice = isSuspended ? null : await invoicing.ofMonth(account, invoiceId, month, clock.now());
    if (!invoice) {
      const own = await earlierLife.credit(account, [{ kind: "subscription", month }]);
      if (own.kind === "unknown") return whenItAnswers(own);
      if (own.any) return;
    }
    await store.endMonth(account.key, invoice, calendar.endOf(monthAfter(month)), clock.now());
  }

  /** The card given after the backup is the one to charge. Its verification is refunded, unless it is the account's first. */
  async function saveCardOf(tenant: Tenant, reference: string): Promise<number | undefined> {
    const ids = newVerification(references.accountId(tenant.id));
    const { verification } = await store.openVerification(tenant.key, ids, null, clock.now());
    const page = { reference, processor: id, amountKobo: verificationKobo, cardKey: null, lookUpAt: clock.now() };
    const charge = await store.preparePage(verification.key, page, clock.now());
    log.write("warn", "payment.found_again", { kind: "verification" });
    return charge ? lookUp(await store.books(charge.accountKey), charge) : undefined;
  }

  async function attempt({ card }: Books, invoice: Invoice): Promise<number | undefined> {
    const number = await earlierLife.numberOf((nth) => chargeReference(invoice.kind, invoice.id, nth));
    if (number.kind === "unknown") return whenItAnswers(number);
    const charge =
      isChargeable(card, id) || number.isKnown
        ? cardCharge(invoice, number.nth, id, card?.key ?? null)
        : cardlessCharge(invoice, id, card?.key ?? null);
    await store.prepareAttempt(invoice.key, charge, clock.now());
  }

  async function settleUp({ account, card, invoices }: Books): Promise<number | undefined> {
    const months = await invoicing.monthsOfClosing(account, clock.now());
    const others = await earlierLife.credit(
      account,
      months.flatMap((month) => [
        { kind: "subscription", month },
        { kind: "upgrade", month },
      ]),
    );
    if (others.kind === "unknown") return whenItAnswers(others);
    if (others.any) return;
    const number = await earlierLife.numberOf((nth) =>
      chargeReference("closing", references.invoiceId(account.id, "closing", "", nth), 1),
    );
    if (number.kind === "unknown") return whenItAnswers(number);
    const credit = invoices.reduce((sum, { creditUsedKobo }) => sum + creditUsedKobo, 0);
    const invoiceId = references.invoiceId(account.id, "closing", "", number.nth);
    const canBeSent = number.isKnown || isChargeable(card, id);
    const invoice = canBeSent ? await invoicing.ofClosing(account, invoiceId, credit, clock.now()) : null;
    const order = invoice && { invoice, charge: cardCharge(invoice, 1, id, card?.key ?? null) };
    await store.settleUp(account.key, order, clock.now());
  }

  function whenItAnswers(unknown: Unknown): number {
    heed("look_up", unknown);
    return clock.now() + (unknown.retryAfterMs ?? seekPauseMs);
  }

  /**
   * A monthly charge that was open in a backup may have been declined after the backup, and made again under the next
   * number. Then this one is over, and the next attempt finds the other.
   */
  async function send(books: Books, charge: Charge): Promise<number | undefined> {
    const invoice = books.invoices.find(({ key }) => key === charge.invoiceKey);
    if (invoice?.kind === "subscription" && clock.now() - charge.createdAt > freshChargeMs) {
      const number = await earlierLife.numberOf((nth) => chargeReference(invoice.kind, invoice.id, nth));
      if (number.kind === "unknown") return whenItAnswers(number);
      if (number.isKnown) {
        const failure = {
          reason: "The charge was made again under the next reference",
          cardRefused: false,
          refund: false,
        };
        const at = clock.now();
        await store.failCharge(charge.reference, { ...failure, card: null, lookUpAt: at }, { kind: "retry", at }, at);
        return;
      }
    }
    heed("charge", await charging.send(books, charge));
    return undefined;
  }

  async function lookUp(books: Books, charge: Charge): Promise<number | undefined> {
    const outcome = await charging.settle(books, charge);
    heed("look_up", outcome);
    // An upgrade is made again only while its client waits for it.
    const isToBeSent = charge.kind !== "upgrade" && !isObsolete(charge, books.account);
    if (outcome.kind === "not_found" && isToBeSent && maySendAgain(charge, clock.now())) {
      return send(books, charge);
    }
    return undefined;
  }

  /** Keeps the next account from calling a busy or broken processor right away. */
  function heed(call: Call, outcome: Outcome | ChargeState): void {
    if (outcome.kind === "operator") pause(call, retryPauseMs);
    if (outcome.kind === "unknown" && outcome.retryAfterMs)
      pause(call, Math.min(outcome.retryAfterMs, operatorPauseMs));
  }

  /** Looks up what is left to refund first: only the processor knows whether an earlier request arrived. */
  async function refund(charge: Charge): Promise<void> {
    const { reference } = charge;
    const state = await processor.lookUp(reference);
    heed("look_up", state);
    const step = nextRefundStep(charge, state, clock.now());
    if (step.kind === "note") return noteRefund(reference, step.note);
    const { amountKobo } = step;
    if (step.isRepeated) {
      const reason = "The payment still stands two weeks after its refund was requested; it is requested again";
      log.write("error", "payment.refund_failed", { reason });
    }
    const answer = await processor.refund({ reference, amountKobo });
    if (answer.kind === "accepted") log.write("info", "payment.refunded", { amountKobo });
    else if (answer.kind !== "already_refunded") {
      log.write(answer.kind === "rejected" ? "error" : "warn", "payment.refund_failed", { reason: answer.reason });
    }
    return noteRefund(reference, afterRefundRequest(answer));
  }

  function noteRefund(reference: string, { stage, checkAfterMs, isRequestedNow }: RefundNote): Promise<void> {
    const now = clock.now();
    const times = {
      refundAt: checkAfterMs === null ? null : now + checkAfterMs,
      ...(isRequestedNow && { resendAt: now + refundPatienceMs }),
    };
    return store.settleRefund(reference, stage, times, now);
  }

  async function forget({ account }: Books, card: SavedCard): Promise<void> {
    // The processor that knows the card can no longer be asked; our own copy is deleted all the same.
    if (card.processor !== id) return store.cardForgotten(card.key, clock.now());
    const answer = await processor.forgetCard(cards.open(card, account.id).token);
    if (answer.kind === "forgotten") return store.cardForgotten(card.key, clock.now());
    log.write("warn", "payment.card_not_forgotten", { reason: answer.reason });
    const pauseMs = answer.kind === "rejected" ? dayMs : retryPauseMs;
    return store.forgetCardLater(card.key, clock.now() + pauseMs, clock.now());
  }

  /**
   * Only once the processor has said that nobody has paid, since this may erase an account for good. Of its answers only a
   * payment is stored: a callback that comes meanwhile keeps the look-up that it asks for.
   */
  async function giveUp(books: Books, { key, chargeKey }: CardVerification): Promise<number | undefined> {
    const forgotten = await earlierLife.paidPage(books.account, { beforeErasing: true });
    if (forgotten.kind === "unknown") return whenItAnswers(forgotten);
    if (forgotten.reference !== null && books.tenant) return saveCardOf(books.tenant, forgotten.reference);
    const page = books.charges.find((charge) => charge.key === chargeKey);
    const state = page ? await processor.lookUp(page.reference) : null;
    if (state?.kind === "unknown") return whenItAnswers(state);
    if (page && state?.kind === "succeeded") {
      const outcome = await charging.hear(books, page, state);
      if (outcome.kind === "paid") return;
    }
    const tenant = await store.giveUpVerification(key, clock.now());
    log.write("info", "verification.given_up", { hasPlan: tenant?.enforcedTier != null });
    if (tenant) announce(tenant);
    return undefined;
  }
}
