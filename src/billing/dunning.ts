import type { AfterFailure } from "../domain/books.ts";
import { dayMs } from "./terms.ts";

/** Days after the first failure on which a month's end charge is tried again (rules, section 12). */
const retryDays: readonly number[] = [1, 3, 5, 7];

/**
 * What a failed month-end charge leads to: a retry on the next retry day, or suspension. An extra attempt in between,
 * made because a new card was verified, does not shift the schedule.
 */
export function afterFailure(firstFailedAt: number | null, now: number): AfterFailure {
  if (firstFailedAt === null) return { kind: "retry", at: now + (retryDays[0] ?? 0) * dayMs };
  const next = retryDays.map((days) => firstFailedAt + days * dayMs).find((at) => at > now);
  return next === undefined ? { kind: "suspend" } : { kind: "retry", at: next };
}
