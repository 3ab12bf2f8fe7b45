import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { labelOf } from "../../../web/format/label.ts";
import { fromTyped, textOf, toTyped } from "../../../web/format/typed-time.ts";
import { isUtc } from "../../../web/format/zone.ts";

const now = Date.UTC(2026, 2, 1, 12, 30, 10, 482);

const ownZone = process.env.TZ;
beforeEach(() => {
  process.env.TZ = "Europe/Berlin";
});
afterEach(() => {
  isUtc.value = false;
  if (ownZone === undefined) delete process.env.TZ;
  else process.env.TZ = ownZone;
});

describe("a time as it is typed", () => {
  test.each([
    ["", "", ""],
    ["2026-03-01 13:30", "2026-03-01T12:30:00.000Z", "2026-03-01T12:30:59.999Z"],
    ["2026-03-01 13:30:05", "2026-03-01T12:30:05.000Z", "2026-03-01T12:30:05.999Z"],
    [" 2026-07-01T00:00 ", "2026-06-30T22:00:00.000Z", "2026-06-30T22:00:59.999Z"],
    ["2026-03-01", "2026-02-28T23:00:00.000Z", "2026-03-01T22:59:59.999Z"],
    ["10m", "2026-03-01T12:20:10.000Z", "2026-03-01T12:20:10.999Z"],
    ["90 min", "2026-03-01T11:00:10.000Z", "2026-03-01T11:00:10.999Z"],
    ["2h", "2026-03-01T10:30:10.000Z", "2026-03-01T10:30:10.999Z"],
    ["3d", "2026-02-26T12:30:10.000Z", "2026-02-26T12:30:10.999Z"],
    ["10:50", "2026-03-01T09:50:00.000Z", "2026-03-01T09:50:59.999Z"],
    ["9:50:07", "2026-03-01T08:50:07.000Z", "2026-03-01T08:50:07.999Z"],
  ])("%p begins a range at %p, and ends one at %p", (text, from, to) => {
    expect([fromTyped(text, "from", now), fromTyped(text, "to", now)]).toEqual([from, to]);
  });

  test.each([
    ["Europe/Berlin", "2026-10-25", "2026-10-24T22:00:00.000Z", "2026-10-25T22:59:59.999Z"],
    ["Europe/Berlin", "2026-03-29", "2026-03-28T23:00:00.000Z", "2026-03-29T21:59:59.999Z"],
    ["Africa/Cairo", "2026-04-24", "2026-04-23T22:00:00.000Z", "2026-04-24T20:59:59.999Z"],
    ["America/Santiago", "2026-09-06", "2026-09-06T04:00:00.000Z", "2026-09-07T02:59:59.999Z"],
    ["America/Santiago", "2026-04-04", "2026-04-04T03:00:00.000Z", "2026-04-05T03:59:59.999Z"],
    ["America/Havana", "2026-11-01", "2026-11-01T04:00:00.000Z", "2026-11-02T04:59:59.999Z"],
    ["UTC", "2026-12-31", "2026-12-31T00:00:00.000Z", "2026-12-31T23:59:59.999Z"],
  ])("in %s the whole of %p is from %p to %p", (zone, day, from, to) => {
    process.env.TZ = zone;
    expect([fromTyped(day, "from", now), fromTyped(day, "to", now)]).toEqual([from, to]);
  });

  test("a day that a zone left out is none", () => {
    process.env.TZ = "Pacific/Apia";
    expect(fromTyped("2011-12-30", "from", now)).toBeNull();
    expect(fromTyped("2011-12-29", "to", now)).toBe("2011-12-30T09:59:59.999Z");
  });

  test.each(["2026", "2026-03-01 1", "2026-03-01 1:30 PM", "2026-13-01", "2026-02-30", "2026-03-01 24:30", "now"])(
    "%p is none",
    (text) => {
      expect(fromTyped(text, "from", now)).toBeNull();
    },
  );

  test.each(["10", "10w", "1:5", "25:00", "-10m", "999999d"])("nor is %p", (text) => {
    expect(fromTyped(text, "to", now)).toBeNull();
  });

  test.each([
    ["from", "2026-03-01T12:30:00.000Z", "2026-03-01 13:30"],
    ["from", "2026-03-01T12:30:59.999Z", "2026-03-01 13:30:59"],
    ["to", "2026-03-01T12:30:59.999Z", "2026-03-01 13:30"],
    ["to", "2026-03-01T12:30:05.999Z", "2026-03-01 13:30:05"],
    ["to", "", ""],
  ] as const)("%s %p stands there as %p", (side, iso, text) => {
    expect(toTyped(iso, side)).toBe(text);
  });
});

test("the text of a field follows the zone, and is otherwise what was typed", () => {
  const day = { text: "2026-03-01", iso: "2026-02-28T23:00:00.000Z", isUtc: false };
  expect(textOf(day, day.iso, "from")).toBe("2026-03-01");
  expect(textOf(day, "2026-02-28T12:00:00.000Z", "from")).toBe("2026-02-28 13:00");
  isUtc.value = true;
  expect(textOf(day, day.iso, "from")).toBe("2026-02-28 23:00");
  expect(textOf({ text: "2026-03-0", iso: "", isUtc: false }, "", "from")).toBe("2026-03-0");
});

test("the label of a replay says what and when, to the second and in UTC", () => {
  expect(labelOf("failed", Date.UTC(2026, 2, 1, 12, 34, 56, 789))).toBe("failed-20260301-123456");
});
