import type { BillingAccount, Charge, NewInvoice } from "../domain/books.ts";
import type { Clock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import type { Store } from "../store/store.ts";
import { processorId } from "./charging.ts";
import type { ChargeState, PaymentProcessor, Unknown } from "./processor.ts";
import { chargeReference, type References } from "./references.ts";
import { leastChargeKobo } from "./terms.ts";

export interface EarlierLifeDeps {
  store: Pick<Store, "findCharge" | "adoptCharge">;
  clock: Pick<Clock, "now" | "monotonicMs">;
  log: Log;
  processor: PaymentProcessor;
  references: References;
}

/** A charge that the processor has under a number missing from the books. */
interface Known {
  readonly nth: number;
  readonly reference: string;
  readonly state: Exclude<ChargeState, { kind: "not_found" }>;
}

/** `free`: the first number after all those that the books or the processor have. */
type Sought = { readonly kind: "sought"; readonly known: readonly Known[]; readonly free: number } | Unknown;

/** `isKnown`: the processor has a charge under this number; look it up. */
export interface Numbered {
  readonly kind: "number";
  readonly nth: number;
  readonly isKnown: boolean;
}

/**
 * Charges made after the backup from which this server was restored. The books know nothing of them, but their references
 * can be derived, so the processor is asked before the first charge of a kind is made.
 */
export interface EarlierLife {
  /** The number to charge under: that of a charge already made or under way, otherwise an unused one. */
  numberOf(referenceOf: (nth: number) => string): Promise<Numbered | Unknown>;
  /**
   * The reference of a paid page that is missing from the books.
   * @param beforeErasing without one, the account is erased for good: look further, with some ten more look-ups
   */
  paidPage(
    account: BillingAccount,
    { beforeErasing }?: { beforeErasing?: boolean },
  ): Promise<{ readonly kind: "page"; readonly reference: string | null } | Unknown>;
  /**
   * Before an invoice is made, adopts into the books the charges already made for its days: what they paid is credited.
   * @returns whether there were any
   */
  credit(
    account: BillingAccount,
    purposes: readonly { readonly kind: NewInvoice["kind"]; readonly month: string }[],
  ): Promise<{ readonly kind: "credited"; readonly any: boolean } | Unknown>;
}

/**
 * This many unknown numbers in a row mark the end. A charge that the processor refuses outright uses up a number without
 * the processor recording it; that happens twice in a row only with a card that is locked for a day.
 */
const gapOfCharges = 2;
const gapOfPages = 1;
/**
 * Before an account is erased for good, a longer gap is looked across: each page that the processor refused to make, as for an
 * address that it does not accept, and each that had no answer, may have used up a number.
 */
const gapBeforeErasing = 10;
/** An account closes only once, so there can be at most one more. */
const gapOfClosings = 1;

/**
 * How long a reference that the processor did not know is not asked about again: only an earlier life can have used it,
 * and that is over. A month's end asks about some eight. Without this, a single missing answer would restart it from the
 * first, which takes some fifty calls to a processor that answers seven in ten.
 */
const notFoundForMs = 10 * 60_000;
/** 100 bytes each. */
const mostNotFound = 50_000;

export function createEarlierLife({ store, clock, log, processor, references }: EarlierLifeDeps): EarlierLife {
  /** References that the processor did not know, and until when that holds. */
  const notFound = new Map<string, number>();

  async function lookUp(reference: string): Promise<ChargeState | Unknown> {
    if ((notFound.get(reference) ?? 0) > clock.monotonicMs()) return { kind: "not_found" };
    const state = await processor.lookUp(reference);
    if (state.kind === "not_found") {
      if (notFound.size >= mostNotFound) notFound.clear();
      notFound.set(reference, clock.monotonicMs() + notFoundForMs);
    }
    return state;
  }

  async function seek(referenceOf: (nth: number) => string, gap: number): Promise<Sought> {
    const known: Known[] = [];
    let free = 1;
    for (let nth = 1; nth < free + gap; nth += 1) {
      const reference = referenceOf(nth);
      if ((await store.findCharge(reference)) !== null) {
        free = nth + 1;
        continue;
      }
      const state = await lookUp(reference);
      if (state.kind === "unknown") return state;
      if (state.kind === "not_found") continue;
      known.push({ nth, reference, state });
      free = nth + 1;
    }
    return { kind: "sought", known, free };
  }

  async function adopt(account: BillingAccount, kind: Charge["kind"], { reference, state }: Known) {
    const paid = state.kind === "succeeded" ? state : null;
    const amountKobo = paid ? (paid.requestedKobo ?? paid.amountKobo) : leastChargeKobo;
    await store.adoptCharge(
      account.key,
      // The processor does not report the amount of an unpaid charge; if it is paid after all, it is refunded.
      { kind, reference, processor: processorId(processor), amountKobo, transactionId: paid?.transactionId ?? null },
      clock.now(),
    );
    log.write("warn", "payment.found_again", { kind, ...(paid && { amountKobo }) });
  }

  return {
    async numberOf(referenceOf) {
      const sought = await seek(referenceOf, gapOfCharges);
      if (sought.kind === "unknown") return sought;
      const made = sought.known.find(({ state }) => state.kind === "succeeded");
      const underWay = sought.known.find(({ state }) => state.kind === "pending" || state.kind === "confirmation");
      const found = made ?? underWay;
      if (found) log.write("warn", "payment.found_again", { state: found.state.kind });
      return { kind: "number", nth: found?.nth ?? sought.free, isKnown: found !== undefined };
    },

    async paidPage(account, { beforeErasing = false } = {}) {
      const gap = beforeErasing ? gapBeforeErasing : gapOfPages;
      const sought = await seek((nth) => references.page(account.id, nth), gap);
      if (sought.kind === "unknown") return sought;
      const paid = sought.known.find(({ state }) => state.kind === "succeeded");
      return { kind: "page", reference: paid?.reference ?? null };
    },

    async credit(account, purposes) {
      let any = false;
      for (const { kind, month } of purposes) {
        const firstInvoiceId = references.invoiceId(account.id, kind, month, 1);
        // Only a month's end is retried under the same invoice.
        const referenceOf = (nth: number) =>
          kind === "subscription"
            ? chargeReference(kind, firstInvoiceId, nth)
            : chargeReference(kind, references.invoiceId(account.id, kind, month, nth), 1);
        const sought = await seek(referenceOf, kind === "closing" ? gapOfClosings : gapOfCharges);
        if (sought.kind === "unknown") return sought;
        for (const found of sought.known) {
          if (found.state.kind === "failed" || found.state.kind === "reversed") continue;
          await adopt(account, kind, found);
          any = true;
        }
      }
      return { kind: "credited", any };
    },
  };
}
