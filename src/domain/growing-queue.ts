/** When the operator is told that the queue is growing, judged by successive looks at it, the oldest first. */
export const queueWatch = {
  everyMs: 5 * 60_000,
  /** Half an hour. */
  looks: 7,
  /** Fewer are gone in seconds, whatever made them wait. */
  least: 1_000,
} as const;

/** Whether the queue is long enough to be worth watching. */
export const isLong = (depth: number): boolean => depth >= queueWatch.least;

/** It is long, and was longer at each look than at the previous one. */
export const isGrowing = (depths: readonly number[]): boolean =>
  depths.length >= queueWatch.looks &&
  isLong(depths.at(-1) ?? 0) &&
  depths.every((depth, n) => n === 0 || depth > (depths[n - 1] ?? 0));
