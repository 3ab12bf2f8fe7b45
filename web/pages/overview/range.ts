/** How far back the overview looks, and at what resolution. */
export interface Range {
  /** In the URL, and on the switch. */
  readonly key: string;
  readonly name: string;
  readonly bucketMs: number;
  /** As the API writes it. */
  readonly bucket: string;
  readonly bucketWords: string;
  /** At least so many. */
  readonly buckets: number;
}

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;

/** 60 to 120 buckets: each gets a few pixels, even on a phone. */
export const ranges = [
  range("1h", "1 h", 1, "1m", "per minute", 60),
  range("6h", "6 h", 5, "5m", "per 5 minutes", 72),
  range("24h", "24 h", 15, "15m", "per 15 minutes", 96),
  range("7d", "7 d", 120, "2h", "per 2 hours", 84),
] as const;

function range(
  key: string,
  name: string,
  minutes: number,
  bucket: string,
  bucketWords: string,
  buckets: number,
): Range {
  return { key, name, bucketMs: minutes * minuteMs, bucket, bucketWords, buckets };
}

/** The range in a URL. Anything it does not name means the last hour. */
export const readRange = (query: Readonly<Record<string, string>>): Range =>
  ranges.find(({ key }) => key === query.range) ?? ranges[0];

export const urlOf = ({ key }: Range): string => (key === ranges[0].key ? "/" : `/?range=${key}`);

/**
 * When a range starts. Failures are counted by whole hours, so everything is: the figures, the lists behind them and the
 * charts cover the same time.
 */
export function startOf({ bucketMs, buckets }: Range, nowMs: number): number {
  const step = Math.max(bucketMs, hourMs);
  return Math.floor((nowMs - bucketMs * buckets) / step) * step;
}

/** Whole buckets from the start of the range on, the last of which contains `nowMs`. */
export const statsQuery = (range: Range, nowMs: number) => ({
  from: new Date(startOf(range, nowMs)).toISOString(),
  to: new Date(nowMs).toISOString(),
  bucket: range.bucket,
});
