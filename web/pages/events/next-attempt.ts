/**
 * What a delivery that has not ended is about to do. `turn`: it has been due for so long that it is not under way, but waits
 * until earlier deliveries end or a rate limit lets it go.
 */
export type NextAttempt = "paused" | "later" | "now" | "turn";

/** An attempt ends within 10 s (rules, section 8); the rest is for one that starts or is reported late. */
const underWayMs = 15_000;

/**
 * @param at when it is due; null: unknown
 * @param isPaused the operator has paused all deliveries, or the account this webhook
 */
export function nextAttemptOf(at: string | null, nowMs: number, isPaused: boolean): NextAttempt {
  if (isPaused) return "paused";
  if (at === null) return "now";
  const left = Date.parse(at) - nowMs;
  if (left > 0) return "later";
  return left < -underWayMs ? "turn" : "now";
}
