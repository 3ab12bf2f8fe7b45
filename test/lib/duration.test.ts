import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { formatDuration, longestDurationMs, parseDuration } from "../../src/lib/duration.ts";

describe("parseDuration", () => {
  test.each([
    ["1ms", 1],
    ["300ms", 300],
    ["5s", 5_000],
    ["5m", 300_000],
    ["2h", 7_200_000],
    ["1d", 86_400_000],
    ["3650d", longestDurationMs],
  ])("%s is %i ms", (text, ms) => {
    expect(parseDuration(text)).toBe(ms);
  });

  test.each([
    "",
    "5",
    "s",
    "0s",
    "-5s",
    "+5s",
    "1.5h",
    "1e3s",
    "5 s",
    " 5s",
    "5s ",
    "5s\n",
    "5S",
    "5min",
    "5sec",
    "1h30m",
    "3651d",
    "87601h",
    "999999999999999d",
    "9999999999999999999999ms",
    "Infinitys",
    "٥s",
  ])("%j is refused", (text) => {
    expect(parseDuration(text)).toBeNull();
  });
});

describe("formatDuration", () => {
  test.each([
    [-5, "0 ms"],
    [0, "0 ms"],
    [0.4, "0 ms"],
    [300, "300 ms"],
    [999.4, "999 ms"],
    [999.5, "1 s"],
    [1000, "1 s"],
    [1500, "1.5 s"],
    [1549, "1.5 s"],
    [9949, "9.9 s"],
    [9950, "10 s"],
    [12_000, "12 s"],
    [59_499, "59 s"],
    [59_500, "1 min"],
    [60_000, "1 min"],
    [90_000, "1 min 30 s"],
    [240_000, "4 min"],
    [3_599_499, "59 min 59 s"],
    [3_599_500, "1 h"],
    [9_000_000, "2 h 30 min"],
    [86_369_999, "23 h 59 min"],
    [86_370_000, "1 d"],
    [86_400_000, "1 d"],
    [273_600_000, "3 d 4 h"],
    [604_800_000, "7 d"],
  ])("%d ms is %s", (ms, text) => {
    expect(formatDuration(ms)).toBe(text);
  });

  test("never shows a unit that is full, nor an empty one", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: longestDurationMs }), (ms) => {
        const text = formatDuration(ms);
        expect(text).toMatch(/^\d+(\.\d)? (ms|s)$|^\d+ min( \d+ s)?$|^\d+ h( \d+ min)?$|^\d+ d( \d+ h)?$/);
        expect(text).not.toMatch(/\b(60 s|60 min|24 h|1000 ms|0 s|0 min|0 h)/);
      }),
    );
  });

  test("is off by at most a twentieth of what it says", () => {
    const unitMs = { ms: 1, s: 1000, min: 60_000, h: 3_600_000, d: 86_400_000 };
    fc.assert(
      fc.property(fc.integer({ min: 1, max: longestDurationMs }), (ms) => {
        let said = 0;
        for (const [, amount, unit] of formatDuration(ms).matchAll(/([\d.]+) (\w+)/g)) {
          said += Number(amount) * unitMs[unit as keyof typeof unitMs];
        }
        expect(Math.abs(said - ms)).toBeLessThanOrEqual(said / 20);
      }),
    );
  });
});
