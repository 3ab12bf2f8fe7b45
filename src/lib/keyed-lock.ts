/** Runs the actions of one key one at a time, in order of arrival; other keys do not wait. */
export interface KeyedLock<K> {
  run<T>(key: K, action: () => Promise<T>): Promise<T>;
}

export function createKeyedLock<K>(): KeyedLock<K> {
  /** The last action of each key; it never rejects. */
  const tails = new Map<K, Promise<unknown>>();
  return {
    run(key, action) {
      const before = tails.get(key) ?? Promise.resolve();
      const result = before.then(action);
      const tail = result.then(
        () => {},
        () => {},
      );
      tails.set(key, tail);
      void tail.then(() => {
        if (tails.get(key) === tail) tails.delete(key);
      });
      return result;
    },
  };
}
