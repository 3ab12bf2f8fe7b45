import type { DueDelivery } from "../domain/delivery.ts";
import type { Clock } from "../lib/clock.ts";
import { ingestedAtMs } from "../lib/id.ts";

/** What attempts that were answered took by us, beside their receivers, in a short stretch of time. */
export interface OwnTimes {
  readonly attempts: number;
  /** The sum, in ms. */
  readonly ownMs: number;
  /** That of new events alone. */
  readonly newOwnMs: number;
  /** How long the stretch was, in ms. */
  readonly elapsedMs: number;
}

export type Attempted = Pick<DueDelivery, "eventSeq" | "attempts" | "replayKey">;

/** An event is new for so long. */
const newMs = 10_000;

/** So long attempts are summed up. */
const lookEveryMs = 20;

/**
 * Sums up what attempts took, for those who give way while it is long.
 * @returns to be told of each attempt that was answered, with what it took by us, in ms
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

/** What is sent once more, or was accepted long ago, is not new. */
const isNew = ({ eventSeq, attempts, replayKey }: Attempted, now: number) =>
  attempts === 0 && replayKey === null && now - ingestedAtMs(eventSeq) < newMs;

/** At most, in one step; the next one should follow when attempts can tell of it, as long after as they take. */
const narrowing = 0.5;
const widening = 1.1;

/** One step: so much less as attempts are late. */
export const narrowed = (width: number, averageMs: number, lateMs: number) =>
  width * Math.max(lateMs / averageMs, narrowing);

export const widened = (width: number) => width * widening;
