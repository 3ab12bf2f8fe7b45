import type { AfterFailure } from "../domain/books.ts";

const dayMs = 24 * 60 * 60 * 1000;

/** Days after the first failure on which a month's end charge is tried again (rules, section 12). */
export const retryDays: readonly number[] = [1, 3, 5, 7];

/**
 * What a failed month's end charge means: the next day on which it is tried, or that the account is suspended. A charge
 * that was tried in between, because a new card was verified, moves nothing.
 */
export function afterFailure(firstFailedAt: number | null, now: number): AfterFailure {
  if (firstFailedAt === null) return { kind: "retry", at: now + (retryDays[0] ?? 0) * dayMs };
  const next = retryDays.map((days) => firstFailedAt + days * dayMs).find((at) => at > now);
  return next === undefined ? { kind: "suspend" } : { kind: "retry", at: next };
}
