import { dayMs } from "./terms.ts";

/**
 * Days and months of the billing time zone. A day is a number, counted from 1970-01-01; a month is text, `2026-11`.
 */
export interface BillingCalendar {
  /** The calendar day of an instant. */
  dayOf(ms: number): number;
  /** The month that an instant lies in. */
  monthOf(ms: number): string;
  /** The first due time after `ms`: the last day of a month, 12:00 (rules, section 12). */
  nextMonthEnd(ms: number): number;
  /** The due time of a month. */
  endOf(month: string): number;
  /**
   * The month that a due time ends. It may have been stored while the server had another billing time zone, and lies up to
   * 26 hours from this zone's.
   */
  monthEndedAt(dueAt: number): string;
}

const dueHour = 12;

/** Since 1972, clocks in every zone have changed only on a quarter hour of UTC. */
const sameOffsetMs = 15 * 60 * 1000;
/** A month's end needs a few quarter hours, plus those in which its accounts changed plans. */
const keptOffsets = 10_000;

/** @param timeZone an IANA name such as `Africa/Lagos`; its methods throw a RangeError for an unknown one */
export function createBillingCalendar(timeZone: string): BillingCalendar {
  /** Created on first use: loading the system's locale and time zone data takes 5 ms, which would slow down the start. */
  let format: Intl.DateTimeFormat | undefined;

  /** By quarter hour: formatting a time and parsing it back takes 5 µs. */
  const offsets = new Map<number, number>();

  /** How far the zone's clocks are ahead of UTC at an instant, in ms. */
  function offsetAt(ms: number): number {
    const quarter = Math.floor(ms / sameOffsetMs);
    let offset = offsets.get(quarter);
    if (offset === undefined) {
      if (offsets.size >= keptOffsets) offsets.clear();
      offset = readOffset(ms);
      offsets.set(quarter, offset);
    }
    return offset;
  }

  function readOffset(ms: number): number {
    format ??= new Intl.DateTimeFormat("en-US", {
      timeZone,
      hourCycle: "h23",
      year: "numeric",
      month: "2-digit",
      day: "2-digit",
      hour: "2-digit",
      minute: "2-digit",
      second: "2-digit",
    });
    const part = Object.fromEntries(format.formatToParts(ms).map(({ type, value }) => [type, Number(value)]));
    const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = part;
    return Date.UTC(year, month - 1, day, hour, minute, second) - Math.floor(ms / 1000) * 1000;
  }

  /** The instant at which the zone's clocks show this time. Corrected twice, because the offset may change in between. */
  function instantOf(day: number, hour: number): number {
    const shown = day * dayMs + hour * 60 * 60 * 1000;
    return shown - offsetAt(shown - offsetAt(shown));
  }

  const dayOf = (ms: number) => Math.floor((ms + offsetAt(ms)) / dayMs);
  const endOf = (month: string) => instantOf(lastDayOf(month), dueHour);

  return {
    dayOf,
    monthOf: (ms) => monthOfDay(dayOf(ms)),
    nextMonthEnd(ms) {
      const month = monthOfDay(dayOf(ms));
      const due = endOf(month);
      return due > ms ? due : endOf(monthAfter(month));
    },
    endOf,
    // In this zone it is between 10:00 on the last day but one and 14:00 on the first of the next month.
    monthEndedAt: (dueAt) => monthOfDay(dayOf(dueAt) - 1),
  };
}

/** The month that a day lies in. */
export const monthOfDay = (day: number): string => new Date(day * dayMs).toISOString().slice(0, 7);

/** The first day of a month. */
export function firstDayOf(month: string): number {
  const [year, number] = yearAndMonth(month);
  return Date.UTC(year, number - 1, 1) / dayMs;
}

/** The last day of a month: the day before the first of the next. Adding months to a date would go wrong on the 31st. */
export const lastDayOf = (month: string): number => firstDayOf(monthAfter(month)) - 1;

/** The number of days in a month. */
export const daysIn = (month: string): number => lastDayOf(month) - firstDayOf(month) + 1;

/** The next month. Text, so that no zone has a say in it. */
export function monthAfter(month: string): string {
  const [year, number] = yearAndMonth(month);
  return new Date(Date.UTC(year, number, 1)).toISOString().slice(0, 7);
}

/** The previous month. */
export function monthBefore(month: string): string {
  const [year, number] = yearAndMonth(month);
  return new Date(Date.UTC(year, number - 2, 1)).toISOString().slice(0, 7);
}

function yearAndMonth(month: string): [year: number, month: number] {
  const [year = 0, number = 1] = month.split("-").map(Number);
  return [year, number];
}
