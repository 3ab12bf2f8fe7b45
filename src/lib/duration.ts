/** Durations as settings spell them (rules, section 1) and as people read them. */

/** From small to large. */
export const unitMs = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** The longest duration that a setting may have, ten years: anything longer is a typo. */
export const longestDurationMs = 3650 * unitMs.d;

/**
 * Reads a duration such as `300ms`, `5s`, `5m`, `2h` or `1d`, in milliseconds: a whole number above 0 and one unit. Null
 * for anything else, including anything above `longestDurationMs`. No fractions and no sums, as each has a plain spelling: `90m`.
 */
export function parseDuration(text: string): number | null {
  const [, number, unit] = /^(\d{1,15})(ms|s|m|h|d)$/.exec(text) ?? [];
  if (number === undefined) return null;
  const ms = Number(number) * unitMs[unit as keyof typeof unitMs];
  return ms > 0 && ms <= longestDurationMs ? ms : null;
}

/**
 * Writes a duration for people, exact enough to act on and no longer: `300 ms`, `1.5 s`, `12 s`, `4 min`, `2 h 30 min`,
 * `3 d 4 h`. At most two units, rounded to the smaller one; below 0 it is `0 ms`.
 */
export function formatDuration(ms: number): string {
  const whole = Math.max(0, Math.round(ms));
  if (whole < unitMs.s) return `${whole} ms`;
  const tenths = Math.round(whole / 100);
  if (tenths < 100) return `${tenths / 10} s`;
  const seconds = Math.round(whole / unitMs.s);
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return inTwoUnits(seconds, 60, "min", "s");
  const minutes = Math.round(whole / unitMs.m);
  if (minutes < 24 * 60) return inTwoUnits(minutes, 60, "h", "min");
  return inTwoUnits(Math.round(whole / unitMs.h), 24, "d", "h");
}

/** `amount` counts the small unit, of which `size` make a large one; a small part of zero is left out. */
function inTwoUnits(amount: number, size: number, large: string, small: string): string {
  const rest = amount % size;
  return `${Math.floor(amount / size)} ${large}${rest > 0 ? ` ${rest} ${small}` : ""}`;
}
