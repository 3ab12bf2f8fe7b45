import { type Clock, sleep } from "../lib/clock.ts";

/** Called between two pieces of work. @throws the signal's reason once it has come */
export type Rest = () => Promise<void>;

/** Shorter ones are added up: no timer is as short. */
const shortestWorkMs = 5;

/** @param share of the time, which is left to others */
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
