import type { Clock } from "../lib/clock.ts";
import { createLimiter, type Limiter } from "../lib/limiter.ts";
import type { Count, Limit, Limits, Turn } from "./limits.ts";

/** The limits of a process that runs alone. Each verb is atomic, as nothing in it awaits. */
export function createMemoryLimits(clock: Pick<Clock, "monotonicMs">): Limits {
  const limiters = new Map<string, Limiter>();

  function limiterOf({ name, most, windowMs, keys }: Limit): Limiter {
    let limiter = limiters.get(name);
    if (!limiter) {
      limiter = createLimiter({ clock, limit: most, windowMs, maxKeys: keys });
      limiters.set(name, limiter);
    }
    return limiter;
  }

  function judge(counts: readonly Count[]): Turn {
    for (const { limit, key } of counts) {
      const turn = limiterOf(limit).peek(key);
      if (!turn.ok) return { ...turn, by: limit };
    }
    return { ok: true };
  }

  return {
    async take(counts, others = []) {
      const turn = judge([...counts, ...others]);
      if (turn.ok) for (const { limit, key } of counts) limiterOf(limit).take(key);
      return turn;
    },
    peek: async (counts) => judge(counts),
    async giveBack(counts) {
      for (const { limit, key } of counts) limiterOf(limit).giveBack(key);
    },
  };
}
