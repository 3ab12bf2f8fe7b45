import type { Failing } from "./failing.ts";
import type { Total } from "./situation.ts";

/**
 * How many deliveries to a webhook wait for their turn, none of their attempts having failed, while nothing gets through.
 * @param pending all that wait for it; null: not counted
 */
export function untriedOf(
  { downSince, waiting }: Pick<Failing, "downSince" | "waiting">,
  pending: Total | null,
): Total {
  // To a webhook that gets something through, they are under way.
  if (downSince === null || pending === null) return { n: 0, isExact: true };
  return { n: Math.max(0, pending.n - waiting), isExact: pending.isExact };
}
