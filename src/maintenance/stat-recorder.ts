import type { RefusalReason } from "../domain/refused-events.ts";
import { utcMonth } from "../domain/tenant-state.ts";
import type { WebhookRef } from "../domain/webhook.ts";
import type { Clock } from "../lib/clock.ts";
import { latencyBucket } from "../store/latency.ts";
import type { RefusalDelta } from "../store/stats.ts";
import type { Store } from "../store/store.ts";

/** Charts may lag by this much, and a crash loses this much of them; events and records are never affected. */
const flushEveryMs = 1000;

/**
 * The most rows that wait while the store refuses them: those of 160 busy webhooks for an hour, some megabytes. Any further ones
 * are lost. A store that fails half-way may count some of a second twice, which is better than losing all of it.
 */
const mostRefused = 10_000;

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
  /** Of earlier minutes, and what the store has refused, by row. */
  let unwritten = new Map<string, Sum>();
  let refusals = new Map<string, RefusalDelta>();

  function flushSoon(): void {
    cancel ??= clock.after(flushEveryMs, () => void flush().catch(flushSoon));
  }

  /** Ends the sums of the current minute. */
  function close(): void {
    for (const sum of [...accounts.values(), ...webhooks.values()]) add(sum);
    accounts = new Map();
    webhooks = new Map();
  }

  function add(sum: Sum): void {
    const name = `${sum.tenantKey} ${sum.webhookKey} ${sum.minute}`;
    const there = unwritten.get(name);
    if (!there) {
      unwritten.set(name, sum);
      return;
    }
    for (const count of ["accepted", "delivered", "failed", "attempts"] as const) there[count] += sum[count];
    for (const [bucket, n] of sum.latency) there.latency.set(bucket, (there.latency.get(bucket) ?? 0) + n);
  }

  function addRefusal(delta: RefusalDelta): void {
    const name = `${delta.tenantKey} ${delta.month} ${delta.reason}`;
    const before = refusals.get(name)?.events ?? 0;
    refusals.set(name, { ...delta, events: before + delta.events });
  }

  function sumOf(tenantKey: number, webhookKey?: number): Sum {
    const now = Math.floor(clock.now() / minuteMs);
    if (now !== minute) {
      close();
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
    close();
    const sums = [...unwritten.values()];
    const refused = [...refusals.values()];
    unwritten = new Map();
    refusals = new Map();
    await Promise.all([
      sums.length > 0 && store.addStats(sums).catch(takeBack(sums, add, () => unwritten.size)),
      refused.length > 0 && store.addRefused(refused).catch(takeBack(refused, addRefusal, () => refusals.size)),
    ]);
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
      addRefusal({ tenantKey, month, reason, events });
      flushSoon();
    },
    flush,
  };
}

/** Adds what the store has refused again, so that the next flush writes it. */
const takeBack =
  <Delta>(deltas: readonly Delta[], add: (delta: Delta) => void, size: () => number) =>
  (error: unknown): never => {
    for (const delta of deltas) if (size() < mostRefused) add(delta);
    throw error;
  };
