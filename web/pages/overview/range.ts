/** How far back the overview looks, and at what resolution. */
export interface Range {
  /** In the URL, and on the switch. */
  readonly key: string;
  readonly name: string;
  /** As used in a sentence: "in the last hour". */
  readonly words: string;
  readonly bucketMs: number;
  /** As the API writes it. */
  readonly bucket: string;
  readonly bucketWords: string;
  readonly buckets: number;
}

const minuteMs = 60_000;

/** 60 to 96 buckets: each gets a few pixels, even on a phone. */
export const ranges = [
  range("1h", "1 h", "hour", 1, "1m", "per minute", 60),
  range("6h", "6 h", "6 hours", 5, "5m", "per 5 minutes", 72),
  range("24h", "24 h", "24 hours", 15, "15m", "per 15 minutes", 96),
  range("7d", "7 d", "7 days", 120, "2h", "per 2 hours", 84),
] as const;

function range(
  key: string,
  name: string,
  words: string,
  minutes: number,
  bucket: string,
  bucketWords: string,
  buckets: number,
): Range {
  return { key, name, words, bucketMs: minutes * minuteMs, bucket, bucketWords, buckets };
}

/** The range in a URL. Anything it does not name means the last hour. */
export const readRange = (query: Readonly<Record<string, string>>): Range =>
  ranges.find(({ key }) => key === query.range) ?? ranges[0];

export const urlOf = ({ key }: Range): string => (key === ranges[0].key ? "/" : `/?range=${key}`);

/** The range's number of whole buckets, the last of which contains `nowMs`. */
export function statsQuery({ bucketMs, bucket, buckets }: Range, nowMs: number) {
  const from = (Math.floor(nowMs / bucketMs) - buckets + 1) * bucketMs;
  return { from: new Date(from).toISOString(), to: new Date(nowMs).toISOString(), bucket };
}
