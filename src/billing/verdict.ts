import type { Charge } from "../domain/books.ts";
import type { ChargeableCard, ChargeState, PaymentProcessor } from "./processor.ts";

/** What the processor's answer about a charge means for us. */
export type PaymentVerdict =
  /**
   * The money is ours. `card` is set after a verification; the amount may differ from ours when the charge was found
   * again.
   */
  | {
      readonly kind: "paid";
      readonly transactionId: string;
      readonly amountKobo: number;
      readonly card: ChargeableCard | null;
    }
  /** Money moved, but not as agreed: it is refunded. */
  | { readonly kind: "unacceptable"; readonly reason: string; readonly card: ChargeableCard | null }
  | { readonly kind: "failed"; readonly reason: string; readonly cardRefused: boolean }
  | { readonly kind: "confirmation"; readonly url: string }
  /** Nothing is decided yet. `reason` is the last thing that the customer was told on the page. */
  | { readonly kind: "waiting"; readonly reason?: string }
  | { readonly kind: "not_found" };

/**
 * Judges the state of a charge at the processor. Only its own look-up is believed, and a success counts only if it is the
 * payment that we asked for: reference, currency, amount, mode, and for a verification a card that can be charged again.
 *
 * A charge that was never sent from here was sent before the books were restored from a backup. Its amount then may
 * differ from what it would be now, and it counts all the same: the only alternative is to take money twice.
 */
export function judgePayment(
  charge: Charge,
  state: ChargeState,
  processor: Pick<PaymentProcessor, "mode">,
): PaymentVerdict {
  const isHostedPage = charge.kind === "verification";
  switch (state.kind) {
    case "not_found":
      return { kind: "not_found" };
    case "pending":
      return { kind: "waiting" };
    case "confirmation":
      return { kind: "confirmation", url: state.url };
    case "failed":
      // On a hosted page the customer can try another card; a charge of a saved card is over.
      return isHostedPage
        ? { kind: "waiting", reason: state.reason }
        : { kind: "failed", reason: state.reason, cardRefused: state.retry === "new_card" };
    case "reversed":
      // Refunded before we heard of the payment: there is nothing to keep and nothing to give back.
      return { kind: "failed", reason: "The payment was reversed", cardRefused: false };
    case "succeeded": {
      const { card } = state;
      const objection = objectionTo(charge, state, processor);
      if (objection !== null) return { kind: "unacceptable", reason: objection, card };
      if (isHostedPage && card === null) {
        return { kind: "unacceptable", reason: "The card cannot be charged again; use another one", card };
      }
      const amountKobo = wasMadeBefore(charge) ? (state.requestedKobo ?? state.amountKobo) : charge.amountKobo;
      return { kind: "paid", transactionId: state.transactionId, amountKobo, card };
    }
  }
}

/** Why a success is not the payment that we asked for; null when it is. An amount above ours is fees passed on. */
function objectionTo(
  charge: Charge,
  { reference, amountKobo, requestedKobo, currency, mode }: ChargeState & { kind: "succeeded" },
  processor: Pick<PaymentProcessor, "mode">,
): string | null {
  if (reference !== charge.reference) return "The payment has another reference";
  if (currency !== "NGN") return "The payment is in another currency";
  if (mode !== processor.mode) return "The payment is in another mode";
  if (wasMadeBefore(charge)) return null;
  if (amountKobo < charge.amountKobo) return "The payment is for less than the charge";
  if (requestedKobo !== null && requestedKobo !== charge.amountKobo)
    return "The payment was requested for another amount";
  return null;
}

const wasMadeBefore = ({ sentAt }: Charge) => sentAt === null;
