/**
 * What failures do to a webhook (rules, section 14):
 *
 *   well ──an attempt fails──▶ failing ──three deliveries in a row are answered 410──▶ disabled: gone
 *    ▲                          │  └──no attempt has succeeded for so long──▶ disabled: failing
 *    ├──any 2xx─────────────────┘                                                  │
 *    └──it is enabled──────────────────────────────────────────────────────────────┘
 *
 * Only an attempt moves it on, so no webhook is disabled while nothing is sent, and a success that comes after it was
 * disabled does not enable it again.
 */
export interface Failing {
  /** Start of the first attempt that failed since the last success. */
  readonly since: number;
  /** Deliveries answered 410 in a row. */
  readonly goneInARow: number;
  /** When the account was told that it is failing, a day after the first failure. */
  readonly toldAt: number | null;
  /** When the account was told that it would be disabled a day later. */
  readonly warnedAt: number | null;
}

/** Why a webhook was disabled: the word is part of the public interface. */
export type DisabledReason = "failing" | "gone";

export interface Disabled {
  readonly at: number;
  readonly reason: DisabledReason;
}

/** What failed attempts say about a webhook. */
export interface Failures {
  /** Start of the first of them, or since when the webhook was failing as far as is known, before any of `excusedMs`. */
  readonly since: number;
  /** Start of the latest. */
  readonly at: number;
  /** When we heard of each delivery in the current row of 410 answers, the oldest first. */
  readonly gone: readonly number[];
  /** How much of the time since the last success was lost to outages of our own and has not been deducted yet. */
  readonly excusedMs: number;
}

export interface DisablePolicy {
  /** Null: no webhook is ever disabled. */
  readonly disableAfterMs: number | null;
}

export interface FailureEffect {
  readonly failing: Failing;
  readonly disabled: Disabled | null;
  /** The account must be told that it is failing: a day has passed, or a day is left, or both. */
  readonly isToldNow: boolean;
  /** When another failure, other than a 410, may next have an effect; infinite: never. */
  readonly lookAgainAt: number;
}

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

/** The least time between the first failure and the last, however short the operator's limit is. */
export const leastSpanMs = 12 * hourMs;

/** So many deliveries in a row that are answered 410 disable a webhook. */
export const mostGoneInARow = 3;

/** RFC 9110, section 15.5.11. */
export const isAnsweredGone = (statusCode: number | null): boolean => statusCode === 410;

/** Whether the webhook would be disabled for its 410 answers. */
export const wouldBeGone = ({ gone }: Failures, { disableAfterMs }: DisablePolicy): boolean =>
  disableAfterMs !== null && gone.length >= mostGoneInARow;

/** How the latest attempt of a record ended. */
export interface EndedAttempt {
  readonly endedAt: number;
  /** Of a failure; null: there was no answer, or it was acknowledged. */
  readonly statusCode: number | null;
}

/**
 * What is left of a row of 410 answers: it begins after the latest attempt that ended otherwise. Whoever counts it hears of
 * its own attempts only, and others may send to the same webhook.
 */
export function goneSince(gone: readonly number[], ended: readonly EndedAttempt[]): readonly number[] {
  const others = ended.filter(({ statusCode }) => !isAnsweredGone(statusCode));
  return gone.filter((at) => others.every(({ endedAt }) => endedAt < at));
}

/** What failures do to the webhook, and what the account is told (rules, section 14). @param before null: it was not failing */
export function afterFailures(before: Failing | null, failures: Failures, policy: DisablePolicy): FailureEffect {
  const { at, gone } = failures;
  const failing: Failing = { ...excused(before ?? newlyFailing(failures.since), failures), goneInARow: gone.length };
  const isGone = wouldBeGone(failures, policy);
  const { tellAt, warnAt, disableAt } = milestonesOf(failing, policy);
  if (isGone || at >= disableAt) {
    const disabled: Disabled = { at, reason: isGone ? "gone" : "failing" };
    return { failing, disabled, isToldNow: false, lookAgainAt: never };
  }
  const [hasFailedForADay, hasADayLeft] = [at >= tellAt, at >= warnAt];
  const after = { ...failing, ...(hasFailedForADay && { toldAt: at }), ...(hasADayLeft && { warnedAt: at }) };
  const isToldNow = hasFailedForADay || hasADayLeft;
  const next = milestonesOf(after, policy);
  return { failing: after, disabled: null, isToldNow, lookAgainAt: Math.min(next.tellAt, next.warnAt, next.disableAt) };
}

/** Whether a success ends the failures. One that is noted late does not undo failures that began after it. */
export const endsFailing = ({ since }: Failing, succeededAt: number): boolean => since <= succeededAt;

/** When it will be disabled if it keeps failing, as far as can be said; null: never. */
export function disablesAt({ since, warnedAt }: Failing, { disableAfterMs }: DisablePolicy): number | null {
  if (disableAfterMs === null) return null;
  const endsAt = since + Math.max(disableAfterMs, leastSpanMs);
  // A webhook that is disabled within a day cannot be warned a day ahead.
  if (warnedAt === null || endsAt - since <= dayMs) return endsAt;
  // Attempts may be rare and the warning late: it still gets a day.
  return Math.max(endsAt, warnedAt + dayMs);
}

const newlyFailing = (since: number): Failing => ({ since, goneInARow: 0, toldAt: null, warnedAt: null });

/**
 * As if the outage had not happened: everything counted from a time before it starts that much later. Each process that was
 * cut off reports it, and by then another one may have deducted the same outage: then `since` is as late as it ought to be.
 */
function excused(failing: Failing, { since, at, excusedMs }: Failures): Failing {
  const owedMs = Math.min(Math.max(since + excusedMs - failing.since, 0), excusedMs);
  const later = (time: number) => Math.min(time + owedMs, at);
  return { ...failing, since: later(failing.since), warnedAt: failing.warnedAt && later(failing.warnedAt) };
}

/** What happens if it keeps failing; infinite: it has passed, or will not come. */
interface Milestones {
  readonly tellAt: number;
  readonly warnAt: number;
  readonly disableAt: number;
}

const never = Number.POSITIVE_INFINITY;

function milestonesOf(failing: Failing, policy: DisablePolicy): Milestones {
  const { since, toldAt, warnedAt } = failing;
  const tellAt = toldAt === null ? since + dayMs : never;
  const disableAt = disablesAt(failing, policy);
  if (disableAt === null) return { tellAt, warnAt: never, disableAt: never };
  if (warnedAt === null && disableAt - since > dayMs) return { tellAt, warnAt: disableAt - dayMs, disableAt: never };
  return { tellAt, warnAt: never, disableAt };
}
