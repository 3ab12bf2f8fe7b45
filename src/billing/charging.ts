import type { Origin } from "../domain/audit.ts";
import type { AfterFailure, Charge } from "../domain/books.ts";
import { isObsolete, mayBeSent } from "../domain/charges.ts";
import type { Tenant } from "../domain/tenant.ts";
import type { Clock } from "../lib/clock.ts";
import { newToken } from "../lib/id.ts";
import type { Log } from "../lib/log.ts";
import type { Books, NewVerification } from "../store/billing.ts";
import type { Store } from "../store/store.ts";
import type { BillingCalendar } from "./calendar.ts";
import type { CardVault } from "./card-vault.ts";
import { afterFailure } from "./dunning.ts";
import type { ChargeAnswer, ChargeState, PaymentProcessor, Rejected, Unknown } from "./processor.ts";
import { bankPatienceMs, dayMs, nextLookUpAt, operatorPauseMs, resendPauseMs, upgradePatienceMs } from "./terms.ts";
import { judgePayment, type PaymentVerdict } from "./verdict.ts";

export interface FailedCharge {
  readonly amountKobo: number;
  readonly reason: string;
  /** Null: it is not retried automatically. */
  readonly retryAt: number | null;
  readonly isSuspended: boolean;
}

export interface ChargingDeps {
  store: Store;
  clock: Pick<Clock, "now">;
  log: Log;
  processor: PaymentProcessor;
  cards: CardVault;
  calendar: BillingCalendar;
  /** Where the browser goes after a confirmation. */
  returnUrl(): string;
  /** The account's standing or plan may have changed. `login`: it has the one that came with an upgrade. */
  announce(tenant: Tenant, changed?: "login"): void;
  /** A charge that nobody is waiting for has failed. */
  onFailed?(tenant: Tenant, charge: FailedCharge): void;
}

/**
 * What became of a charge, as far as is known now: a verdict that has been stored, or why there is none.
 * `operator`: our key or our account at the processor is at fault.
 */
export type Outcome = PaymentVerdict | Pick<Unknown, "kind" | "retryAfterMs"> | { readonly kind: "operator" };

/**
 * The only way the state of a charge changes: ask the processor, judge, store. Safe to repeat, in any order.
 * `by`: who ordered the upgrade and waits for it, for the audit.
 */
export interface Charging {
  /** Makes a stored charge of a saved card, or makes it again under the same reference. */
  send(books: Books, charge: Charge, by?: Origin): Promise<Outcome>;
  /** Looks a charge up and stores what follows. Never makes one. */
  settle(books: Books, charge: Charge, by?: Origin): Promise<Outcome>;
  /** Stores what follows from an answer about a charge that the processor has already given. */
  hear(books: Books, charge: Charge, state: ChargeState): Promise<Outcome>;
  /** Something changed for a reference: an answer requested earlier must not postpone its next look-up. */
  hint(reference: string): void;
}

/** `paystack:live`: charges and cards are marked with where they exist. */
export const processorId = ({ name, mode }: Pick<PaymentProcessor, "name" | "mode">): string => `${name}:${mode}`;

/** An account id and a random token for `payment_url` (130 bits), used if they have to be created. */
export const newVerification = (accountId: string): NewVerification => ({ accountId, token: newToken(130) });

const minuteMs = 60_000;

/** A failure is checked once more after this long: a request that was slow in transit has arrived by then. */
const recheckMs = 60 * minuteMs;

