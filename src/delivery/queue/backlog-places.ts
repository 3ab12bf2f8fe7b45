import type { Clock } from "../../lib/clock.ts";
import { narrowed, type OwnTimes, widened } from "../own-times.ts";

/**
 * Makes backlogs give way to new events. Both need the same processor, and attempts wait for it in a single line: with
 * 480 for a thousand backlogs under way, new events took 100 ms and more from their 202 to their delivery (99th
 * percentile). With as many as this allows it takes 40, and backlogs go out slower by a tenth.
 *
 * While attempts take much of our own time and something is new, backlogs get fewer places; when attempts are prompt, or
 * nothing is new, they get more. Slow receivers take none of our time, so their backlogs keep their places.
 */
export interface BacklogPlaces {
  /** How many young attempts for backlogs may be under way. */
  readonly limit: number;
  /** An attempt for something fresh begins. */
  freshStarts(): void;
  /** Takes note of how much of our own time recent attempts took. */
  heed(times: Pick<OwnTimes, "attempts" | "ownMs">): void;
}

/** Fewer would leave the processor idle: with 64, backlogs went out slower by a quarter. */
const least = 128;

/** The own time per attempt above which there are fewer places, and below which there are more. */
const lateMs = 40;
const promptMs = 25;

/** After this long without a fresh one, nothing has to give way. */
const freshMs = 1_000;

/** @param most places when attempts are prompt */
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
