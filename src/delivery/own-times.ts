import type { DueDelivery } from "../domain/delivery.ts";
import type { Clock } from "../lib/clock.ts";
import { ingestedAtMs } from "../lib/id.ts";

/** How much of our own time answered attempts took, apart from their receivers', over a short period. */
export interface OwnTimes {
  readonly attempts: number;
  /** The sum, in ms. */
  readonly ownMs: number;
  /** The sum for new events alone. */
  readonly newOwnMs: number;
  /** Length of the period, in ms. */
  readonly elapsedMs: number;
}

export type Attempted = Pick<DueDelivery, "eventSeq" | "attempts" | "replayKey">;

/** How long an event counts as new. */
const newMs = 10_000;

/** Attempts are summed up over at least this long. */
const lookEveryMs = 20;

/**
 * Sums up the own time of attempts, for consumers that give way while it is long.
 * @returns a function to call for each answered attempt, with the own time it took, in ms
 */
export function createOwnTimes(
  clock: Pick<Clock, "now" | "monotonicMs">,
  onLook: (times: OwnTimes) => void,
): (attempted: Attempted, ownMs: number) => void {
  let since = clock.monotonicMs();
  let attempts = 0;
  let sumMs = 0;
  let newSumMs = 0;

  return (attempted, ownMs) => {
    attempts += 1;
    sumMs += ownMs;
    if (isNew(attempted, clock.now())) newSumMs += ownMs;
    const elapsedMs = clock.monotonicMs() - since;
    if (elapsedMs < lookEveryMs) return;
    const times = { attempts, ownMs: sumMs, newOwnMs: newSumMs, elapsedMs };
    since += elapsedMs;
    attempts = 0;
    sumMs = 0;
    newSumMs = 0;
    onLook(times);
  };
}

/** Retries, replays and events accepted long ago are not new. */
const isNew = ({ eventSeq, attempts, replayKey }: Attempted, now: number) =>
  attempts === 0 && replayKey === null && now - ingestedAtMs(eventSeq) < newMs;

/**
 * The most that one step changes. The next step should wait until attempts can show its effect, which takes as long as they do.
 */
const narrowing = 0.5;
const widening = 1.1;

/** One step down, in proportion to how late attempts are. */
export const narrowed = (width: number, averageMs: number, lateMs: number) =>
  width * Math.max(lateMs / averageMs, narrowing);

export const widened = (width: number) => width * widening;
