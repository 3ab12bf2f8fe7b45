import { exactTime } from "./time.ts";
import { isUtc } from "./zone.ts";

/** A time as text in a field: the browsers' own fields show AM and PM wherever the browser is set to American English. */

export const timePattern = "YYYY-MM-DD hh:mm";

/** "2026-03-01 13:30", with seconds if it has any, in the zone in which times are shown; "" for "". */
export function toTyped(iso: string, side: "from" | "to"): string {
  if (iso === "") return "";
  const exact = exactTime(Date.parse(iso));
  return exact.slice(0, exact.endsWith(side === "from" ? ":00.000" : ":59.999") ? 16 : 19);
}

const typed = /^(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d)(:\d\d)?)?$/;

/** ISO 8601; "" for nothing, and null for text that is not a time. */
export function fromTyped(text: string, side: "from" | "to"): string | null {
  if (text.trim() === "") return "";
  const [, day, minute, second] = typed.exec(text.trim()) ?? [];
  const whole = `${day} ${minute ?? "00:00"}${second ?? ":00"}`;
  const ms = Date.parse(whole.replace(" ", "T") + (isUtc.peek() ? "Z" : ""));
  // Some browsers accept 30 February as a day in March.
  if (Number.isNaN(ms) || exactTime(ms).slice(0, 19) !== whole) return null;
  // What is left out is part of the range.
  const open = second ? 1000 : minute ? 60_000 : 86_400_000;
  return new Date(side === "from" ? ms : ms + open - 1).toISOString();
}
