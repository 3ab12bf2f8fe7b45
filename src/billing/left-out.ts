import { isUnavailable } from "../domain/errors.ts";
import type { Clock } from "../lib/clock.ts";
import { isStorageDamaged } from "../store/unless-damaged.ts";

/**
 * Accounts whose work has failed, most likely because their books are damaged. They stay due, before all others, so each is
 * left out for a minute. Kept in memory: as many as fail within that minute.
 */
export interface LeftOut {
  /** Does an account's work, and leaves the account out from then on if that throws. */
  run(accountKey: number, work: () => Promise<void>): Promise<void>;
  /**
   * Does the work of one account after the other. An account whose work throws stops nothing for the others: the first error
   * is thrown at the end. Only a store that is away ends it, since that is so for all of them.
   */
  each(accountKeys: Iterable<number>, work: (accountKey: number) => Promise<void>): Promise<void>;
  has(accountKey: number): boolean;
  readonly size: number;
  /** How long until the next one is no longer left out; infinite when there is none. */
  readonly nextMs: number;
}

const leftOutMs = 60_000;

const isStoreAway = (error: unknown): boolean => isUnavailable(error) && !isStorageDamaged(error);

export function createLeftOut({ monotonicMs }: Pick<Clock, "monotonicMs">): LeftOut {
  /** When each may be tried again, soonest first. */
  const endsAt = new Map<number, number>();

  function current(): ReadonlyMap<number, number> {
    const now = monotonicMs();
    for (const [accountKey, at] of endsAt) {
      if (at > now) break;
      endsAt.delete(accountKey);
    }
    return endsAt;
  }

  async function run(accountKey: number, work: () => Promise<void>): Promise<void> {
    try {
      await work();
      endsAt.delete(accountKey);
    } catch (error) {
      if (!isStoreAway(error)) {
        endsAt.delete(accountKey);
        endsAt.set(accountKey, monotonicMs() + leftOutMs);
      }
      throw error;
    }
  }

  return {
    run,
    async each(accountKeys, work) {
      const errors: unknown[] = [];
      for (const accountKey of accountKeys) {
        try {
          await run(accountKey, () => work(accountKey));
        } catch (error) {
          if (isStoreAway(error)) throw error;
          if (errors.length === 0) errors.push(error);
        }
      }
      if (errors.length > 0) throw errors[0];
    },
    has: (accountKey) => current().has(accountKey),
    get size() {
      return current().size;
    },
    get nextMs() {
      for (const at of current().values()) return at - monotonicMs();
      return Number.POSITIVE_INFINITY;
    },
  };
}
