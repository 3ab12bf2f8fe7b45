import { describe, expect, test } from "bun:test";
import {
  createBillingCalendar,
  daysIn,
  firstDayOf,
  lastDayOf,
  monthAfter,
  monthOfDay,
} from "../../src/billing/calendar.ts";

const at = (iso: string) => Date.parse(iso);
const iso = (ms: number) => new Date(ms).toISOString();

describe("a month", () => {
  test.each([
    ["2026-01", 31],
    ["2026-02", 28],
    ["2028-02", 29],
    ["2100-02", 28],
    ["2026-04", 30],
    ["2026-12", 31],
  ])("%s has %i days", (month, days) => {
    expect(daysIn(month)).toBe(days);
    expect(monthOfDay(firstDayOf(month))).toBe(month);
    expect(monthOfDay(lastDayOf(month))).toBe(month);
    expect(monthOfDay(lastDayOf(month) + 1)).toBe(monthAfter(month));
  });

  test("the month after December is the next year's January", () => {
    expect(monthAfter("2026-12")).toBe("2027-01");
  });
});

describe("in Lagos, an hour ahead of UTC", () => {
  const calendar = createBillingCalendar("Africa/Lagos");

  test.each([
    ["in a month of 30 days", "2026-11-21T09:00:00Z", "2026-11-30T11:00:00.000Z"],
    ["in a month of 31 days", "2026-01-01T00:00:00Z", "2026-01-31T11:00:00.000Z"],
    ["in February", "2026-02-10T00:00:00Z", "2026-02-28T11:00:00.000Z"],
    ["in the February of a leap year", "2028-02-10T00:00:00Z", "2028-02-29T11:00:00.000Z"],
    ["on the last day before noon", "2026-12-31T10:59:59.999Z", "2026-12-31T11:00:00.000Z"],
    ["at noon itself it is the next one", "2026-12-31T11:00:00.000Z", "2027-01-31T11:00:00.000Z"],
    ["when March has begun there and not in UTC", "2026-02-28T23:00:00Z", "2026-03-31T11:00:00.000Z"],
  ])("the month's end is noon of the last day: %s", (_, now, due) => {
    expect(iso(calendar.nextMonthEnd(at(now)))).toBe(due);
  });

  test("a day ends at 23:00 UTC", () => {
    expect(calendar.dayOf(at("2026-02-28T22:59:59.999Z"))).toBe(lastDayOf("2026-02"));
    expect(calendar.dayOf(at("2026-02-28T23:00:00.000Z"))).toBe(firstDayOf("2026-03"));
    expect(calendar.monthOf(at("2026-02-28T23:00:00.000Z"))).toBe("2026-03");
  });

  test("two years of month's ends are 24, each the last day of its month", () => {
    let due = at("2027-01-01T00:00:00Z");
    for (let month = "2027-01"; month <= "2028-12"; month = monthAfter(month)) {
      due = calendar.nextMonthEnd(due);
      expect(calendar.monthOf(due)).toBe(month);
      expect(calendar.dayOf(due)).toBe(lastDayOf(month));
    }
    expect(iso(due)).toBe("2028-12-31T11:00:00.000Z");
  });
});

describe("where the clocks change", () => {
  const calendar = createBillingCalendar("Europe/Berlin");

  test.each([
    ["winter", "2026-01-15T00:00:00Z", "2026-01-31T11:00:00.000Z"],
    ["the month in which summer begins", "2026-03-15T00:00:00Z", "2026-03-31T10:00:00.000Z"],
    ["the month in which it ends", "2026-10-15T00:00:00Z", "2026-10-31T11:00:00.000Z"],
  ])("noon is noon: %s", (_, now, due) => {
    expect(iso(calendar.nextMonthEnd(at(now)))).toBe(due);
  });

  test("a day of 23 hours and one of 25 are one day each", () => {
    const days = (from: string, hours: number) =>
      new Set(Array.from({ length: hours }, (_, hour) => calendar.dayOf(at(from) + hour * 3_600_000))).size;
    expect(days("2026-03-28T23:00:00Z", 23)).toBe(1);
    expect(days("2026-10-24T22:00:00Z", 25)).toBe(1);
  });
});

test.each([
  ["Africa/Lagos", "Africa/Lagos"],
  ["America/Los_Angeles", "Asia/Kolkata"],
  ["Asia/Kolkata", "America/Los_Angeles"],
  ["Pacific/Kiritimati", "Etc/GMT+12"],
  ["Etc/GMT+12", "Pacific/Kiritimati"],
])("a month's end that was stored in %s ends the same month in %s", (from, to) => {
  for (let month = "2027-01"; month <= "2028-12"; month = monthAfter(month)) {
    expect(createBillingCalendar(to).monthEndedAt(createBillingCalendar(from).endOf(month))).toBe(month);
  }
});

test("an unknown zone is refused", () => {
  expect(() => createBillingCalendar("Africa/Atlantis").dayOf(0)).toThrow(RangeError);
});
