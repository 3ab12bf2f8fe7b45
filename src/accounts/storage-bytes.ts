import type { Clock } from "../lib/clock.ts";
import type { RetentionVerbs } from "../store/retention.ts";

/** Measured again after a minute, or after this many times as long as measuring took, so that frequent requests cost little. */
const freshMs = 60_000;
const freshPerWork = 200;

/** A caller waits no longer than this: measuring millions of events takes seconds. */
const patienceMs = 250;

/** Number of accounts whose latest figure is kept. */
const mostKept = 10_000;

/**
 * How many bytes the events of an account take: as of a minute ago, or somewhat longer where there are many. Null: they are
 * being measured for the first time, and it is taking long.
 */
export type StorageBytes = (tenantKey: number) => Promise<number | null>;

interface Kept {
  /** Null: not measured yet. */
  bytes: number | null;
  staleAt: number;
  /** Set while it is being measured; everyone who asks meanwhile waits for this result. */
  underWay: Promise<number> | null;
}

export function createStorageBytes({
  store,
  clock,
}: {
  store: Pick<RetentionVerbs, "storageOf">;
  clock: Pick<Clock, "monotonicMs" | "after">;
}): StorageBytes {
  const kept = new Map<number, Kept>();

  function keptOf(tenantKey: number): Kept {
    const known = kept.get(tenantKey);
    if (known) return known;
    if (kept.size >= mostKept) kept.delete(kept.keys().next().value ?? 0);
    const made: Kept = { bytes: null, staleAt: Number.NEGATIVE_INFINITY, underWay: null };
    kept.set(tenantKey, made);
    return made;
  }

  async function measure(own: Kept, tenantKey: number): Promise<number> {
    const startedAt = clock.monotonicMs();
    try {
      own.bytes = await store.storageOf(tenantKey);
      const endedAt = clock.monotonicMs();
      own.staleAt = endedAt + Math.max(freshMs, freshPerWork * (endedAt - startedAt));
      return own.bytes;
    } finally {
      own.underWay = null;
    }
  }

  return async (tenantKey) => {
    const own = keptOf(tenantKey);
    if (own.bytes !== null && clock.monotonicMs() < own.staleAt) return own.bytes;
    own.underWay ??= measure(own, tenantKey);
    let cancel = () => {};
    const late = new Promise<null>((resolve) => {
      cancel = clock.after(patienceMs, () => resolve(null));
    });
    try {
      return (await Promise.race([own.underWay, late])) ?? own.bytes;
    } finally {
      cancel();
    }
  };
}
