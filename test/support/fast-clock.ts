import { type Clock, systemClock } from "../../src/lib/clock.ts";

/** Real time that runs this many times as fast: pauses of a second pass in the blink of an eye, but still in order. */
export function createFastClock(times: number): Clock {
  const startedAt = systemClock.now();
  const monotonicMs = () => systemClock.monotonicMs() * times;
  const startedAtMs = monotonicMs();
  return {
    now: () => Math.floor(startedAt + monotonicMs() - startedAtMs),
    monotonicMs,
    after: (delayMs, callback) => systemClock.after(delayMs / times, callback),
  };
}
