import type { Clock } from "../../src/lib/clock.ts";

/** Time that stands still until a test advances it. */
export interface FakeClock extends Clock {
  /** Lets `ms` pass; timers that fall due run in order, each at its own time. */
  advance(ms: number): void;
  /** Moves the wall clock forward (or back) by `ms`, as an operator or a time server does: timers do not notice. */
  step(ms: number): void;
  /** How long until the next timer is due; null when none is set. */
  readonly nextTimerMs: number | null;
  /** Timers that are set. */
  readonly timers: number;
}

export function createFakeClock(startMs = Date.UTC(2026, 2, 1, 12)): FakeClock {
  const timers = new Set<{ dueMs: number; callback: () => void }>();
  let nowMs = startMs;
  let steppedMs = 0;

  function nextDue(untilMs: number) {
    let next: { dueMs: number; callback: () => void } | undefined;
    for (const timer of timers) if (timer.dueMs <= untilMs && timer.dueMs < (next?.dueMs ?? Infinity)) next = timer;
    return next;
  }

  return {
    now: () => nowMs + steppedMs,
    monotonicMs: () => nowMs - startMs,
    after(delayMs, callback) {
      const timer = { dueMs: nowMs + Math.max(0, delayMs), callback };
      timers.add(timer);
      return () => timers.delete(timer);
    },
    advance(ms) {
      const untilMs = nowMs + ms;
      for (let timer = nextDue(untilMs); timer; timer = nextDue(untilMs)) {
        timers.delete(timer);
        nowMs = Math.max(nowMs, timer.dueMs);
        timer.callback();
      }
      nowMs = untilMs;
    },
    step(ms) {
      steppedMs += ms;
    },
    get nextTimerMs() {
      const next = nextDue(Number.POSITIVE_INFINITY);
      return next ? Math.max(0, next.dueMs - nowMs) : null;
    },
    get timers() {
      return timers.size;
    },
  };
}
