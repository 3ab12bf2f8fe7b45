/**
 * What was read, kept until it may have changed. A read takes time, and a change may overtake it: what it then brings is
 * given to whoever asked, and not kept, for it may be older than the change.
 *
 *   read begins ── forget ── read ends: not kept         forget ── read begins ── read ends: kept
 *
 * So it is enough to forget when a change is answered: whoever reads from then on finds it.
 */
export interface ReadCache<Key, Value> {
  get(key: Key): Value | undefined;
  /** Reads it, whether it is kept or not. Null, for what is not there, is not kept. */
  read<Found extends Value | null>(key: Key, load: () => Promise<Found>): Promise<Found>;
  /** It has changed, or may have. */
  forget(key: Key): void;
  /** Any of them may have changed. */
  forgetAll(): void;
}

/** @param most entries; one more takes the place of the one that was kept first */
export function createReadCache<Key, Value>(most: number): ReadCache<Key, Value> {
  const kept = new Map<Key, Value>();
  /** One for all keys: a change is rare, and what it costs the others is a read. */
  let changes = 0;

  return {
    get: (key) => kept.get(key),

    async read(key, load) {
      const before = changes;
      const found = await load();
      if (found === null || changes !== before) return found;
      if (kept.size >= most && !kept.has(key)) {
        const oldest = kept.keys().next();
        if (!oldest.done) kept.delete(oldest.value);
      }
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
