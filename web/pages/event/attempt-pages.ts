/** At least this many are shown initially, and this many more each time earlier ones are requested. */
export const attemptsAtOnce = 100;

/** The pages that hold the newest `wanted` of `total` attempts; the server counts them from the oldest. */
export function newestPages(total: number, wanted: number): number[] {
  const first = Math.floor(Math.max(0, total - wanted) / attemptsAtOnce);
  const behindLast = Math.ceil(total / attemptsAtOnce);
  return Array.from({ length: behindLast - first }, (_, n) => first + n);
}
