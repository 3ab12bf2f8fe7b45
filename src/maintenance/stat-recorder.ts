import type { Clock } from "../lib/clock.ts";
import { latencyBucket } from "../store/latency.ts";
import type { StatDelta } from "../store/stats.ts";
import type { Store } from "../store/store.ts";

/** Charts may lag by this much, and a crash loses this much of them; events and records are never part of it. */
const flushEveryMs = 1000;

const minuteMs = 60_000;

interface Sum {
  tenantKey: number;
  minute: number;
  accepted: number;
  delivered: number;
  failed: number;
  attempts: number;
  latency: Map<number, number>;
}

/** Adds up what happens and writes it once a second: a row for each tenant and minute, whatever the rate. */
export interface StatRecorder {
  /** @param failed records that there is nowhere to deliver to */
  accepted(tenantKey: number, counts: { events: number; failed: number }): void;
  attempted(
    tenantKey: number,
    outcome: { next: "delivered" | "failed" | "retry"; answered: boolean; durationMs: number },
  ): void;
  flush(): Promise<void>;
}

export function createStatRecorder({ store, clock }: { store: Pick<Store, "addStats">; clock: Clock }): StatRecorder {
  let sums = new Map<number, Sum>();
  let minute = 0;
  let cancel: (() => void) | null = null;
  let finished: Sum[] = [];

  function sumOf(tenantKey: number): Sum {
    const now = Math.floor(clock.now() / minuteMs);
    if (now !== minute) {
      finished.push(...sums.values());
      sums = new Map();
      minute = now;
    }
    let sum = sums.get(tenantKey);
    if (!sum) {
      sum = { tenantKey, minute, accepted: 0, delivered: 0, failed: 0, attempts: 0, latency: new Map() };
      sums.set(tenantKey, sum);
    }
    cancel ??= clock.after(flushEveryMs, () => void flush().catch(() => {}));
    return sum;
  }

  async function flush(): Promise<void> {
    cancel?.();
    cancel = null;
    const deltas: StatDelta[] = [...finished, ...sums.values()];
    sums = new Map();
    finished = [];
    if (deltas.length > 0) await store.addStats(deltas);
  }

  return {
    accepted(tenantKey, { events, failed }) {
      const sum = sumOf(tenantKey);
      sum.accepted += events;
      sum.failed += failed;
    },
    attempted(tenantKey, { next, answered, durationMs }) {
      const sum = sumOf(tenantKey);
      sum.attempts += 1;
      if (next !== "retry") sum[next] += 1;
      if (!answered) return;
      const bucket = latencyBucket(durationMs);
      sum.latency.set(bucket, (sum.latency.get(bucket) ?? 0) + 1);
    },
    flush,
  };
}
