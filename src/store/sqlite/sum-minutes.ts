import { addStored, type Histogram, percentile } from "../latency.ts";
import type { StatSums } from "../stats.ts";

/** A row of `stat`: minute, accepted, delivered, failed, attempts, latency. */
export type MinuteRow = [
  minute: number,
  accepted: number,
  delivered: number,
  failed: number,
  attempts: number,
  latency: string,
];

interface Sum {
  counts: [accepted: number, delivered: number, failed: number, attempts: number];
  latency: Histogram;
}

/**
 * Adds minutes up to buckets of time and to their total, in one pass. SQLite would have to sort the minutes for it, and
 * cannot add histograms.
 * @returns the buckets in which something happened, by their number: minute divided by width
 */
export function sumMinutes(
  rows: readonly MinuteRow[],
  bucketMinutes: number,
): { buckets: Map<number, StatSums>; total: StatSums } {
  const total = emptySum();
  const sums = new Map<number, Sum>();
  for (const [minute, accepted, delivered, failed, attempts, latency] of rows) {
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
  const buckets = new Map([...sums].map(([bucket, sum]) => [bucket, toSums(sum)]));
  return { buckets, total: toSums(total) };
}

const emptySum = (): Sum => ({ counts: [0, 0, 0, 0], latency: [] });

export const noSums: StatSums = { accepted: 0, delivered: 0, failed: 0, attempts: 0, p50Ms: null, p95Ms: null };

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
