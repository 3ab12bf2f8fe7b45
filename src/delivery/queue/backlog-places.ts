import type { Clock } from "../../lib/clock.ts";
import { narrowed, type OwnTimes, widened } from "../own-times.ts";

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
  /** What attempts took by us of late. */
  heed(times: Pick<OwnTimes, "attempts" | "ownMs">): void;
}

/** Fewer would leave the processor with nothing to do: with 64, backlogs went out slower by a quarter. */
const least = 128;

/** What an attempt takes by us above and below which there are fewer and more places. */
const lateMs = 40;
const promptMs = 25;

/** Without a fresh one for so long nothing has to give way. */
const freshMs = 1_000;

/** @param most when attempts are prompt */
export function createBacklogPlaces(clock: Pick<Clock, "monotonicMs">, most: number): BacklogPlaces {
  let limit = most;
  let narrowedAt = Number.NEGATIVE_INFINITY;
  let freshAt = Number.NEGATIVE_INFINITY;

  return {
    get limit() {
      return limit;
    },
    freshStarts() {
      freshAt = clock.monotonicMs();
    },
    heed({ attempts, ownMs }) {
      const averageMs = ownMs / attempts;
      const now = clock.monotonicMs();
      if (averageMs < promptMs || now - freshAt > freshMs) limit = Math.min(widened(limit), most);
      else if (averageMs > lateMs && now - narrowedAt >= averageMs) {
        narrowedAt = now;
        limit = Math.max(narrowed(limit, averageMs, lateMs), least);
      }
    },
  };
}
