import { type Clock, sleep } from "../lib/clock.ts";

/** Called between two pieces of work. @throws the signal's reason once it has been aborted */
export type Rest = () => Promise<void>;

/** Shorter pieces of work are added up, because no timer is that precise. */
const shortestWorkMs = 5;

/** @param share of the time that is left to other work */
export function createRest({ clock, signal, share }: { clock: Clock; signal: AbortSignal; share: number }): Rest {
  let restedAt = clock.monotonicMs();
  return async () => {
    signal.throwIfAborted();
    const workedMs = clock.monotonicMs() - restedAt;
    if (workedMs < shortestWorkMs) return;
    await sleep(clock, (workedMs * share) / (1 - share));
    restedAt = clock.monotonicMs();
  };
}
