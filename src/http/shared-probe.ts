import type { Clock } from "../lib/clock.ts";

/** How old what a probe says may be. Whoever watches a server asks every few seconds. */
export const probeLifetimeMs = 1000;

/**
 * One probe for all who ask at the same time, and for those who come soon after: each is a commit with a sync to disk, and
 * anybody may ask. A failure is kept as long as a success.
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
