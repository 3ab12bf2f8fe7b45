/**
 * Response times as counts in buckets that grow by a quarter power of two (19 % wide), so that a percentile over any time
 * range comes from the sum of a few small rows. The error of a percentile is at most half a bucket.
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

/** Counts of durations; the index is the bucket, and a bucket in which nothing was counted is a hole. */
export type Histogram = number[];

export function addCount(histogram: Histogram, bucket: number, count: number): void {
  histogram[bucket] = (histogram[bucket] ?? 0) + count;
}

/** The stored form: JSON of alternating buckets and counts, because most buckets are empty. */
export function writeHistogram(histogram: Histogram): string {
  const pairs: number[] = [];
  histogram.forEach((count, bucket) => void pairs.push(bucket, count));
  return JSON.stringify(pairs);
}

/** Adds a stored histogram to one or more. */
export function addStored(stored: string, ...sums: Histogram[]): void {
  const pairs: number[] = JSON.parse(stored);
  for (let i = 0; i < pairs.length; i += 2) {
    for (const sum of sums) addCount(sum, pairs[i] ?? 0, pairs[i + 1] ?? 0);
  }
}

/** The duration below which `share` (0 to 1) of the counted durations lie, in ms; null when there are none. */
export function percentile(histogram: Histogram, share: number): number | null {
  const total = histogram.reduce((sum, count) => sum + count, 0);
  let passed = 0;
  for (const [bucket, count = 0] of histogram.entries()) {
    passed += count;
    if (total > 0 && passed >= share * total) return Math.round(latencyOf(bucket) * 10) / 10;
  }
  return null;
}
