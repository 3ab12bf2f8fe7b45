import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { formatIso, parseIso } from "../../src/lib/iso-time.ts";

/** What a text means as a start and as an end, in the form that goes out. */
function read(text: string): [string, string] | null {
  const start = parseIso(text, "start");
  const end = parseIso(text, "end");
  return start === null || end === null ? null : [formatIso(start), formatIso(end)];
}

describe("formatIso", () => {
  test.each([
    [0, "1970-01-01T00:00:00.000Z"],
    [Date.UTC(2026, 2, 1, 12, 34, 56, 7), "2026-03-01T12:34:56.007Z"],
    [2 ** 42 - 1, "2109-05-15T07:35:11.103Z"],
  ])("%i is %s", (ms, text) => {
    expect(formatIso(ms)).toBe(text);
  });
});

describe("parseIso", () => {
  test.each([
    ["2026-03-01T12:34:56.789Z", "2026-03-01T12:34:56.789Z"],
    ["2026-03-01T12:34:56Z", "2026-03-01T12:34:56.000Z"],
    ["2026-03-01T12:34Z", "2026-03-01T12:34:00.000Z"],
    ["2026-03-01T12:34:56", "2026-03-01T12:34:56.000Z"],
    ["2026-03-01T12:34", "2026-03-01T12:34:00.000Z"],
    ["2026-03-01T00:30:00+01:00", "2026-02-28T23:30:00.000Z"],
    ["2026-02-28T23:30:00-05:30", "2026-03-01T05:00:00.000Z"],
    ["2026-03-01T12:00:00+00:00", "2026-03-01T12:00:00.000Z"],
    ["2026-03-01T12:00+23:59", "2026-02-28T12:01:00.000Z"],
    ["2026-03-01T12:34:56.7Z", "2026-03-01T12:34:56.700Z"],
    ["2026-03-01T12:34:56.07", "2026-03-01T12:34:56.070Z"],
    ["2024-02-29T23:59:59.999Z", "2024-02-29T23:59:59.999Z"],
    ["2000-02-29T00:00Z", "2000-02-29T00:00:00.000Z"],
    ["2026-12-31T24:00", "2027-01-01T00:00:00.000Z"],
    ["2026-12-31T24:00:00.000Z", "2027-01-01T00:00:00.000Z"],
    ["0000-01-01T00:00Z", "0000-01-01T00:00:00.000Z"],
    ["0099-12-31T00:00Z", "0099-12-31T00:00:00.000Z"],
    ["9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999Z"],
    ["9999-12-31T24:00+00:01", "9999-12-31T23:59:00.000Z"],
    ["0000-01-01T00:00-00:01", "0000-01-01T00:01:00.000Z"],
  ])("%s is the instant %s for both bounds", (text, instant) => {
    expect(read(text)).toEqual([instant, instant]);
  });

  test.each([
    ["2026-03-01", "2026-03-01T00:00:00.000Z", "2026-03-01T23:59:59.999Z"],
    ["2024-02-29", "2024-02-29T00:00:00.000Z", "2024-02-29T23:59:59.999Z"],
    ["0000-01-01", "0000-01-01T00:00:00.000Z", "0000-01-01T23:59:59.999Z"],
    ["9999-12-31", "9999-12-31T00:00:00.000Z", "9999-12-31T23:59:59.999Z"],
  ])("the date %s alone is its first or its last millisecond", (text, start, end) => {
    expect(read(text)).toEqual([start, end]);
  });

  test.each(["2026-03-01T12:00:00.1231Z", "2026-03-01T12:00:00.123999999Z"])(
    "%s, between two milliseconds, is cut for both bounds, so that an event of .123 is inside",
    (text) => {
      expect(read(text)).toEqual(["2026-03-01T12:00:00.123Z", "2026-03-01T12:00:00.123Z"]);
    },
  );

  test.each(["1969-12-31T23:59:59.9999Z", "0001-01-01T00:00:00.0009Z"])(
    "%s, before 1970, is cut too, not rounded to zero",
    (text) => {
      expect(parseIso(text, "start")).toBe(Date.parse(`${text.slice(0, 23)}Z`));
    },
  );

  test.each([
    "2026-02-29",
    "2026-02-30",
    "2100-02-29",
    "2026-04-31",
    "2026-13-01",
    "2026-00-10",
    "2026-01-00",
    "2026-01-32",
    "2026-03-01T24:01",
    "2026-03-01T24:00:01",
    "2026-03-01T24:00:00.001",
    "2026-03-01T24:00:00.000000001",
    "2026-03-01T25:00",
    "2026-03-01T12:60",
    "2026-03-01T12:00:60Z",
    "2016-12-31T23:59:60Z",
    "2026-03-01T12:00+24:00",
    "2026-03-01T12:00+01:60",
    "2026-02-30T00:00:00Z",
  ])("%s does not exist", (text) => {
    expect(read(text)).toBeNull();
  });

  test.each([
    "9999-12-31T24:00",
    "9999-12-31T23:59:59.999-00:01",
    "0000-01-01T00:00+00:01",
    "0000-01-01T23:58:59.999+23:59",
  ])("%s is outside the years that can be written", (text) => {
    expect(read(text)).toBeNull();
  });

  test.each([
    "",
    "today",
    "1772366400",
    "2026",
    "2026-03",
    "2026-3-1",
    "20260301",
    "2026-060",
    "2026-W09-7",
    "26-03-01",
    "+002026-03-01",
    "-2026-03-01",
    "2026-03-01Z",
    "2026-03-01T",
    "2026-03-01T12",
    "2026-03-01T12Z",
    "2026-03-01T1234",
    "2026-03-01T12:34:5Z",
    "2026-03-01T12:34:56.",
    "2026-03-01T12:34:56,789Z",
    "2026-03-01T12:34:56.1234567890Z",
    "2026-03-01T12:34.5Z",
    "2026-03-01 12:34:56Z",
    "2026-03-01t12:34:56Z",
    "2026-03-01T12:34:56z",
    "2026-03-01T12:34:56+0100",
    "2026-03-01T12:34:56+01",
    "2026-03-01T12:34:56 01:00",
    "2026-03-01T12:34:56-00:00",
    "2026-03-01T12:34:56UTC",
    " 2026-03-01",
    "2026-03-01 ",
    "2026-03-01\n",
    "2026-03-01T12:34:56Z\n",
    "２０２６-03-01",
    "2026/03/01",
  ])("%j is not the extended format of ISO 8601", (text) => {
    expect(read(text)).toBeNull();
  });

  test("reads back every time that formatIso writes", () => {
    const times = fc.integer({ min: Date.parse("0000-01-01T00:00:00Z"), max: Date.parse("9999-12-31T23:59:59.999Z") });
    fc.assert(
      fc.property(times, (ms) => {
        expect(parseIso(formatIso(ms), "start")).toBe(ms);
        expect(parseIso(formatIso(ms), "end")).toBe(ms);
        const day = formatIso(ms).slice(0, 10);
        expect(parseIso(day, "start")).toBeLessThanOrEqual(ms);
        expect(parseIso(day, "end")).toBeGreaterThanOrEqual(ms);
      }),
    );
  });
});
