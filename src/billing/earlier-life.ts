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

/** A charge of a number that the books do not have. */
interface Known {
  readonly nth: number;
  readonly reference: string;
  readonly state: Exclude<ChargeState, { kind: "not_found" }>;
}

/** `free`: the first number after all that the books or the processor have. */
type Sought = { readonly kind: "sought"; readonly known: readonly Known[]; readonly free: number } | Unknown;

/** `isKnown`: the processor has a charge of this number, which is to be looked up. */
export interface Numbered {
  readonly kind: "number";
  readonly nth: number;
  readonly isKnown: boolean;
}

/**
 * What was charged after the backup that this server goes on from. The books know nothing of it, but its references can be
 * worked out, so the processor is asked before the first charge of its kind is made.
 */
export interface EarlierLife {
  /** The number to charge under: of one that was made or is under way, else one that nobody has used. */
  numberOf(referenceOf: (nth: number) => string): Promise<Numbered | Unknown>;
  /** The reference of a page that was paid, which the books do not have. */
  paidPage(account: BillingAccount): Promise<{ readonly kind: "page"; readonly reference: string | null } | Unknown>;
  /**
   * Takes charges of other purposes into the books, for whose days an invoice is about to be made: what they paid is
   * credited. @returns whether there were any
   */
  credit(
    account: BillingAccount,
    purposes: readonly { readonly kind: NewInvoice["kind"]; readonly month: string }[],
  ): Promise<{ readonly kind: "credited"; readonly any: boolean } | Unknown>;
}

/**
 * So many numbers in a row that nobody knows are the end of them. A charge that the processor refuses outright uses one up
 * without its knowing; that happens twice in a row only to a card that is locked for a day.
 */
const gapOfCharges = 2;
const gapOfPages = 1;
/** An account has one end, so one more is all that there can be. */
const gapOfClosings = 1;

/**
 * So long a reference that the processor did not know is not asked for again: only an earlier life can have used it, and
 * that one is over. A month's end asks for some eight. Without this, one answer that does not come has it begin with the
 * first again, which takes some fifty calls of a processor that answers seven in ten.
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
      // Of one that is not paid the processor does not say over how much it is; should it be paid, it goes back.
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

    async paidPage(account) {
      const sought = await seek((nth) => references.page(account.id, nth), gapOfPages);
      if (sought.kind === "unknown") return sought;
      const paid = sought.known.find(({ state }) => state.kind === "succeeded");
      return { kind: "page", reference: paid?.reference ?? null };
    },

    async credit(account, purposes) {
      let any = false;
      for (const { kind, month } of purposes) {
        const firstInvoiceId = references.invoiceId(account.id, kind, month, 1);
        // Only a month's end is tried again under the same invoice.
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
