import { forgetOldest } from "./forget-oldest.ts";

/**
 * Keeps what was read until it may have changed. A read takes time, and a change may overtake it: its result is then
 * returned to the caller but not kept, because it may be older than the change.
 *
 *   read begins ── forget ── read ends: not kept         forget ── read begins ── read ends: kept
 *
 * So it is enough to call `forget` when a change is answered: every read from then on finds the change.
 */
export interface ReadCache<Key, Value> {
  get(key: Key): Value | undefined;
  /** Reads it, whether it is kept or not. Null, for something that does not exist, is not kept. */
  read<Found extends Value | null>(key: Key, load: () => Promise<Found>): Promise<Found>;
  /** It has changed, or may have. */
  forget(key: Key): void;
  /** Any of them may have changed. */
  forgetAll(): void;
}

/** @param most entries; one more replaces the one that was kept first */
export function createReadCache<Key, Value>(most: number): ReadCache<Key, Value> {
  const kept = new Map<Key, Value>();
  /** One counter for all keys: a change is rare, and costs the others only a read. */
  let changes = 0;

  return {
    get: (key) => kept.get(key),

    async read(key, load) {
      const before = changes;
      const found = await load();
      if (found === null || changes !== before) return found;
      if (kept.size >= most && !kept.has(key)) forgetOldest(kept);
      kept.set(key, found);
      return found;
    },

    forget(key) {
      changes += 1;
      kept.delete(key);
    },

    forgetAll() {
      changes += 1;
      kept.clear();
    },
  };
}
