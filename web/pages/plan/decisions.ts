import type { Account, Billing } from "../../api/types.ts";

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

/** A charge may be outstanding as well: to pay it would not end this suspension. */
export const isSuspendedByOperator = (
  { status, suspended_by: causes }: Pick<Account, "status" | "suspended_by">,
  { past_due_since: since }: Pick<Billing, "past_due_since">,
): boolean => status === "suspended" && (causes?.includes("operator") ?? since === null);
