import type { CardVerification, Charge, Invoice, SavedCard } from "../domain/books.ts";
import type { Tenant } from "../domain/tenant.ts";
import type { Clock } from "../lib/clock.ts";
import type { KeyedLock } from "../lib/keyed-lock.ts";
import { createSemaphore } from "../lib/limiter.ts";
import type { Log } from "../lib/log.ts";
import { createLoop, type Loop } from "../lib/loop.ts";
import type { Books } from "../store/billing.ts";
import type { Store } from "../store/store.ts";
import { type BillingCalendar, monthAfter, monthBefore } from "./calendar.ts";
import type { CardVault } from "./card-vault.ts";
import { type Charging, maySendAgain, newVerification, type Outcome, processorId } from "./charging.ts";
import type { EarlierLife } from "./earlier-life.ts";
import { cardCharge, cardlessCharge, type Invoicing } from "./invoicing.ts";
import { createLeftOut } from "./left-out.ts";
import { type Call, callOf, nextTask, type Task } from "./next-task.ts";
import type { PaymentProcessor, Unknown } from "./processor.ts";
import { chargeReference, type References } from "./references.ts";
import { tellFailure } from "./tell-failure.ts";
import { dayMs, operatorPauseMs, refundPatienceMs, verificationKobo } from "./terms.ts";
import { createTurns, type Turns } from "./turns.ts";

export interface BillerDeps {
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
  /** Serializes work on each account; requests take it too. */
  lock: KeyedLock<number>;
  /** It runs here from now on, so this node may be given the job. */
  offer(): void;
  /** It no longer runs here: the job is another node's. */
  withdraw(): void;
  /** Whether this node holds the job. */
  mayRun(): boolean;
  /** Wakes the node that holds the job. */
  passOn(): void;
  announce(tenant: Tenant): void;
  /** Deletes an account whose verification was given up. */
  removeTenant(tenant: Tenant): Promise<void>;
}

export interface Biller extends Loop {
  /** Something changed for an account: process it now, however many others are due. */
  hurry(accountKey: number): void;
}

/** Accounts processed at a time. */
const concurrency = 4;
const accountsInOneGo = 100;

/** More steps than an account ever needs in one run, so that a bug cannot loop forever. */
const mostSteps = 1000;

/** Upper bound on the pause, in case a timer is lost because the clock was set back. */
const longestPauseMs = 60_000;

/** How long to wait before checking an unfinished refund again. */
const refundPauseMs = dayMs;
/** The first check comes early, because many refunds finish immediately. */
const refundCheckMs = 60_000;
const retryPauseMs = 10 * 60_000;

/** How long after an unanswered look-up the task that needs it starts again. */
const seekPauseMs = 60_000;

/** A charge that was open in a backup is older than this by the time the backup is restored. */
const freshChargeMs = 2 * 60 * 60_000;

/**
 * When a refund that was requested may be requested again; null: not known, since a version that never did so requested it.
 * What the charge then has, if anything, is when it could have been sent again itself, minutes after it was made.
 */
const refundResendAt = ({ resendAt, createdAt }: Charge): number | null =>
  resendAt !== null && resendAt >= createdAt + refundPatienceMs ? resendAt : null;

/**
 * Does the pending work of each account: look-ups, month ends, retried charges, refunds, closing charges. The books say
 * what comes next, so it resumes where a crash stopped it and catches up after downtime.
 */
