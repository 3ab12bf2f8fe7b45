/** A set that keeps what was added last and forgets the rest, so that it cannot grow. */
export interface Recent<T> {
  add(item: T): void;
  has(item: T): boolean;
}

export function createRecent<T>(limit: number): Recent<T> {
  const items = new Set<T>();
  return {
    add(item) {
      items.delete(item);
      items.add(item);
      if (items.size <= limit) return;
      const oldest = items.keys().next();
      if (!oldest.done) items.delete(oldest.value);
    },
    has: (item) => items.has(item),
  };
}
