import type { CardVerification, Charge } from "../domain/books.ts";
import type { Clock } from "../lib/clock.ts";
import type { KeyedLock } from "../lib/keyed-lock.ts";
import type { Limiter } from "../lib/limiter.ts";
import type { Log } from "../lib/log.ts";
import type { Books } from "../store/billing.ts";
import type { Store } from "../store/store.ts";
import { type Charging, processorId, watchedFrom } from "./charging.ts";
import { isUnmade, nextPageStep, type PageAnswer, pageRestMs } from "./page-step.ts";
import type { PaymentProcessor } from "./processor.ts";
import type { References } from "./references.ts";
import { nextLookUpAt, pagePauseMs, verificationKobo } from "./terms.ts";

/** What a visitor of a `payment_url` gets. */
export type PayPage =
  | { readonly kind: "go"; readonly url: string }
  | { readonly kind: "verified" }
  | { readonly kind: "expired" }
  | { readonly kind: "not_found" }
  /** The processor refuses the account's e-mail address. */
  | { readonly kind: "email_refused" }
  /** The operator has paused payments. */
  | { readonly kind: "paused" }
  | { readonly kind: "unavailable"; readonly retryAfterSeconds: number };

export interface PayPageDeps {
  store: Store;
  clock: Pick<Clock, "now">;
  log: Log;
  processor: PaymentProcessor;
  charging: Charging;
  references: References;
  lock: KeyedLock<number>;
  /** At most one look-up of each reference per minute. */
  lookUps: Limiter;
  returnUrl(): string;
  cancelUrl(): string;
}

/** For the account's owner: the reason shown with the verification in the account's billing state. */
const emailRefused =
  "The payment processor does not accept the account's e-mail address; set another one as email with POST /v1/tenants/payment-method";

/** Each was abandoned by somebody who came back after an hour; the next visit finds the rest. */
const mostPagesFoundAgain = 10;

/**
 * Finds the processor's page behind a `payment_url`, and makes a new one when none works. The address stays the same for
 * as long as the verification is open.
 */
export function createPayPage(deps: PayPageDeps) {
  const { store, clock, log, processor, charging, references, lock, lookUps } = deps;
  const { returnUrl, cancelUrl } = deps;

  return async function open(token: string): Promise<PayPage> {
    const found = await store.findVerification(token);
    if (!found) return { kind: "not_found" };
    return lock.run(found.verification.accountKey, () => show(token));
  };

  async function show(token: string): Promise<PayPage> {
    const found = await store.findVerification(token);
    if (!found) return { kind: "not_found" };
    const { verification, tenant } = found;
    if (verification.state !== "open") return { kind: verification.state === "succeeded" ? "verified" : "expired" };
    const books = await store.books(verification.accountKey);
    const page = books.charges.find(({ key }) => key === verification.chargeKey);
    // A page made by another processor is gone with it.
    if (!page || page.processor !== processorId(processor)) return newPage(verification, tenant.email, null);
    const answer = await ask(books, page);
    const step = nextPageStep(page, answer, clock.now() - watchedFrom(page));
    switch (step.kind) {
      case "look_again":
        return show(token);
      case "wait":
        return unavailableFor(step.ms);
      case "make":
        return newPage(verification, tenant.email, step.under === "this" ? page : null);
      default:
        return step;
    }
  }

  /** What the processor says about the charge behind a page; this finds payments that nobody has told us about. */
  async function ask(books: Books, page: Charge): Promise<PageAnswer> {
    // Nobody can have paid within moments of the page being made, or a page that was never made.
    const isResting = pageRestMs(clock.now() - watchedFrom(page)) > 0;
    if (isResting || isUnmade(page) || !lookUps.take(page.reference).ok) return "not_asked";
    return (await charging.settle(books, page)).kind;
  }

  /** The processor is about to be asked once more for a page that it does not have. Null: somebody else was faster. */
  async function prepareAgain(page: Charge): Promise<Charge | null> {
    const now = clock.now();
    const times = { lookUpAt: nextLookUpAt(now, 0, now) ?? now, resendAt: now };
    return (await store.markSent(page.reference, times, now)) ? { ...page, ...times, sentAt: now } : null;
  }

  function prepare(verification: CardVerification, reference: string): Promise<Charge | null> {
    const now = clock.now();
    const lookUpAt = nextLookUpAt(now, 0, now);
    const page = {
      reference,
      processor: processorId(processor),
      amountKobo: verificationKobo,
      cardKey: null,
      lookUpAt,
    };
    return store.preparePage(verification.key, page, now);
  }

  /**
   * The processor refuses a reference that it has seen: then the page was made after the backup from which this server
   * was restored. If it was paid, the card is verified; if not, the page is abandoned and watched like any other.
   * @param unmade a page that the processor does not have: its reference is free, and used first
   */
  async function newPage(verification: CardVerification, email: string, unmade: Charge | null): Promise<PayPage> {
    const { account } = await store.books(verification.accountKey);
    for (let tries = 0; tries < mostPagesFoundAgain; tries += 1) {
      const again = tries === 0 && unmade ? await prepareAgain(unmade) : null;
      const page = again ?? (await prepare(verification, await nextReference(account.id)));
      if (!page) return { kind: "expired" };
      const { reference } = page;
      const answer = await processor.startVerification({
        reference,
        email,
        amountKobo: page.amountKobo,
        returnUrl: returnUrl(),
        cancelUrl: cancelUrl(),
      });
      if (answer.kind === "ready") {
        await store.setPage(reference, answer.url, clock.now());
        return { kind: "go", url: answer.url };
      }
      if (answer.kind === "email_refused") {
        log.write("warn", "payment.email_refused", { reason: answer.reason });
        await store.keepWaiting(page, { lookUpAt: null, reason: emailRefused }, clock.now());
        return { kind: "email_refused" };
      }
      if (answer.kind === "rejected") await store.keepWaiting(page, { lookUpAt: null }, clock.now());
      if (answer.kind !== "duplicate") {
        log.write(answer.kind === "rejected" ? "error" : "warn", "payment.no_page", { reason: answer.reason });
        return unavailableFor((answer.kind === "unknown" && answer.retryAfterMs) || pagePauseMs);
      }
      log.write("warn", "payment.found_again", { kind: "verification" });
      const outcome = await charging.settle(await store.books(account.key), page);
      if (outcome.kind === "paid") return { kind: "verified" };
      if (outcome.kind === "unknown") return unavailableFor(outcome.retryAfterMs ?? pagePauseMs);
    }
    return unavailableFor(pagePauseMs);
  }

  async function nextReference(accountId: string): Promise<string> {
    let nth = 1;
    while ((await store.findCharge(references.page(accountId, nth))) !== null) nth += 1;
    return references.page(accountId, nth);
  }
}

const unavailableFor = (ms: number): PayPage => ({ kind: "unavailable", retryAfterSeconds: Math.ceil(ms / 1000) });
