/** Remembers for a while what has been seen, so that what arrives by two paths is taken only once. */
export interface Recent {
  has(key: string): boolean;
  /** When it last happened, among what was added; undefined when it was not added. */
  timeOf(key: string): number | undefined;
  /** @param atMs when it happened */
  add(key: string, atMs: number): void;
  /** The latest time of all entries. */
  readonly latestMs: number;
}

export interface RecentOptions {
  /** What happened longer than this before the latest entry may be forgotten … */
  keepMs: number;
  /** … unless it happened less than that before this time. */
  neededSince(): number;
  startMs: number;
}

const smallestSweep = 1_000;

export function createRecent({ keepMs, neededSince, startMs }: RecentOptions): Recent {
  const times = new Map<string, number>();
  let latestMs = startMs;
  let sweepAt = smallestSweep;
  return {
    get latestMs() {
      return latestMs;
    },
    has: (key) => times.has(key),
    timeOf: (key) => times.get(key),
    add(key, atMs) {
      times.set(key, atMs);
      latestMs = Math.max(latestMs, atMs);
      if (times.size < sweepAt) return;
      const oldestMs = Math.min(latestMs, neededSince()) - keepMs;
      for (const [old, oldMs] of times) if (oldMs < oldestMs) times.delete(old);
      sweepAt = Math.max(smallestSweep, 2 * times.size);
    },
  };
}
