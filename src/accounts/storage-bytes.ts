import type { Clock } from "../lib/clock.ts";
import type { RetentionVerbs } from "../store/retention.ts";

/** Measured again after a minute, or after so many times as long as measuring took, so that asking often costs little. */
const freshMs = 60_000;
const freshPerWork = 200;

/** Whoever asks waits no longer for it: of millions of events it takes seconds. */
const patienceMs = 250;

/** Accounts of which the latest figure is kept. */
const mostKept = 10_000;

/**
 * How many bytes the events of an account take: as of a minute ago, or some more where there are many. Null: they are being
 * measured for the first time, and it takes long.
 */
export type StorageBytes = (tenantKey: number) => Promise<number | null>;

interface Kept {
  /** Null: none yet. */
  bytes: number | null;
  staleAt: number;
  /** Whoever asks while it is measured waits for the same. */
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
