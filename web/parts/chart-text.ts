import { inZone } from "../format/zone.ts";

/** What a chart says in words: on its axes, and to those who cannot see it. */

const two = (n: number) => String(n).padStart(2, "0");
const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** "14:02" */
export function clockTime(ms: number): string {
  const at = inZone(ms);
  return `${two(at.getUTCHours())}:${two(at.getUTCMinutes())}`;
}

/** "12 Nov" */
export function dayOf(ms: number): string {
  const at = inZone(ms);
  return `${at.getUTCDate()} ${months[at.getUTCMonth()]}`;
}

/** On an axis: the time, or the date where a day begins. */
export const tick = (ms: number): string => (clockTime(ms) === "00:00" ? dayOf(ms) : clockTime(ms));

/** For one bucket: the time, and the day too when there are several. */
export const moment = (ms: number, isOfDays: boolean): string =>
  isOfDays ? `${dayOf(ms)} ${clockTime(ms)}` : clockTime(ms);

/** "950", "12k", "1.5M": an axis has no room for more. */
export function shortCount(n: number): string {
  if (n < 1000) return String(n);
  const [scale, unit] = n < 1_000_000 ? [1000, "k"] : [1_000_000, "M"];
  return `${Number((n / scale).toFixed(1))}${unit}`;
}
