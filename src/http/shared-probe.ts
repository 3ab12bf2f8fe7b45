import type { Clock } from "../lib/clock.ts";

/** How old a probe's result may be. Monitors ask every few seconds. */
export const probeLifetimeMs = 1000;

/**
 * One probe for all callers at the same time, and for those that come shortly after: each probe is a commit with a sync to
 * disk, and anyone may ask. A failure is kept as long as a success.
 */
export function createSharedProbe(probe: () => Promise<void>, clock: Pick<Clock, "monotonicMs">): () => Promise<void> {
  let latest: Promise<void> | null = null;
  let endedAt: number | null = null;

  return function sharedProbe(): Promise<void> {
    const isOver = endedAt !== null && clock.monotonicMs() - endedAt >= probeLifetimeMs;
    if (latest === null || isOver) {
      endedAt = null;
      latest = probe().finally(() => {
        endedAt = clock.monotonicMs();
      });
    }
    return latest;
  };
}
