import { addStored, type Histogram, percentile } from "./latency.ts";
import type { StatBucket, StatSums, Stats } from "./stats.ts";

const minuteMs = 60_000;

/** A row of counts: minute, accepted, delivered, failed, attempts, latency. */
export type MinuteRow = [
  minute: number,
  accepted: number,
  delivered: number,
  failed: number,
  attempts: number,
  latency: string,
];

/** The minutes that a chart covers, both inclusive. */
export interface MinuteRange {
  readonly from: number;
  readonly to: number;
  readonly bucketMinutes: number;
}

/** Only the buckets in which something happened, by their number: the minute divided by the width. */
export interface SummedMinutes {
  readonly buckets: ReadonlyMap<number, StatSums>;
  readonly total: StatSums;
}

/** A chart of a time range, in whole buckets. */
export async function chartOf(
  { from, to, bucketMs }: { from: number; to: number; bucketMs: number },
  sum: (range: MinuteRange) => Promise<SummedMinutes>,
): Promise<Stats> {
  const bucketMinutes = bucketMs / minuteMs;
  const first = Math.floor(from / bucketMs);
  const last = Math.floor(to / bucketMs);
  const range = { from: first * bucketMinutes, to: (last + 1) * bucketMinutes - 1, bucketMinutes };
  const { buckets, total } = await sum(range);
  return {
    buckets: Array.from(
      { length: last - first + 1 },
      (_, i): StatBucket => ({ at: (first + i) * bucketMs, ...(buckets.get(first + i) ?? noSums) }),
    ),
    total,
  };
}

interface Sum {
  counts: [accepted: number, delivered: number, failed: number, attempts: number];
  latency: Histogram;
}

/** A sum that minutes can be added to, some at a time. */
export interface MinuteSum {
  add(rows: readonly MinuteRow[]): void;
  sums(): SummedMinutes;
}

/**
 * Sums minutes into buckets and into a total, in one pass and in whatever order they come. A database would have to sort them
 * first, and cannot add histograms.
 */
export function createMinuteSum(bucketMinutes: number): MinuteSum {
  const total = emptySum();
  const sums = new Map<number, Sum>();

  function add([minute, accepted, delivered, failed, attempts, latency]: MinuteRow): void {
    const bucket = Math.floor(minute / bucketMinutes);
    let sum = sums.get(bucket);
    if (!sum) {
      sum = emptySum();
      sums.set(bucket, sum);
    }
    for (const { counts } of [sum, total]) {
      counts[0] += accepted;
      counts[1] += delivered;
      counts[2] += failed;
      counts[3] += attempts;
    }
    addStored(latency, sum.latency, total.latency);
  }

  return {
    add(rows) {
      for (const row of rows) add(row);
    },
    sums: () => ({ buckets: new Map([...sums].map(([bucket, sum]) => [bucket, toSums(sum)])), total: toSums(total) }),
  };
}

export function sumMinutes(rows: readonly MinuteRow[], bucketMinutes: number): SummedMinutes {
  const sum = createMinuteSum(bucketMinutes);
  sum.add(rows);
  return sum.sums();
}

const emptySum = (): Sum => ({ counts: [0, 0, 0, 0], latency: [] });

const noSums: StatSums = { accepted: 0, delivered: 0, failed: 0, attempts: 0, p50Ms: null, p95Ms: null };

function toSums({ counts: [accepted, delivered, failed, attempts], latency }: Sum): StatSums {
  return {
    accepted,
    delivered,
    failed,
    attempts,
    p50Ms: percentile(latency, 0.5),
    p95Ms: percentile(latency, 0.95),
  };
}
