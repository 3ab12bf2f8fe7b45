/** A map that keeps what was set last and forgets the rest, so that it cannot grow. */
export interface Recent<Key, Value> {
  set(key: Key, value: Value): void;
  get(key: Key): Value | undefined;
}

export function createRecent<Key, Value>(limit: number): Recent<Key, Value> {
  const entries = new Map<Key, Value>();
  return {
    set(key, value) {
      entries.delete(key);
      entries.set(key, value);
      if (entries.size <= limit) return;
      const oldest = entries.keys().next();
      if (!oldest.done) entries.delete(oldest.value);
    },
    get: (key) => entries.get(key),
  };
}
