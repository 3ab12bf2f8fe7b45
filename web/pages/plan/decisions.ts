import type { Billing } from "../../api/types.ts";

/** How the newest payment ended; null: it has not, or it was given up without one. */
export function endOf([newest]: Billing["charges"]): {
  readonly isPaid: boolean;
  readonly reason: string | null;
} | null {
  if (newest === undefined) return null;
  const { state, reason } = newest;
  if (state === "succeeded") return { isPaid: true, reason: null };
  if (state === "failed") return { isPaid: false, reason };
  // The verification of a further card is refunded, too, once the card is saved.
  if (state === "refunding" || state === "refunded") return { isPaid: reason === null, reason };
  return null;
}