export function createCharging(deps: ChargingDeps): Charging {
  const { store, clock, log, processor, cards, calendar, returnUrl, announce } = deps;

  /** References being asked about, and whether this process has had news of each since; the store knows of the others'. */
  const asked = new Map<string, boolean>();

  async function asking(charge: Charge, ask: () => Promise<Outcome>): Promise<Outcome> {
    asked.set(charge.reference, false);
    try {
      return await ask();
    } finally {
      asked.delete(charge.reference);
    }
  }

  /** @param before the books as they were when the charge was asked about */
  function tell({ tenant: before }: Books, tenant: Tenant): void {
    announce(tenant);
    // A charge changes the password only with the login that its upgrade brings.
    if (before && before.passwordHash !== tenant.passwordHash) announce(tenant, "login");
  }

  function keepWaiting(charge: Charge, times: Parameters<Store["keepWaiting"]>[1], now: number): Promise<void> {
    return store.keepWaiting(charge, asked.get(charge.reference) ? { ...times, lookUpAt: now } : times, now);
  }

  async function send(books: Books, charge: Charge, by?: Origin): Promise<Outcome> {
    const { card, account } = books;
    // A restored database may be about to repeat what was done after its backup.
    const state = charge.sentAt === null ? await processor.lookUp(charge.reference) : null;
    if (state?.kind === "unknown") return wait(charge, { ...state, underWay: false });
    if (state && state.kind !== "not_found") return apply(books, charge, judgePayment(charge, state, processor), by);
    const now = clock.now();
    const times = { lookUpAt: now + minuteMs, resendAt: now + resendPauseMs };
    // This comes first: another server may be sending the charge right now, and that one may be paid.
    if (!(await store.markSent(charge.reference, times, now))) return settle(books, charge, by);
    if (!card || card.processor !== charge.processor) {
      return fail(books, charge, "No card is saved; verify one", null);
    }
    if (card.key !== charge.cardKey) return fail(books, charge, "Its card was replaced by another one", null);
    if (card.refused) return fail(books, charge, "The card was declined permanently; verify another one", null);
    const { token, email } = cards.open(card, account.id);
    const { reference, amountKobo } = charge;
    const answer = await processor.chargeSavedCard({ reference, token, email, amountKobo, returnUrl: returnUrl() });
    return take(books, { ...charge, sentAt: now, ...times }, answer, by);
  }

  function take(books: Books, charge: Charge, answer: ChargeAnswer, by?: Origin): Promise<Outcome> {
    switch (answer.kind) {
      case "state":
        return apply(books, charge, judgePayment(charge, answer.state, processor), by);
      case "duplicate":
        return settle(books, charge, by);
      case "rejected":
        return reject(books, charge, answer);
      case "unknown":
        log.write("warn", "payment.unknown", { processor: processorId(processor), reason: answer.reason });
        return wait(charge, answer);
    }
  }

  /** The request had no effect. If the operator has to fix the cause, it does not count against the customer. */
  async function reject(books: Books, charge: Charge, { reason, retry }: Rejected): Promise<Outcome> {
    if (retry !== "operator") {
      await failAs(books, charge, { reason, cardRefused: retry === "new_card", lookUpAt: clock.now() + recheckMs });
      return { kind: "failed", reason, cardRefused: retry === "new_card" };
    }
    log.write("error", "payment.refused", { processor: processorId(processor), reason });
    const at = clock.now() + operatorPauseMs;
    if (charge.kind === "upgrade") await fail(books, charge, "The payment could not be made", null);
    else await keepWaiting(charge, { lookUpAt: at, resendAt: at }, clock.now());
    return { kind: "operator" };
  }

  /** Money may have moved; the next look-up tells. A request that is not under way may be repeated right after that look-up. */
  async function wait(charge: Charge, answer: Unknown): Promise<Outcome> {
    const { retryAfterMs = minuteMs, underWay } = answer;
    const now = clock.now();
    const resendAt = underWay ? now + resendPauseMs : now;
    await keepWaiting(charge, { lookUpAt: now + retryAfterMs, resendAt }, now);
    return answer;
  }

  async function settle(books: Books, charge: Charge, by?: Origin): Promise<Outcome> {
    const state = await processor.lookUp(charge.reference);
    if (state.kind === "unknown") {
      const { retryAfterMs = minuteMs } = state;
      const now = clock.now();
      const lookUpAt = Math.max(now + retryAfterMs, nextLookUpAt(watchedFrom(charge), charge.lookUps + 1, now) ?? 0);
      await keepWaiting(charge, { lookUpAt }, now);
      return state;
    }
    return apply(books, charge, judgePayment(charge, state, processor), by);
  }

  async function apply(books: Books, charge: Charge, verdict: PaymentVerdict, by?: Origin): Promise<Outcome> {
    const now = clock.now();
    const { reference } = charge;
    const { id } = books.account;
    switch (verdict.kind) {
      case "paid": {
        const { transactionId, amountKobo, card } = verdict;
        const settled =
          charge.kind === "verification" && card
            ? await store.settleVerification(
                reference,
                cards.seal(card, processorId(processor), id),
                { transactionId },
                calendar.nextMonthEnd(now),
                now,
              )
            : await store.settleCharge(reference, { transactionId, amountKobo }, now, by);
        log.write("info", "payment.settled", {
          kind: charge.kind,
          outcome: settled.kind,
          amountKobo,
          ...(amountKobo !== charge.amountKobo && { expectedKobo: charge.amountKobo }),
        });
        if (settled.tenant && settled.kind !== "known") tell(books, settled.tenant);
        break;
      }
      case "unacceptable": {
        const card = verdict.card && cards.seal(verdict.card, processorId(processor), id);
        log.write("error", "payment.unacceptable", { kind: charge.kind, reason: verdict.reason });
        await failAs(books, charge, { reason: verdict.reason, refund: true, card });
        break;
      }
      case "failed":
        if (charge.state === "open") await failAs(books, charge, { ...verdict, lookUpAt: now + recheckMs });
        else await keepWaiting(charge, { lookUpAt: null }, now);
        break;
      case "confirmation":
        await wasAskedToConfirm(books, charge, verdict.url, now, by);
        break;
      case "waiting":
        await isStillWaiting(books, charge, verdict.reason, now);
        break;
      case "not_found":
        await wasNotFound(books, charge, now);
    }
    return verdict;
  }

  /**
   * The customer or the bank has not finished. If they take too long, the charge counts as failed; if it is paid after
   * all, a look-up finds it, and the money either pays for its days or is refunded.
   */
  async function isStillWaiting(books: Books, charge: Charge, reason: string | undefined, now: number): Promise<void> {
    const patienceEndsAt = bankPatienceEndsAt(charge);
    const lookUpAt = nextLookUpOf(charge, now);
    if (charge.state === "open" && patienceEndsAt !== null && now >= patienceEndsAt) {
      await failAs(books, charge, { reason: "The bank's confirmation was not completed", lookUpAt });
    } else {
      await keepWaiting(charge, { lookUpAt, ...(reason && { reason }) }, now);
    }
  }

  /** The bank wants its customer to confirm on a page. After an account is deleted, nobody is left to go there. */
  async function wasAskedToConfirm(books: Books, charge: Charge, url: string, now: number, by?: Origin): Promise<void> {
    const { id } = books.account;
    const lookUpAt = nextLookUpOf(charge, now);
    if (charge.state === "open" && charge.kind === "closing") {
      await failAs(books, charge, { reason: "The bank's confirmation was not completed", lookUpAt });
    } else if (charge.state !== "open" || charge.pageUrl === url) {
      await isStillWaiting(books, charge, undefined, now);
    } else {
      await store.awaitConfirmation(charge.reference, url, newVerification(id), lookUpAt ?? now + dayMs, now, by);
      const { tenant } = await store.books(charge.accountKey);
      if (tenant) tell(books, tenant);
    }
  }

  /** The processor does not know the reference. That is final only when no request can still be under way. */
  async function wasNotFound(books: Books, charge: Charge, now: number): Promise<void> {
    const isSavedCard = charge.kind !== "verification";
    if (charge.state !== "open" || !isSavedCard) {
      // Nobody has the address of a page that was never made, so nobody can pay it.
      const isUnmade = !isSavedCard && charge.pageUrl === null && now - watchedFrom(charge) >= recheckMs;
      const lookUpAt =
        charge.state === "failed" || isUnmade ? null : nextLookUpAt(watchedFrom(charge), charge.lookUps + 1, now);
      await keepWaiting(charge, { lookUpAt }, now);
      return;
    }
    if (!maySendAgain(charge, now)) {
      await keepWaiting(charge, { lookUpAt: Math.max(charge.resendAt ?? now, now + 1) }, now);
      return;
    }
    const isGivenUp = charge.kind === "upgrade" && now - charge.createdAt >= upgradePatienceMs;
    if (isGivenUp || isObsolete(charge, books.account)) {
      await failAs(books, charge, { reason: "The payment never reached the processor", lookUpAt: now + dayMs });
    } else if (charge.kind === "upgrade") {
      // Its client was told to retry; nobody else sends it.
      await keepWaiting(charge, { lookUpAt: charge.createdAt + upgradePatienceMs }, now);
    }
  }

  /** Fails a charge for which no request can be under way, and which nobody else may send meanwhile. */
  async function fail(books: Books, charge: Charge, reason: string, lookUpAt: number | null): Promise<Outcome> {
    await failAs(books, charge, { reason, lookUpAt });
    return { kind: "failed", reason, cardRefused: false };
  }

  async function failAs(
    books: Books,
    charge: Charge,
    {
      reason,
      cardRefused = false,
      refund = false,
      card = null,
      lookUpAt = null,
    }: Partial<Parameters<Store["failCharge"]>[1]> & { reason: string },
  ): Promise<void> {
    const now = clock.now();
    const after = consequenceOf(books, charge, now);
    const refusesCard = cardRefused && !isOvertaken(books, charge) && !hasNewerToken(books, charge);
    const failure = { reason, cardRefused: refusesCard, refund, card, lookUpAt };
    const tenant = await store.failCharge(charge.reference, failure, after, now);
    log.write("info", "payment.failed", { kind: charge.kind, reason, after: after?.kind ?? "none" });
    if (tenant) announce(tenant);
    if (tenant && charge.kind === "subscription") {
      const retryAt = after?.kind === "retry" ? after.at : null;
      deps.onFailed?.(tenant, {
        amountKobo: charge.amountKobo,
        reason,
        retryAt,
        isSuspended: after?.kind === "suspend",
      });
    }
  }

  return {
    send: (books, charge, by) => asking(charge, () => send(books, charge, by)),
    settle: (books, charge, by) => asking(charge, () => settle(books, charge, by)),
    hear: (books, charge, state) => apply(books, charge, judgePayment(charge, state, processor)),
    hint(reference) {
      if (asked.has(reference)) asked.set(reference, true);
    },
  };
}

