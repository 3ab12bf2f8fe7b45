import type { RefusalReason, RefusedEvents } from "../domain/refused-events.ts";

/** The verbs behind the charts. They count what happened; for the records themselves see `EventVerbs`. */

export interface StatDelta {
  readonly tenantKey: number;
  /** Absent: for the whole account. */
  readonly webhookKey?: number;
  readonly minute: number;
  /** 0 for a webhook: an event is accepted once, however many webhooks get it. */
  readonly accepted: number;
  readonly delivered: number;
  readonly failed: number;
  readonly attempts: number;
  /** Counts by latency bucket (`store/latency.ts`). */
  readonly latency: ReadonlyMap<number, number>;
}

export interface StatSums {
  readonly accepted: number;
  readonly delivered: number;
  readonly failed: number;
  readonly attempts: number;
  /** Percentiles over the attempts that got a response; null when none did. */
  readonly p50Ms: number | null;
  readonly p95Ms: number | null;
}

export interface StatBucket extends StatSums {
  readonly at: number;
}

export interface Stats {
  /** One entry per bucket from `from` to `to`, including those in which nothing happened. */
  readonly buckets: StatBucket[];
  /** All buckets together; percentiles are taken over all attempts, not averaged from the buckets'. */
  readonly total: StatSums;
}

/** What is `PENDING` now. */
export interface Waiting {
  readonly records: number;
  /** Ingestion time of the oldest event among them; null when nothing waits. */
  readonly oldestIngestedAt: number | null;
}

export interface StatRange {
  readonly from: number;
  readonly to: number;
  readonly bucketMs: number;
  /** Id or URL of a webhook, possibly a removed one: only its deliveries are counted. */
  readonly webhookId?: string;
}

export interface RefusalDelta {
  readonly tenantKey: number;
  /** As `utcMonth` counts it. */
  readonly month: number;
  readonly reason: RefusalReason;
  readonly events: number;
}

export interface StatVerbs {
  /** What would lie on damaged parts of the store is lost, and nothing else; the same goes for `addRefused`. */
  addStats(deltas: readonly StatDelta[]): Promise<void>;
  stats(tenantKey: number, range: StatRange): Promise<Stats>;
  /** Takes one step in merging old minutes into hours and dropping old hours (`old-minutes.ts`); true while there is more. */
  thinStats(now: number): Promise<boolean>;
  addRefused(deltas: readonly RefusalDelta[]): Promise<void>;
  refusedEvents(tenantKey: number, month: number): Promise<RefusedEvents>;
  /** Costs the same however many records wait. */
  waiting(tenantKey: number): Promise<Waiting>;
}
