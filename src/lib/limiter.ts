import type { Clock } from "./clock.ts";
import { forgetOldest } from "./forget-oldest.ts";

export interface LimiterOptions {
  clock: Pick<Clock, "monotonicMs">;
  /** Occurrences that one key may have within any window. */
  limit: number;
  windowMs: number;
  /**
   * Keys remembered at a time. Beyond that, the one that has been quiet longest is forgotten, so that strangers who make
   * up keys cannot fill the memory.
   */
  maxKeys: number;
}

export type Turn = { ok: true } | { ok: false; retryAfterSeconds: number };

/** Whether there is room for one more in addition to occurrences that still count, the oldest first. */
export function judge(
  times: readonly number[],
  now: number,
  { limit, windowMs }: Pick<LimiterOptions, "limit" | "windowMs">,
): Turn {
  const oldest = times[0];
  if (oldest === undefined || times.length < limit) return { ok: true };
  return { ok: false, retryAfterSeconds: Math.max(1, Math.ceil((oldest + windowMs - now) / 1000)) };
}

/**
 * Counts occurrences in a sliding window, by key. A fixed window would let twice the limit pass around its edge. It costs
 * eight bytes per occurrence; limits here are at most some hundreds.
 */
export interface Limiter {
  /** Counts one occurrence if the limit has room for it. */
  take(key: string): Turn;
  /** Whether `take` would succeed, without counting. */
  peek(key: string): Turn;
  /** Takes back the latest occurrence: what was counted in advance turned out not to count. */
  giveBack(key: string): void;
}

/**
 * @example
 * const logins = createLimiter({ clock, limit: 10, windowMs: 15 * 60_000, maxKeys: 10_000 });
 * const turn = logins.take(address);
 * if (!turn.ok) throw rateLimited("…", "too_many_logins", turn.retryAfterSeconds);
 */
export function createLimiter({ clock, maxKeys, ...rule }: LimiterOptions): Limiter {
  /** Times of occurrences, the oldest first. The map is in order of last use, the least recent first. */
  const seen = new Map<string, number[]>();

  /** The occurrences of a key that still count. */
  function current(key: string, now: number): number[] {
    const times = seen.get(key);
    if (times === undefined) return [];
    const firstInWindow = times.findIndex((at) => at > now - rule.windowMs);
    if (firstInWindow === -1) {
      seen.delete(key);
      return [];
    }
    times.splice(0, firstInWindow);
    return times;
  }

  return {
    take(key) {
      const now = clock.monotonicMs();
      const times = current(key, now);
      const turn = judge(times, now, rule);
      if (!turn.ok) return turn;
      times.push(now);
      seen.delete(key);
      seen.set(key, times);
      if (seen.size > maxKeys) forgetOldest(seen);
      return turn;
    },

    peek(key) {
      const now = clock.monotonicMs();
      return judge(current(key, now), now, rule);
    },

    giveBack(key) {
      const times = seen.get(key);
      times?.pop();
      if (times?.length === 0) seen.delete(key);
    },
  };
}

/** Lets a limited number of tasks run at a time; the others wait in order. */
export interface Semaphore {
  run<T>(task: () => Promise<T>): Promise<T>;
  /** Tasks that wait for their turn. */
  readonly waiting: number;
}

/** @param slots how many tasks run at a time */
export function createSemaphore(slots: number): Semaphore {
  const queue: (() => void)[] = [];
  let free = slots;

  return {
    get waiting() {
      return queue.length;
    },
    async run(task) {
      if (free > 0) free--;
      else await new Promise<void>((resolve) => queue.push(resolve));
      try {
        return await task();
      } finally {
        // The slot is handed on directly, so that a newcomer cannot overtake those that wait.
        const next = queue.shift();
        if (next) next();
        else free++;
      }
    },
  };
}