/** Whether a charge that the processor does not know may be sent: no earlier request can still be under way. */
export const maySendAgain = (charge: Charge, now: number): boolean =>
  charge.kind !== "verification" && mayBeSent(charge, now);

/** A hosted page that the processor does not have is asked for again under its reference, and is as good as new then. */
export const watchedFrom = ({ kind, sentAt, createdAt }: Charge): number =>
  kind === "verification" ? (sentAt ?? createdAt) : createdAt;

/** When the bank's time to complete a saved-card charge ends; null: a hosted page stays open until it is given up. */
const bankPatienceEndsAt = ({ kind, createdAt }: Charge): number | null =>
  kind === "verification" ? null : createdAt + bankPatienceMs;

/** When to look again, but no later than the end of patience. */
function nextLookUpOf(charge: Charge, now: number): number | null {
  const lookUpAt = nextLookUpAt(watchedFrom(charge), charge.lookUps + 1, now);
  const patienceEndsAt = charge.state === "open" ? bankPatienceEndsAt(charge) : null;
  return patienceEndsAt !== null && patienceEndsAt > now
    ? Math.min(patienceEndsAt, lookUpAt ?? patienceEndsAt)
    : lookUpAt;
}

const invoiceOf = ({ invoices }: Books, { invoiceKey }: Charge) => invoices.find(({ key }) => key === invoiceKey);

/** Whether the card was verified again since the charge was sent: what the bank said is about its earlier token. */
const hasNewerToken = ({ card }: Books, { cardKey, sentAt, createdAt }: Charge): boolean =>
  card !== null && card.key === cardKey && card.savedAt > (sentAt ?? createdAt);

/**
 * Whether a card was verified since a month's charge was made: another one, or the same one again. While a charge is open,
 * nothing but a verification plans the next one for its invoice.
 */
const isOvertaken = (books: Books, charge: Charge): boolean =>
  charge.kind === "subscription" &&
  ((books.card !== null && books.card.key !== charge.cardKey) ||
    (charge.state === "open" && (invoiceOf(books, charge)?.nextAttemptAt ?? null) !== null));

/** What a failed charge means for its invoice. */
function consequenceOf(books: Books, charge: Charge, now: number): AfterFailure | null {
  if (charge.kind === "verification") return null;
  if (charge.kind !== "subscription" || books.account.state !== "active") return { kind: "void" };
  // The card verified since then is charged immediately (rules, section 12); this charge only held it up.
  if (isOvertaken(books, charge)) return { kind: "retry", at: now };
  return afterFailure(invoiceOf(books, charge)?.firstFailedAt ?? null, now);
}
