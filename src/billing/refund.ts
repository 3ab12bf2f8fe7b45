import type { Charge } from "../domain/books.ts";
import type { ChargeState, RefundAnswer, Unknown } from "./processor.ts";
import { dayMs, refundPatienceMs } from "./terms.ts";

/** How long to wait before checking an unfinished refund again. */
const checkPauseMs = dayMs;
/** The first check comes early, because many refunds finish immediately. */
const firstCheckMs = 60_000;
/** How long to wait when the processor did not answer. */
const retryPauseMs = 10 * 60_000;

/** How far a refund has got, to be stored. */
export interface RefundNote {
  readonly stage: NonNullable<Charge["refund"]>;
  /** Null: it is over. */
  readonly checkAfterMs: number | null;
  /** Its patience begins now. */
  readonly isRequestedNow: boolean;
}

export type RefundStep =
  | { readonly kind: "note"; readonly note: RefundNote }
  /** `amountKobo`: what was paid, not what was asked for; the processor refuses to return more than was paid. */
  | { readonly kind: "request"; readonly amountKobo: number; readonly isRepeated: boolean };

/**
 * What to do about a charge to refund, once it was looked up: only the processor knows whether an earlier request arrived
 * (payments, "How it works").
 *
 *   due ──requested──▶ requested ──the payment no longer stands──▶ done
 *                       ▲    └──it still stands after `refundPatienceMs`──┐
 *                       └─────────────── requested again ─────────────────┘
 */
export function nextRefundStep(charge: Charge, state: ChargeState | Unknown, now: number): RefundStep {
  const { refund: stage } = charge;
  if (state.kind === "unknown") return note(stage ?? "due", retryPauseMs);
  if (state.kind === "reversed") return note("done", null);
  if (state.kind !== "succeeded") return note(stage ?? "due", checkPauseMs);
  const { amountKobo } = state;
  if (stage !== "requested") return { kind: "request", amountKobo, isRepeated: false };
  const resendAt = resendAtOf(charge);
  if (resendAt === null) return note(stage, checkPauseMs, true);
  return resendAt > now ? note(stage, checkPauseMs) : { kind: "request", amountKobo, isRepeated: true };
}

/** What follows from the answer to a refund request. */
export function afterRefundRequest(answer: RefundAnswer): RefundNote {
  switch (answer.kind) {
    case "accepted":
      return { stage: "requested", checkAfterMs: firstCheckMs, isRequestedNow: true };
    case "already_refunded":
      return { stage: "done", checkAfterMs: null, isRequestedNow: false };
    case "rejected":
      return { stage: "due", checkAfterMs: checkPauseMs, isRequestedNow: false };
    case "unknown":
      return { stage: "due", checkAfterMs: retryPauseMs, isRequestedNow: false };
  }
}

const note = (stage: RefundNote["stage"], checkAfterMs: number | null, isRequestedNow = false): RefundStep => ({
  kind: "note",
  note: { stage, checkAfterMs, isRequestedNow },
});

/**
 * When a refund that was requested may be requested again; null: not known, since a version that never did so requested it.
 * What the charge then has, if anything, is when it could have been sent again itself, minutes after it was made.
 */
const resendAtOf = ({ resendAt, createdAt }: Charge): number | null =>
  resendAt !== null && resendAt >= createdAt + refundPatienceMs ? resendAt : null;
