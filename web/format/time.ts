import { inZone, zoneName } from "./zone.ts";

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

/** Beyond this, the distance says less than the date. */
const longestDistanceMs = 30 * dayMs;

/** "12 s ago", "in 4 min", "3 d ago"; "now" within a second, and the date beyond 30 days. */
export function relativeTime(atMs: number, nowMs: number): string {
  const distance = Math.abs(nowMs - atMs);
  if (distance > longestDistanceMs) return exactTime(atMs).slice(0, 10);
  const found = units.find(({ ms }) => distance >= ms);
  if (!found) return "now";
  const amount = `${Math.floor(distance / found.ms)} ${found.unit}`;
  return atMs > nowMs ? `in ${amount}` : `${amount} ago`;
}

/** The time on the reader's clock: "2026-11-21 14:02:11.482". */
export const exactTime = (ms: number): string => inZone(ms).toISOString().slice(0, -1).replace("T", " ");

/** The same with its time zone: "2026-11-21 14:02:11.482 UTC+1". */
export const exactTimeWithZone = (ms: number): string => `${exactTime(ms)} ${zoneName(ms)}`;

/** How long something took or takes: "< 1 ms", "0.5 ms", "41 ms", "1.2 s", "10 s", "4 min 5 s", "2 h", "3 d 4 h". */
export function duration(ms: number): string {
  // Nothing takes no time; zero comes from measuring in whole milliseconds.
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

/** To a tenth below `limit`, otherwise to a whole number. */
function roundFrom(n: number, limit: number): number {
  const tenths = Math.round(n * 10) / 10;
  return tenths < limit ? tenths : Math.round(n);
}

const isoPattern = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,9})?)?Z$/;

/** A time from an address, in a uniform form, so that such times compare as text; "" for anything else. */
export function isoOrNothing(text: string | undefined): string {
  if (text === undefined || !isoPattern.test(text)) return "";
  const ms = Date.parse(text);
  return Number.isNaN(ms) ? "" : new Date(ms).toISOString();
}
