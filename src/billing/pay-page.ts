import type { CardVerification, Charge } from "../domain.ts";
import type { Clock } from "../lib/clock.ts";
import type { KeyedLock } from "../lib/keyed-lock.ts";
import type { Limiter } from "../lib/limiter.ts";
import type { Log } from "../lib/log.ts";
import type { Store } from "../store/store.ts";
import { type Charging, processorId } from "./charging.ts";
import { pageReference } from "./invoicing.ts";
import type { PaymentProcessor } from "./processor.ts";
import { nextLookUpAt, pageLifetimeMs, pagePauseMs, verificationKobo } from "./terms.ts";

/** What a visitor of a `payment_url` gets. */
export type PayPage =
  | { readonly kind: "go"; readonly url: string }
  | { readonly kind: "verified" }
  | { readonly kind: "expired" }
  | { readonly kind: "not_found" }
  | { readonly kind: "unavailable"; readonly retryAfterSeconds: number };

export interface PayPageDeps {
  store: Store;
  clock: Pick<Clock, "now">;
  log: Log;
  processor: PaymentProcessor;
  charging: Charging;
  lock: KeyedLock<number>;
  /** At most one look-up a minute of each reference. */
  lookUps: Limiter;
  returnUrl(): string;
  cancelUrl(): string;
}

/**
 * Finds the processor's page behind a `payment_url`, and makes a new one when there is none that works. The address stays
 * the same for as long as the verification is open.
 */
export function createPayPage(deps: PayPageDeps) {
  const { store, clock, log, processor, charging, lock, lookUps, returnUrl, cancelUrl } = deps;

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
    const current = await currentPage(verification);
    if (current === "verified") return { kind: "verified" };
    if (current) {
      const age = clock.now() - current.createdAt;
      if (current.pageUrl !== null && age < pageLifetimeMs) return { kind: "go", url: current.pageUrl };
      if (age < pagePauseMs) return unavailableFor(pagePauseMs - age);
    }
    return newPage(verification, tenant.email);
  }

  /** The page that stands; null when a new one is needed. A payment that nobody has told us of is found here. */
  async function currentPage({ accountKey, chargeKey }: CardVerification): Promise<Charge | "verified" | null> {
    const books = await store.books(accountKey);
    const page = books.charges.find(({ key }) => key === chargeKey);
    if (!page) return null;
    // Its page went with the processor that made it.
    if (page.processor !== processorId(processor)) return null;
    // Nobody can have paid in the moment in which the page was made.
    if (page.lookUpAt === null || clock.now() < page.createdAt + pagePauseMs) return page;
    if (!lookUps.take(page.reference).ok) return page;
    const outcome = await charging.settle(books, page);
    if (outcome.kind === "paid") return "verified";
    const isDead = outcome.kind === "not_found" || outcome.kind === "failed" || outcome.kind === "unacceptable";
    return isDead ? null : page;
  }

  async function newPage(verification: CardVerification, email: string): Promise<PayPage> {
    const now = clock.now();
    const reference = pageReference();
    const amountKobo = verificationKobo;
    const page = await store.preparePage(
      verification.key,
      {
        reference,
        processor: processorId(processor),
        amountKobo,
        cardKey: null,
        lookUpAt: nextLookUpAt(now, 0, now),
      },
      now,
    );
    if (!page) return { kind: "expired" };
    const answer = await processor.startVerification({
      reference,
      email,
      amountKobo,
      returnUrl: returnUrl(),
      cancelUrl: cancelUrl(),
    });
    if (answer.kind === "ready") {
      await store.setPage(reference, answer.url, clock.now());
      return { kind: "go", url: answer.url };
    }
    const reason = answer.kind === "duplicate" ? "The reference was taken" : answer.reason;
    log.write(answer.kind === "rejected" ? "error" : "warn", "payment.no_page", { reason });
    return unavailableFor((answer.kind === "unknown" && answer.retryAfterMs) || pagePauseMs);
  }
}

const unavailableFor = (ms: number): PayPage => ({ kind: "unavailable", retryAfterSeconds: Math.ceil(ms / 1000) });
