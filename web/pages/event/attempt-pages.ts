/** So many at least are shown at first, and so many more each time that earlier ones are asked for. */
export const attemptsAtOnce = 100;

/** The pages on which the newest `wanted` of `total` attempts are; the server counts them from the oldest. */
export function newestPages(total: number, wanted: number): number[] {
  const first = Math.floor(Math.max(0, total - wanted) / attemptsAtOnce);
  const behindLast = Math.ceil(total / attemptsAtOnce);
  return Array.from({ length: behindLast - first }, (_, n) => first + n);
}
