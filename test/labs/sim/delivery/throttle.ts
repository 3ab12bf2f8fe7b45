import type { Database } from "bun:sqlite";
import { webhookBurstMs } from "../../../../src/delivery/queue/webhook-pace.ts";
import type { FakeClock } from "../../../support/fake-clock.ts";

/** An entry of a list of webhooks, as its owner sends it. */
export interface Entry {
  readonly webhook_url: string;
  readonly name: string;
  readonly ordered?: boolean;
  readonly paused?: boolean | null;
  readonly rate_limit?: number | null;
  readonly max_concurrency?: number | null;
  readonly headers?: Readonly<Record<string, string>> | null;
}

interface Told {
  readonly key: number;
  readonly url: string;
  readonly paused: number;
  readonly rateLimit: number | null;
  readonly maxConcurrency: number | null;
}

/** Of times that are fractions of a millisecond. */
const hair = 1e-3;

/**
 * What webhooks have been told, kept apart from the program, which is held to it while no change is under way: before its
 * answer either of the two may hold.
 */
export function createThrottleModel(clock: FakeClock, client: Database) {
  const selectAll = client.prepare<Told & { tenantKey: number }, []>(
    `select key, tenant_key as tenantKey, url, paused, rate_limit as rateLimit, max_concurrency as maxConcurrency
     from webhook where removed_at is null order by position`,
  );
  /** By account and webhook. */
  const known = new Map<number, Map<number, Told>>();
  const buckets = new Map<number, { tokens: number; at: number }>();
  /** The marks that their headers have, by account and URL. */
  const marks = new Map<number, Map<string, string | null>>();

  const of = (tenantKey: number, webhookKey: number) => known.get(tenantKey)?.get(webhookKey);

  function learn(tenantKey: number): void {
    const all = selectAll.all().filter((webhook) => webhook.tenantKey === tenantKey);
    known.set(tenantKey, new Map(all.map((webhook) => [webhook.key, webhook])));
  }

  return {
    of,
    /** A change has been asked for. */
    changing(tenantKey: number): void {
      for (const webhookKey of known.get(tenantKey)?.keys() ?? []) buckets.delete(webhookKey);
      known.delete(tenantKey);
    },
    /** No change is under way any more. */
    learn,
    /** In their order, as they are on disk. */
    urlsOf: (tenantKey: number) =>
      selectAll.all().flatMap((webhook) => (webhook.tenantKey === tenantKey ? [webhook.url] : [])),
    /** This list was answered, and no other is under way. */
    marked(tenantKey: number, entries: readonly Entry[]): void {
      const before = marks.get(tenantKey);
      const now = entries.flatMap(({ webhook_url, headers }): [string, string | null][] => {
        if (headers !== undefined) return [[webhook_url, headers?.["X-Mark"] ?? null]];
        const kept = before?.get(webhook_url);
        return kept === undefined ? [] : [[webhook_url, kept]];
      });
      marks.set(tenantKey, new Map(now));
    },
    /** Of changes whose outcome nobody knows. */
    forgetMarks: (tenantKey: number) => void marks.delete(tenantKey),
    /** Undefined: it is not known. */
    markOf: (tenantKey: number, url: string) => (known.has(tenantKey) ? marks.get(tenantKey)?.get(url) : undefined),
    /** Notes an attempt. @returns false when there was no token for it */
    take(tenantKey: number, webhookKey: number): boolean {
      const rate = of(tenantKey, webhookKey)?.rateLimit ?? null;
      if (rate === null) return true;
      const most = Math.max(1, (rate * webhookBurstMs) / 1000);
      const bucket = buckets.get(webhookKey) ?? { tokens: most, at: clock.monotonicMs() };
      const tokens = Math.min(most, bucket.tokens + ((clock.monotonicMs() - bucket.at) / 1000) * rate);
      buckets.set(webhookKey, { tokens: tokens - 1, at: clock.monotonicMs() });
      return tokens >= 1 - hair;
    },
    /** How long ago the last attempt to it began, if it was under a rate. */
    sinceAttemptMs: (webhookKey: number) =>
      clock.monotonicMs() - (buckets.get(webhookKey)?.at ?? Number.NEGATIVE_INFINITY),
    /** A restart forgets rates, and what was under way has been, or has not. */
    readBack(): void {
      buckets.clear();
      known.clear();
      marks.clear();
      for (const tenantKey of new Set(selectAll.all().map((webhook) => webhook.tenantKey))) learn(tenantKey);
    },
  };
}

export type ThrottleModel = ReturnType<typeof createThrottleModel>;
