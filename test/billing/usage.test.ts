import { describe, expect, test } from "bun:test";
import { createBillingCalendar, firstDayOf, lastDayOf } from "../../src/billing/calendar.ts";
import { heldDays, usageOf } from "../../src/billing/usage.ts";
import type { PlanPeriod } from "../../src/domain/books.ts";
import type { Tier } from "../../src/domain/tenant.ts";

const calendar = createBillingCalendar("Africa/Lagos");
const prices = { free: 0, pro: 1_500_000, business: 6_000_000, enterprise: 0 };

/** Times as they stand on a clock in Lagos. */
const lagos = (local: string) => Date.parse(`${local}+01:00`);
const period = (tier: Tier, from: string, to: string | null = null): PlanPeriod => ({
  tier,
  startedAt: lagos(from),
  endedAt: to === null ? null : lagos(to),
});

const usage = (periods: PlanPeriod[], through: number, invoiced: readonly number[] = []) =>
  usageOf(heldDays(periods, calendar, through), (day) => invoiced.includes(day), prices);

const told = (periods: PlanPeriod[], through: number, invoiced?: readonly number[]) =>
  usage(periods, through, invoiced).lines.map(
    ({ month, tier, days, daysInMonth, amountKobo }) => `${month} ${tier} ${days}/${daysInMonth} ${amountKobo}`,
  );

describe("the days of a month", () => {
  const endOf = lastDayOf;

  test.each([
    ["a whole month of 30 days", [period("pro", "2026-11-01T00:00")], "2026-11", ["2026-11 pro 30/30 1500000"]],
    ["a whole month of 31 days", [period("pro", "2026-12-01T00:00")], "2026-12", ["2026-12 pro 31/31 1500000"]],
    ["a whole February", [period("pro", "2026-02-01T00:00")], "2026-02", ["2026-02 pro 28/28 1500000"]],
    ["a leap year's February", [period("pro", "2028-02-01T00:00")], "2028-02", ["2028-02 pro 29/29 1500000"]],
    ["from the evening of the 10th on", [period("pro", "2026-01-10T23:59")], "2026-01", ["2026-01 pro 22/31 1064516"]],
    ["the last day alone", [period("pro", "2026-01-31T10:00")], "2026-01", ["2026-01 pro 1/31 48387"]],
    [
      "an upgrade in the month: its day is the higher plan's",
      [period("pro", "2026-11-01T08:00", "2026-11-16T12:00"), period("business", "2026-11-16T12:00")],
      "2026-11",
      ["2026-11 pro 15/30 750000", "2026-11 business 15/30 3000000"],
    ],
    [
      "an upgrade on the last day",
      [period("pro", "2026-11-01T08:00", "2026-11-30T09:00"), period("business", "2026-11-30T09:00")],
      "2026-11",
      ["2026-11 pro 29/30 1450000", "2026-11 business 1/30 200000"],
    ],
    [
      "an upgrade on the first",
      [period("pro", "2026-10-01T08:00", "2026-11-01T09:00"), period("business", "2026-11-01T09:00")],
      "2026-11",
      ["2026-10 pro 31/31 1500000", "2026-11 business 30/30 6000000"],
    ],
    [
      "a pause: the days in between are not charged",
      [period("pro", "2026-11-01T08:00", "2026-11-05T09:00"), period("pro", "2026-11-21T09:00")],
      "2026-11",
      ["2026-11 pro 15/30 750000"],
    ],
    [
      "over a year's end",
      [period("pro", "2026-12-31T15:00")],
      "2027-01",
      ["2026-12 pro 1/31 48387", "2027-01 pro 31/31 1500000"],
    ],
    [
      "a plan that ended at midnight",
      [period("pro", "2026-11-01T00:00", "2026-11-02T00:00")],
      "2026-11",
      ["2026-11 pro 1/30 50000"],
    ],
    ["a plan that was never held", [period("pro", "2026-11-01T09:00", "2026-11-01T09:00")], "2026-11", []],
    ["an enterprise plan, which is invoiced elsewhere", [period("enterprise", "2026-11-01T09:00")], "2026-11", []],
    [
      "a day with enterprise belongs to enterprise",
      [period("pro", "2026-11-01T00:00", "2026-11-02T09:00"), period("enterprise", "2026-11-02T09:00")],
      "2026-11",
      ["2026-11 pro 1/30 50000"],
    ],
  ] as const)("%s", (_, periods, month, lines) => {
    expect(told([...periods], endOf(month))).toEqual([...lines]);
  });
});

test("a day that is in an invoice is not charged again", () => {
  const first = firstDayOf("2026-11");
  const invoiced = [first, first + 1, first + 29];
  expect(told([period("pro", "2026-11-01T00:00")], lastDayOf("2026-11"), invoiced)).toEqual([
    "2026-11 pro 27/30 1350000",
  ]);
});

test("a share of a kobo is never charged", () => {
  const odd = { ...prices, pro: 100 };
  const held = heldDays([period("pro", "2026-01-31T10:00")], calendar, lastDayOf("2026-01"));
  expect(usageOf(held, () => false, odd).totalKobo).toBe(3);
});

test("the days of an invoice come with the tier that each belongs to, in order", () => {
  const { days, totalKobo } = usage(
    [period("pro", "2026-11-29T08:00", "2026-11-30T09:00"), period("business", "2026-11-30T09:00")],
    lastDayOf("2026-11"),
  );
  expect(days).toEqual([
    { day: lastDayOf("2026-11") - 1, tier: "pro" },
    { day: lastDayOf("2026-11"), tier: "business" },
  ]);
  expect(totalKobo).toBe(50_000 + 200_000);
});
