import type { Clock } from "../../src/lib/clock.ts";

/** Time that passes only when a test says so; it also shows which timers are set. */
export function createManualClock() {
  const timers = new Map<() => void, number>();
  const awaited = new Map<number, () => void>();
  let nowMs = 1_000;
  const clock: Clock = {
    now: () => nowMs,
    monotonicMs: () => nowMs,
    after(delayMs, callback) {
      const run = () => callback();
      timers.set(run, nowMs + delayMs);
      awaited.get(delayMs)?.();
      return () => timers.delete(run);
    },
  };
  return {
    clock,
    /** The timers that are set, with the time when each is due. */
    timers,
    /** Resolves when the next timer of this delay is set. */
    whenSet: (delayMs: number) => new Promise<void>((resolve) => awaited.set(delayMs, resolve)),
    advance(ms: number) {
      nowMs += ms;
      for (const [run, dueMs] of [...timers]) {
        if (dueMs > nowMs || !timers.delete(run)) continue;
        run();
      }
    },
  };
}
