/** A map that keeps the latest entries, at least `limit` and at most twice as many, so that it cannot grow without bound. */
export interface Recent<Key, Value> {
  set(key: Key, value: Value): void;
  get(key: Key): Value | undefined;
}

/**
 * Keeps two generations. To forget the oldest entry of a single map each time, its iterator has to pass all those that
 * were forgotten before: that was 7 % of the event loop at full load.
 */
export function createRecent<Key, Value>(limit: number): Recent<Key, Value> {
  let latest = new Map<Key, Value>();
  let earlier = new Map<Key, Value>();
  return {
    set(key, value) {
      latest.set(key, value);
      if (latest.size < limit) return;
      earlier = latest;
      latest = new Map();
    },
    get(key) {
      const value = latest.get(key);
      return value === undefined ? earlier.get(key) : value;
    },
  };
}
