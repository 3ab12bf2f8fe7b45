/**
 * Response times as counts in buckets that grow by a quarter power of two (19 % wide), so that a percentile of any range
 * of time is the sum of a few small rows. The error of a percentile is at most half a bucket.
 */
const perDoubling = 4;

/** The bucket of a duration in ms: 0 for everything below 1 ms. */
export function latencyBucket(durationMs: number): number {
  return durationMs < 1 ? 0 : 1 + Math.floor(Math.log2(durationMs) * perDoubling);
}

/** The middle of a bucket, in ms. */
export function latencyOf(bucket: number): number {
  return bucket === 0 ? 0.5 : 2 ** ((bucket - 0.5) / perDoubling);
}

/** The duration below which `share` (0 to 1) of the counted durations lie, in ms; null when there are none. */
export function percentile(counts: readonly { bucket: number; count: number }[], share: number): number | null {
  const total = counts.reduce((sum, { count }) => sum + count, 0);
  let passed = 0;
  for (const { bucket, count } of counts.toSorted((a, b) => a.bucket - b.bucket)) {
    passed += count;
    if (passed >= share * total) return Math.round(latencyOf(bucket) * 10) / 10;
  }
  return null;
}
