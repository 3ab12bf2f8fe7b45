/**
 * A histogram of durations in the manner of HdrHistogram: 64 buckets for each power of two of microseconds, so a value
 * is kept to 1.6 % at a constant cost and a constant memory, however many are recorded.
 */
export interface Histogram {
  record(microseconds: number): void;
  /** In milliseconds: the upper end of the bucket, so never less than the true value. NaN when nothing was recorded. */
  percentileMs(percent: number): number;
  maxMs(): number;
  count(): number;
  reset(): void;
}

const subBucketBits = 6;
const subBuckets = 1 << subBucketBits;
/** Up to 2^31 µs, 36 minutes. */
const bucketCount = (31 - subBucketBits + 2) * subBuckets;
const longestUs = 2 ** 31 - 1;

export function createHistogram(): Histogram {
  const buckets = new Float64Array(bucketCount);
  let count = 0;
  let maxUs = 0;

  return {
    record(microseconds) {
      const us = Math.min(Math.max(Math.round(microseconds), 0), longestUs);
      const bucket = bucketOf(us);
      buckets[bucket] = (buckets[bucket] ?? 0) + 1;
      count++;
      if (us > maxUs) maxUs = us;
    },
    percentileMs(percent) {
      if (count === 0) return Number.NaN;
      const rank = Math.ceil((count * percent) / 100);
      let seen = 0;
      for (let bucket = 0; bucket < bucketCount; bucket++) {
        seen += buckets[bucket] ?? 0;
        if (seen >= rank) return Math.min(upperEndOf(bucket), maxUs) / 1000;
      }
      return maxUs / 1000;
    },
    maxMs: () => maxUs / 1000,
    count: () => count,
    reset() {
      buckets.fill(0);
      count = 0;
      maxUs = 0;
    },
  };
}

/** Below 64 µs a bucket is one microsecond; above, its width doubles with each power of two. */
function bucketOf(us: number): number {
  if (us < subBuckets) return us;
  const shift = 31 - Math.clz32(us) - subBucketBits;
  return (shift + 1) * subBuckets + ((us >>> shift) & (subBuckets - 1));
}

function upperEndOf(bucket: number): number {
  if (bucket < subBuckets) return bucket;
  const shift = Math.floor(bucket / subBuckets) - 1;
  return ((bucket % subBuckets) + subBuckets + 1) * 2 ** shift - 1;
}

/** The median; of an even number of values the mean of the two in the middle. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}