export function createBiller(deps: BillerDeps): Biller {
  const { store, clock, log, processor, cards, calendar, charging, invoicing, references, earlierLife } = deps;
  const { lock, offer, withdraw, mayRun, passOn, announce, removeTenant } = deps;
  const id = processorId(processor);
  const leftOut = createLeftOut(clock);
  let cancelTimer = () => {};

  /** Does everything due for one account, once it is not busy, and unless it has to wait for its turn. `turn`: the call it may make. */
  const work = (accountKey: number, turn: Call | null): Promise<void> =>
    lock.run(accountKey, async () => {
      let given = turn;
      for (let step = 0; step < mostSteps; step += 1) {
        // Turns and news also arrive outside the loop. What is left stays due in the books, where the job's next holder
        // finds it.
        if (!mayRun()) return;
        const books = await store.books(accountKey);
        const task = nextTask(books, id, clock.now());
        if (task.kind === "wait") {
          await store.postpone(accountKey, books.version, task.until);
          return;
        }
        const call = callOf(task);
        if (call !== null && call !== given && !turns.isOpen(call)) {
          turns.wait(accountKey, books.version, call);
          return;
        }
        if (call === given) given = null;
        const beginAgainAt = await perform(books, task);
        if (beginAgainAt !== undefined) {
          await store.postpone(accountKey, books.version, beginAgainAt);
          return;
        }
      }
      throw new Error(`Billing account ${accountKey} does not settle`);
    });

  const turns: Turns = createTurns({
    clock,
    chargesPerSecond: processor.chargesPerSecond,
    onTurn: (accountKey, call) => leftOut.run(accountKey, () => work(accountKey, call)).catch(onFailure),
    onEnded(accountKey) {
      if (news.delete(accountKey)) hurry(accountKey);
      // The account's next task may be due before the loop would look again.
      loop.wake();
    },
  });

  /** @returns when to try again, if it could not be done now */
  async function perform(books: Books, task: Exclude<Task, { kind: "wait" }>): Promise<number | undefined> {
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
  }

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
    const canBeSent = card !== null && card.processor === id && !card.refused;
    const charge =
      canBeSent || number.isKnown
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
    const isChargeable = number.isKnown || (card !== null && card.processor === id && !card.refused);
    const invoice = isChargeable ? await invoicing.ofClosing(account, invoiceId, credit, clock.now()) : null;
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
    const isToBeSent =
      charge.kind === "closing" || (charge.kind === "subscription" && books.account.state === "active");
    if (outcome.kind === "not_found" && isToBeSent && maySendAgain(charge, clock.now())) {
      return send(books, charge);
    }
    return undefined;
  }

  /** Keeps the next account from calling a busy or broken processor right away. */
  function heed(call: Call, outcome: Outcome): void {
    if (outcome.kind === "operator") turns.pause(call, retryPauseMs);
    if (outcome.kind === "unknown" && outcome.retryAfterMs)
      turns.pause(call, Math.min(outcome.retryAfterMs, operatorPauseMs));
  }

  /** Looks up what is left to refund first: only the processor knows whether an earlier refund request arrived. */
  async function refund(charge: Charge): Promise<void> {
    const { reference, refund: stage } = charge;
    const state = await processor.lookUp(reference);
    const settle = (next: "due" | "requested" | "done", pauseMs: number | null, isNew = false) => {
      const now = clock.now();
      const times = {
        refundAt: pauseMs === null ? null : now + pauseMs,
        ...(isNew && { resendAt: now + refundPatienceMs }),
      };
      return store.settleRefund(reference, next, times, now);
    };
    if (state.kind === "unknown") {
      heed("look_up", state);
      return settle(stage ?? "due", retryPauseMs);
    }
    if (state.kind === "reversed") return settle("done", null);
    if (state.kind !== "succeeded") return settle(stage ?? "due", refundPauseMs);
    if (stage === "requested") {
      const resendAt = refundResendAt(charge);
      if (resendAt === null || resendAt > clock.now()) return settle(stage, refundPauseMs, resendAt === null);
      const reason = "The payment still stands two weeks after its refund was requested; it is requested again";
      log.write("error", "payment.refund_failed", { reason });
    }
    // The amount paid, not the amount requested: a refund of more than was paid is refused.
    const answer = await processor.refund({ reference, amountKobo: state.amountKobo });
    if (answer.kind === "accepted") {
      log.write("info", "payment.refunded", { amountKobo: state.amountKobo });
      return settle("requested", refundCheckMs, true);
    }
    if (answer.kind === "already_refunded") return settle("done", null);
    log.write(answer.kind === "rejected" ? "error" : "warn", "payment.refund_failed", { reason: answer.reason });
    return settle("due", answer.kind === "rejected" ? refundPauseMs : retryPauseMs);
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

  async function step(): Promise<"more" | "idle"> {
    const now = clock.now();
    const { accounts, nextAt } = await store.dueAccounts(now, accountsInOneGo + turns.size + leftOut.size);
    const due = accounts.filter(({ key, version }) => !turns.isWaiting(key, version) && !leftOut.has(key));
    if (due.length === 0) {
      cancelTimer();
      const pauseMs = Math.min((nextAt ?? Number.POSITIVE_INFINITY) - now, leftOut.nextMs, longestPauseMs);
      cancelTimer = clock.after(pauseMs, () => loop.wake());
      return "idle";
    }
    const queue = due.map(({ key }) => key).values();
    const results = await Promise.allSettled(
      Array.from({ length: concurrency }, () => leftOut.each(queue, (key) => work(key, null))),
    );
    const failed = results.find((result) => result.status === "rejected");
    if (failed) throw failed.reason;
    return "more";
  }

  function onFailure(error: unknown): void {
    tellFailure(log, error);
  }

  const loop = createLoop({ clock, mayStep: mayRun, passOn, step, onFailure });
  const hurried = createSemaphore(concurrency);
  const hurrying = new Set<Promise<void>>();
  /** Accounts for which news arrived during their turn. */
  const news = new Set<number>();
  let isRunning = false;

  function hurry(accountKey: number): void {
    if (!isRunning) return;
    // Waiting for the turn here would hold up the others.
    if (turns.hasTurn(accountKey)) {
      news.add(accountKey);
      return;
    }
    const done = hurried
      .run(() => (isRunning ? leftOut.run(accountKey, () => work(accountKey, null)) : Promise.resolve()))
      .catch(onFailure)
      .finally(() => {
        hurrying.delete(done);
        loop.wake();
      });
    hurrying.add(done);
  }

  return {
    ...loop,
    hurry,
    start() {
      isRunning = true;
      loop.start();
      offer();
    },
    async stop() {
      isRunning = false;
      await Promise.all([loop.stop(), turns.stop(), ...hurrying]);
      withdraw();
    },
  };
}
