/** Times and durations as people say them. */

const secondMs = 1000;
const minuteMs = 60 * secondMs;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;

const units = [
  { ms: dayMs, unit: "d" },
  { ms: hourMs, unit: "h" },
  { ms: minuteMs, unit: "min" },
  { ms: secondMs, unit: "s" },
] as const;

/** Beyond it the distance says less than the date. */
const longestDistanceMs = 30 * dayMs;

/** "12 s ago", "in 4 min", "3 d ago"; "now" within a second, and beyond 30 days the date. */
export function relativeTime(atMs: number, nowMs: number): string {
  const distance = Math.abs(nowMs - atMs);
  if (distance > longestDistanceMs) return localDate(new Date(atMs));
  const found = units.find(({ ms }) => distance >= ms);
  if (!found) return "now";
  const amount = `${Math.floor(distance / found.ms)} ${found.unit}`;
  return atMs > nowMs ? `in ${amount}` : `${amount} ago`;
}

/** The time on the clock of whoever reads it: "2026-11-21 14:02:11.482". */
export function exactTime(ms: number): string {
  const date = new Date(ms);
  return `${localDate(date)} ${localTime(date)}`;
}

/** The same with the zone that it is in, for a title: "2026-11-21T14:02:11.482+01:00". */
export function exactTimeWithZone(ms: number): string {
  const date = new Date(ms);
  const ahead = -date.getTimezoneOffset();
  const sign = ahead < 0 ? "-" : "+";
  const minutes = Math.abs(ahead);
  return `${localDate(date)}T${localTime(date)}${sign}${digits(Math.floor(minutes / 60))}:${digits(minutes % 60)}`;
}

const digits = (n: number, length = 2) => String(n).padStart(length, "0");

const localDate = (date: Date) =>
  `${digits(date.getFullYear(), 4)}-${digits(date.getMonth() + 1)}-${digits(date.getDate())}`;

const localTime = (date: Date) =>
  `${digits(date.getHours())}:${digits(date.getMinutes())}:${digits(date.getSeconds())}.${digits(date.getMilliseconds(), 3)}`;

/** How long something took or takes: "< 1 ms", "0.5 ms", "41 ms", "1.2 s", "10 s", "4 min 5 s", "2 h", "3 d 4 h". */
export function duration(ms: number): string {
  // Nothing takes no time: it was measured in whole milliseconds.
  if (ms === 0) return "< 1 ms";
  if (roundFrom(ms, 10) < secondMs) return `${roundFrom(ms, 10)} ms`;
  const seconds = roundFrom(ms / secondMs, 10);
  if (seconds < 60) return `${seconds} s`;
  const found = units.findIndex((unit) => seconds * secondMs >= unit.ms);
  const large = units[found];
  const small = units[found + 1];
  if (!large || !small) return `${seconds} s`;
  const left = Math.floor(((seconds * secondMs) % large.ms) / small.ms);
  const whole = `${Math.floor((seconds * secondMs) / large.ms)} ${large.unit}`;
  return left === 0 ? whole : `${whole} ${left} ${small.unit}`;
}

/** To a tenth below `limit`, else to a whole number. */
function roundFrom(n: number, limit: number): number {
  const tenths = Math.round(n * 10) / 10;
  return tenths < limit ? tenths : Math.round(n);
}
