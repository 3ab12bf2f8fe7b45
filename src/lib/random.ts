/** Numbers that look random and repeat for the same seed (mulberry32). */
export interface Random {
  /** 0 ≤ n < 1 */
  next(): number;
  /** A whole number, including both ends. */
  between(min: number, max: number): number;
  chance(share: number): boolean;
  pick<T>(items: readonly [T, ...T[]]): T;
}

/** @param seed its lowest 32 bits count */
export function createRandom(seed: number): Random {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
  return {
    next,
    between: (min, max) => min + Math.floor(next() * (max - min + 1)),
    chance: (share) => next() < share,
    pick: (items) => items[Math.floor(next() * items.length)] ?? items[0],
  };
}

/** Another source, which no longer draws from this one: how much one part takes does not change what the others get. */
export const fork = (random: Random): Random => createRandom(random.between(0, 2 ** 32 - 1));
