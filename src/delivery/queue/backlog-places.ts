import type { Clock } from "../../lib/clock.ts";

/**
 * Backlogs give way to what is new. Both need the same processor, and attempts wait for it in one line: with 480 for a thousand
 * backlogs under way, what was new took 100 ms and more from its 202 to its delivery (99th percentile). With as many as this
 * allows it takes 40, and backlogs go out slower by a tenth.
 *
 * While attempts take long by us and something is new, backlogs get fewer places; when they are prompt, or nothing is new, more.
 * Receivers that are slow take no time of ours, so their backlogs keep their places.
 */
export interface BacklogPlaces {
  /** So many young attempts for backlogs may be under way. */
  readonly limit: number;
  /** An attempt for something fresh begins. */
  freshStarts(): void;
  /** Of an attempt that was answered: what it took beside its receiver, in ms. */
  attempted(ownMs: number): void;
}

/** Fewer would leave the processor with nothing to do: with 64, backlogs went out slower by a quarter. */
const least = 128;

/** What an attempt takes by us above and below which there are fewer and more places. */
const lateMs = 40;
const promptMs = 25;

/** At most, in one step; the next one follows when attempts tell of it, as long after as they take. */
const narrowing = 0.5;
const widening = 1.1;

/** So long attempts are averaged. */
const lookEveryMs = 20;

/** Without a fresh one for so long nothing has to give way. */
const freshMs = 1_000;

/** @param most when attempts are prompt */
export function createBacklogPlaces(clock: Pick<Clock, "monotonicMs">, most: number): BacklogPlaces {
  let limit = most;
  let narrowedAt = Number.NEGATIVE_INFINITY;
  let freshAt = Number.NEGATIVE_INFINITY;
  let since = clock.monotonicMs();
  let attempts = 0;
  let sumMs = 0;

  function look(now: number): void {
    const averageMs = sumMs / attempts;
    since = now;
    attempts = 0;
    sumMs = 0;
    if (averageMs < promptMs || now - freshAt > freshMs) limit = Math.min(limit * widening, most);
    else if (averageMs > lateMs && now - narrowedAt >= averageMs) {
      narrowedAt = now;
      limit = Math.max(limit * Math.max(lateMs / averageMs, narrowing), least);
    }
  }

  return {
    get limit() {
      return limit;
    },
    freshStarts() {
      freshAt = clock.monotonicMs();
    },
    attempted(ownMs) {
      attempts += 1;
      sumMs += ownMs;
      const now = clock.monotonicMs();
      if (now - since >= lookEveryMs) look(now);
    },
  };
}
