import { exactTime } from "./time.ts";
import { isUtc } from "./zone.ts";

/** A time as text in a field: the browsers' own fields show AM and PM wherever the browser is set to American English. */

/** What `fromTyped` reads. */
export const timeForms = "10m (ago), 10:50 (today) or YYYY-MM-DD hh:mm[:ss]";

/** "2026-03-01 13:30", with seconds if it has any, in the zone in which times are shown; "" for "". */
export function toTyped(iso: string, side: "from" | "to"): string {
  if (iso === "") return "";
  const exact = exactTime(Date.parse(iso));
  return exact.slice(0, exact.endsWith(side === "from" ? ":00.000" : ":59.999") ? 16 : 19);
}

/** What a field was given. */
export interface Typed {
  readonly text: string;
  /** ISO 8601; "": none, or the text is not a time. */
  readonly iso: string;
  /** The zone that the text is in. */
  readonly isUtc: boolean;
}

/** What stands in the field for a time: the text as it was typed, unless times are now shown in the other zone. */
export function textOf({ text, iso, isUtc: wasUtc }: Typed, value: string, side: "from" | "to"): string {
  // Another time was chosen elsewhere.
  if (iso !== value) return toTyped(value, side);
  return value === "" || wasUtc === isUtc.value ? text : toTyped(value, side);
}

const typed = /^(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d)(:\d\d)?)?$/;
const typedOfToday = /^\d?\d:\d\d(:\d\d)?$/;
/** As the command line takes it, and as the dashboard shows it. */
const typedAgo = /^(\d{1,6}) ?(s|min|m|h|d)$/;
const unitMs = { s: 1000, min: 60_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** ISO 8601; "" for nothing, and null for text that is not a time. */
export function fromTyped(given: string, side: "from" | "to", nowMs: number): string | null {
  const text = given.trim();
  if (text === "") return "";
  // What is left out is part of the range.
  const bound = (ms: number, openMs: number) => new Date(side === "from" ? ms : ms + openMs - 1).toISOString();
  const [, amount, unit] = typedAgo.exec(text) ?? [];
  if (amount !== undefined) {
    const ms = nowMs - Number(amount) * unitMs[unit as keyof typeof unitMs];
    return ms < 0 ? null : bound(Math.floor(ms / 1000) * 1000, 1000);
  }
  const [, day, minute, second] = typed.exec(typedOfToday.test(text) ? onDayOf(nowMs, text) : text) ?? [];
  if (day === undefined) return null;
  const whole = minute === undefined ? day : `${day} ${minute}${second ?? ":00"}`;
  const ms = minute === undefined ? startOf(day) : Date.parse(whole.replace(" ", "T") + (isUtc.peek() ? "Z" : ""));
  // Some browsers accept 30 February as a day in March.
  if (Number.isNaN(ms) || !exactTime(ms).startsWith(whole)) return null;
  return bound(ms, second ? 1000 : minute ? 60_000 : startOf(day, 1) - ms);
}

/** The first moment of a day, or of the one so many days later. Where clocks change at midnight, it is another time. */
function startOf(day: string, later = 0): number {
  const [year = 0, month = 0, date = 0] = day.split("-").map(Number);
  const parts = [year, month - 1, date + later] as const;
  return isUtc.peek() ? Date.UTC(...parts) : new Date(...parts).getTime();
}

/** "2026-03-01 09:50" for "9:50". */
const onDayOf = (ms: number, clock: string): string =>
  `${exactTime(ms).slice(0, 10)} ${clock.padStart(clock.length > 5 ? 8 : 5, "0")}`;
