import type { Clock } from "../../src/lib/clock.ts";

/** Time that passes when a test says so; it also shows which timers are set. */
export function createManualClock() {
  const timers = new Map<() => void, number>();
  let nowMs = 1_000;
  const clock: Clock = {
    now: () => nowMs,
    monotonicMs: () => nowMs,
    after(delayMs, callback) {
      const run = () => callback();
      timers.set(run, nowMs + delayMs);
      return () => timers.delete(run);
    },
  };
  return {
    clock,
    timers,
    advance(ms: number) {
      nowMs += ms;
      for (const [run, dueMs] of [...timers]) {
        if (dueMs > nowMs || !timers.delete(run)) continue;
        run();
      }
    },
  };
}
