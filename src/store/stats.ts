import type { RefusalReason, RefusedEvents } from "../domain/refused-events.ts";

/** The verbs of the charts. They count what happened; the records themselves are `EventVerbs`. */

export interface StatDelta {
  readonly tenantKey: number;
  /** Absent: of all the account's together. */
  readonly webhookKey?: number;
  readonly minute: number;
  /** 0 of a webhook: an event is accepted once, for however many. */
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
  /** Percentiles of the attempts that were answered; null when none was. */
  readonly p50Ms: number | null;
  readonly p95Ms: number | null;
}

export interface StatBucket extends StatSums {
  readonly at: number;
}

export interface Stats {
  /** One entry a bucket from `from` to `to`, also for those in which nothing happened. */
  readonly buckets: StatBucket[];
  /** All of them together; percentiles are those of all attempts, not means of percentiles. */
  readonly total: StatSums;
}

/** What is PENDING now. */
export interface Waiting {
  readonly records: number;
  /** Ingestion time of the oldest event among them; null when nothing waits. */
  readonly oldestIngestedAt: number | null;
}

export interface StatRange {
  readonly from: number;
  readonly to: number;
  readonly bucketMs: number;
  /** Id or URL of a webhook, also of a removed one: what became of its deliveries. */
  readonly webhookId?: string;
}

export interface RefusalDelta {
  readonly tenantKey: number;
  /** As `utcMonth` has it. */
  readonly month: number;
  readonly reason: RefusalReason;
  readonly events: number;
}

export interface StatVerbs {
  addStats(deltas: readonly StatDelta[]): Promise<void>;
  stats(tenantKey: number, range: StatRange): Promise<Stats>;
  /** Takes a step in merging old minutes to hours, and in forgetting hours (`old-minutes.ts`); true while there is more. */
  thinStats(now: number): Promise<boolean>;
  addRefused(deltas: readonly RefusalDelta[]): Promise<void>;
  refusedEvents(tenantKey: number, month: number): Promise<RefusedEvents>;
  /** Costs the same however much waits. */
  waiting(tenantKey: number): Promise<Waiting>;
}
