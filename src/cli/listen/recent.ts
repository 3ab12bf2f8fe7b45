/** Remembers for a while what has been seen, so that what arrives by two paths is taken only once. */
export interface Recent {
  has(key: string): boolean;
  /** When it last happened, among what was added; undefined when it was not added. */
  timeOf(key: string): number | undefined;
  /** @param atMs when it happened */
  add(key: string, atMs: number): void;
  /** All of what happened up to then has been seen, give or take an overlap. */
  readonly throughMs: number;
  /** Moves `throughMs` on; never back. */
  advance(toMs: number): void;
}

export interface RecentOptions {
  /** What happened longer than this before `throughMs` may be forgotten … */
  keepMs: number;
  /** … unless it happened less than that before this time. */
  neededSince(): number;
  startMs: number;
}

const smallestSweep = 1_000;

export function createRecent({ keepMs, neededSince, startMs }: RecentOptions): Recent {
  const times = new Map<string, number>();
  let throughMs = startMs;
  let sweepAt = smallestSweep;
  return {
    get throughMs() {
      return throughMs;
    },
    advance(toMs) {
      throughMs = Math.max(throughMs, toMs);
    },
    has: (key) => times.has(key),
    timeOf: (key) => times.get(key),
    add(key, atMs) {
      times.set(key, atMs);
      if (times.size < sweepAt) return;
      const oldestMs = Math.min(throughMs, neededSince()) - keepMs;
      for (const [old, oldMs] of times) if (oldMs < oldestMs) times.delete(old);
      sweepAt = Math.max(smallestSweep, 2 * times.size);
    },
  };
}
