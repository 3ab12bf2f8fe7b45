/** The one source of time. Everything that waits or stamps takes a clock, so that tests decide what time it is. */
export interface Clock {
  /** Milliseconds since the Unix epoch. May step back, as the machine's clock may. */
  now(): number;
  /** Milliseconds on a scale that never steps back, for durations only. */
  monotonicMs(): number;
  /** Runs `callback` once, `delayMs` from now. The returned function cancels it. */
  after(delayMs: number, callback: () => void): () => void;
}

/** `setTimeout` fires immediately for a delay above 2^31 - 1 ms, so longer waits are cut and checked again by their loop. */
const longestTimerMs = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonicMs: () => performance.now(),
  after(delayMs, callback) {
    const timer = setTimeout(callback, Math.min(Math.max(delayMs, 0), longestTimerMs));
    return () => clearTimeout(timer);
  },
};

/**
 * How far another clock is ahead; negative: behind. It was read between two readings of ours, at a moment that nobody knows, so
 * the answer is the least that it can be.
 */
export function aheadOf(otherMs: number, fromMs: number, toMs: number): number {
  if (otherMs < fromMs) return otherMs - fromMs;
  return Math.max(0, otherMs - toMs);
}

/** Resolves `delayMs` from now, by the given clock. */
export function sleep(clock: Clock, delayMs: number): Promise<void> {
  return new Promise((resolve) => {
    clock.after(delayMs, resolve);
  });
}
