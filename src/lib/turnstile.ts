/**
 * Lets a limited weight through at a time. Anything beyond that waits, and keys take turns: an account with a thousand
 * requests waits behind itself, not in front of others.
 */
export interface Turnstile<Key> {
  /**
   * @param weight a weight above `most` passes alone
   * @returns null: immediately; otherwise resolves when it may. Each that has passed must `leave` with the same weight.
   */
  pass(key: Key, weight: number): Promise<void> | null;
  leave(weight: number): void;
  /** Lets this much through at a time from now on; 0: nothing. */
  widen(most: number): void;
}

interface Waiting {
  readonly weight: number;
  readonly start: () => void;
}

/** @param atFirst the weight that it lets through at a time, until it is widened */
export function createTurnstile<Key>(atFirst: number): Turnstile<Key> {
  let most = atFirst;
  let inside = 0;
  /** In the order of their turns; a key goes to the end with what is left of it. */
  const waiting = new Map<Key, Waiting[]>();

  const fits = (weight: number) => inside + weight <= most || (inside === 0 && most > 0);

  function next(): boolean {
    if (waiting.size === 0) return false;
    for (const [key, queue] of waiting) {
      const [first] = queue;
      if (!first || !fits(first.weight)) return false;
      waiting.delete(key);
      queue.shift();
      if (queue.length > 0) waiting.set(key, queue);
      inside += first.weight;
      first.start();
      return true;
    }
    return false;
  }

  return {
    pass(key, weight) {
      if (waiting.size === 0 && fits(weight)) {
        inside += weight;
        return null;
      }
      return new Promise((start) => {
        const queue = waiting.get(key);
        if (queue) queue.push({ weight, start });
        else waiting.set(key, [{ weight, start }]);
      });
    },
    leave(weight) {
      inside -= weight;
      while (next());
    },
    widen(to) {
      most = to;
      while (next());
    },
  };
}
