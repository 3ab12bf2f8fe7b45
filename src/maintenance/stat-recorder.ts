import type { RefusalReason } from "../domain/refused-events.ts";
import { utcMonth } from "../domain/tenant-state.ts";
import type { WebhookRef } from "../domain/webhook.ts";
import type { Clock } from "../lib/clock.ts";
import { latencyBucket } from "../store/latency.ts";
import type { RefusalDelta, StatDelta } from "../store/stats.ts";
import type { Store } from "../store/store.ts";

/** Charts may lag by this much, and a crash loses this much of them; events and records are never affected. */
const flushEveryMs = 1000;

const minuteMs = 60_000;

interface Sum {
  tenantKey: number;
  webhookKey?: number;
  minute: number;
  accepted: number;
  delivered: number;
  failed: number;
  attempts: number;
  latency: Map<number, number>;
}

/**
 * Sums up what happens and writes it once a second: a row per minute for a tenant and for each of its webhooks, whatever the
 * rate, and one for each reason why events were refused.
 */
export interface StatRecorder {
  /** @param failed for each record that cannot be delivered, its disabled webhook; null: there is none */
  accepted(tenantKey: number, counts: { events: number; failed: readonly (number | null)[] }): void;
  /** @param outcome `ended`: as what the attempt ended its delivery; null: it did not */
  attempted(
    webhook: WebhookRef,
    outcome: { ended: "delivered" | "failed" | null; answered: boolean; durationMs: number },
  ): void;
  refused(tenantKey: number, reason: RefusalReason, events: number): void;
  flush(): Promise<void>;
}

type Deps = { store: Pick<Store, "addStats" | "addRefused">; clock: Clock };

export function createStatRecorder({ store, clock }: Deps): StatRecorder {
  let accounts = new Map<number, Sum>();
  /** Keyed by webhook keys, which no two accounts share. */
  let webhooks = new Map<number, Sum>();
  let minute = 0;
  let cancel: (() => void) | null = null;
  let finished: Sum[] = [];
  let refusals = new Map<string, RefusalDelta>();

  const sums = () => [...accounts.values(), ...webhooks.values()];

  function flushSoon(): void {
    cancel ??= clock.after(flushEveryMs, () => void flush().catch(() => {}));
  }

  function sumOf(tenantKey: number, webhookKey?: number): Sum {
    const now = Math.floor(clock.now() / minuteMs);
    if (now !== minute) {
      finished.push(...sums());
      accounts = new Map();
      webhooks = new Map();
      minute = now;
    }
    const [all, key] = webhookKey === undefined ? [accounts, tenantKey] : [webhooks, webhookKey];
    let sum = all.get(key);
    if (!sum) {
      sum = { tenantKey, minute, accepted: 0, delivered: 0, failed: 0, attempts: 0, latency: new Map() };
      if (webhookKey !== undefined) sum.webhookKey = webhookKey;
      all.set(key, sum);
    }
    flushSoon();
    return sum;
  }

  async function flush(): Promise<void> {
    cancel?.();
    cancel = null;
    const deltas: StatDelta[] = [...finished, ...sums()];
    const refused = [...refusals.values()];
    accounts = new Map();
    webhooks = new Map();
    finished = [];
    refusals = new Map();
    await Promise.all([deltas.length > 0 && store.addStats(deltas), refused.length > 0 && store.addRefused(refused)]);
  }

  return {
    accepted(tenantKey, { events, failed }) {
      const sum = sumOf(tenantKey);
      sum.accepted += events;
      sum.failed += failed.length;
      for (const webhookKey of failed) if (webhookKey !== null) sumOf(tenantKey, webhookKey).failed += 1;
    },
    attempted({ tenantKey, webhookKey }, { ended, answered, durationMs }) {
      const bucket = latencyBucket(durationMs);
      for (const sum of [sumOf(tenantKey), sumOf(tenantKey, webhookKey)]) {
        sum.attempts += 1;
        if (ended !== null) sum[ended] += 1;
        if (answered) sum.latency.set(bucket, (sum.latency.get(bucket) ?? 0) + 1);
      }
    },
    refused(tenantKey, reason, events) {
      const month = utcMonth(clock.now());
      const name = `${tenantKey} ${month} ${reason}`;
      const before = refusals.get(name)?.events ?? 0;
      refusals.set(name, { tenantKey, month, reason, events: before + events });
      flushSoon();
    },
    flush,
  };
}
