import type { Clock } from "../lib/clock.ts";
import type { RetentionVerbs } from "../store/retention.ts";

/** Measured again after a minute, or after so many times as long as measuring took, so that asking often costs little. */
const freshMs = 60_000;
const freshPerWork = 200;

/** Accounts of which the latest figure is kept. */
const mostKept = 10_000;

/** How many bytes the events of an account take: as of a minute ago, or some more where there are many. */
export type StorageBytes = (tenantKey: number) => Promise<number>;

export function createStorageBytes({
  store,
  clock,
}: {
  store: Pick<RetentionVerbs, "storageOf">;
  clock: Pick<Clock, "monotonicMs">;
}): StorageBytes {
  /** Whoever asks while it is measured waits for the same. */
  const kept = new Map<number, { bytes: Promise<number>; staleAt: number }>();

  function measure(tenantKey: number): Promise<number> {
    const startedAt = clock.monotonicMs();
    const bytes = store.storageOf(tenantKey);
    const entry = { bytes, staleAt: Number.POSITIVE_INFINITY };
    kept.delete(tenantKey);
    if (kept.size >= mostKept) kept.delete(kept.keys().next().value ?? 0);
    kept.set(tenantKey, entry);
    bytes.then(
      () => {
        const endedAt = clock.monotonicMs();
        entry.staleAt = endedAt + Math.max(freshMs, freshPerWork * (endedAt - startedAt));
      },
      () => kept.delete(tenantKey),
    );
    return bytes;
  }

  return (tenantKey) => {
    const known = kept.get(tenantKey);
    return known && clock.monotonicMs() < known.staleAt ? known.bytes : measure(tenantKey);
  };
}
