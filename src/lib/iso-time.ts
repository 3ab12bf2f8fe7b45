/** Times at the interface (rules, section 2): out in one form, in by strict ISO 8601. */

/**
 * Writes a time as ISO 8601 in UTC with milliseconds: `2026-03-01T12:34:56.789Z`.
 *
 * @param ms milliseconds since the Unix epoch
 * @throws RangeError when `ms` is not a time that `Date` can hold
 */
export const formatIso = (ms: number): string => new Date(ms).toISOString();

/** Like `formatIso`; null for what has not happened. */
export const formatIsoOrNull = (ms: number | null): string | null => (ms === null ? null : formatIso(ms));

/**
 * Reads a bound of a time range, in milliseconds since the Unix epoch; null when the text is not strict ISO 8601 (extended
 * format), names a time that does not exist, or is outside the years 0000 to 9999 in UTC, which it could not be written in
 * again. Both bounds are inclusive.
 *
 * - `2026-03-01` is the first (`start`) or the last (`end`) millisecond of that day in UTC.
 * - `2026-03-01T12:34`, with seconds, a fraction of 1 to 9 digits after a point, and `Z` or an offset (`+01:00`), is that
 *   instant. No zone means UTC.
 * - `24:00` is the end of the day, which is the next day's `00:00` (ISO 8601-1:2019/Amd 1). A leap second is refused: Unix
 *   time has no number for it. So is `-00:00`, which ISO 8601 rules out.
 *
 * Digits beyond the millisecond are cut, for both bounds: an event that arrived at 12:00:00.1239 carries .123, so for a
 * start of .1235 rounding up would lose it, and for an end of .1235 it might be another event of .123 that is inside.
 */
export function parseIso(text: string, role: "start" | "end"): number | null {
  const groups = isoPattern.exec(text)?.groups;
  if (!groups) return null;
  const day = dayStart(Number(groups.year), Number(groups.month), Number(groups.day));
  if (day === null) return null;
  if (groups.hour === undefined) return role === "start" ? day : day + dayMs - 1;

  const hour = Number(groups.hour);
  const minute = Number(groups.minute);
  const second = Number(groups.second ?? 0);
  const fractionMs = Number((groups.fraction ?? "").slice(0, 3).padEnd(3, "0"));
  if (hour > 24 || minute > 59 || second > 59) return null;
  const timeOfDay = hour * hourMs + minute * minuteMs + second * 1000 + fractionMs;
  if (timeOfDay > dayMs || (hour === 24 && /[1-9]/.test(groups.fraction ?? ""))) return null;

  const offset = offsetMs(groups.zone ?? "Z");
  if (offset === null) return null;
  const ms = day + timeOfDay - offset;
  return ms < firstMs || ms > lastMs ? null : ms;
}

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;

/** The first of the times that `parseIso` takes and that are written in its form. */
export const firstMs = Date.parse("0000-01-01T00:00:00.000Z");
const lastMs = Date.parse("9999-12-31T23:59:59.999Z");

const isoPattern =
  /^(?<year>\d{4})-(?<month>\d\d)-(?<day>\d\d)(?:T(?<hour>\d\d):(?<minute>\d\d)(?::(?<second>\d\d)(?:\.(?<fraction>\d{1,9}))?)?(?<zone>Z|[+-]\d\d:\d\d)?)?$/;

/** What `parseIso` takes, for a document: the form alone, without what the calendar says. */
export const isoTimeForm = isoPattern.source.replaceAll(/\?<\w+>/g, "?:");

/** The first millisecond of a day; null when the calendar has no such day. */
function dayStart(year: number, month: number, day: number): number | null {
  const date = new Date(0);
  // Not Date.UTC, which takes the years 0 to 99 for 1900 to 1999.
  date.setUTCFullYear(year, month - 1, day);
  const exists = date.getUTCFullYear() === year && date.getUTCMonth() === month - 1 && date.getUTCDate() === day;
  return exists ? date.getTime() : null;
}

/** How far a zone (`Z`, `+01:00`) is ahead of UTC; null when there is no such zone. */
function offsetMs(zone: string): number | null {
  if (zone === "Z") return 0;
  const hours = Number(zone.slice(1, 3));
  const minutes = Number(zone.slice(4, 6));
  if (hours > 23 || minutes > 59 || zone === "-00:00") return null;
  const size = hours * hourMs + minutes * minuteMs;
  return zone.startsWith("-") ? -size : size;
}
