import { afterEach, describe, expect, test } from "bun:test";
import { decadesAround, lonely, peakOf, stack } from "../../../web/parts/chart-data.ts";
import { clockTime, dayOf, moment, shortCount, tick } from "../../../web/parts/chart-text.ts";

/** The zone of whoever looks at the page. */
const ownZone = process.env.TZ;
afterEach(() => {
  if (ownZone === undefined) delete process.env.TZ;
  else process.env.TZ = ownZone;
});

describe("a time at an axis", () => {
  const at = Date.UTC(2026, 10, 21, 23, 5);

  test("is the reader's own, and names the day where one begins there", () => {
    process.env.TZ = "Africa/Lagos";
    expect([clockTime(at), dayOf(at)]).toEqual(["00:05", "22 Nov"]);
    expect(tick(Date.UTC(2026, 10, 21, 23))).toBe("22 Nov");
    process.env.TZ = "UTC";
    expect([clockTime(at), dayOf(at)]).toEqual(["23:05", "21 Nov"]);
    expect(tick(Date.UTC(2026, 10, 21, 23))).toBe("23:00");
  });

  test("of one bucket names the day where there are several", () => {
    process.env.TZ = "UTC";
    expect([moment(at, false), moment(at, true)]).toEqual(["23:05", "21 Nov 23:05"]);
  });
});

test.each([
  [0, "0"],
  [950, "950"],
  [1000, "1k"],
  [12_500, "12.5k"],
  [2_000_000, "2M"],
] as const)("%d at an axis is %p", (n, text) => {
  expect(shortCount(n)).toBe(text);
});

describe("stacked bars", () => {
  test("stand on those before them", () => {
    expect(
      stack([
        [1, 2],
        [10, 0],
        [100, 200],
      ]),
    ).toEqual([
      [1, 2],
      [11, 2],
      [111, 202],
    ]);
    expect(stack([])).toEqual([]);
  });
});

describe("the peak", () => {
  test("is the first of the highest values", () => {
    expect(peakOf([1, null, 7, 7, 2])).toEqual({ value: 7, index: 2 });
  });

  test("is none where nothing is above 0", () => {
    expect(peakOf([])).toBeNull();
    expect(peakOf([0, null, 0])).toBeNull();
  });
});

describe("a point without neighbours", () => {
  test("is drawn by itself, because no line leads to it", () => {
    expect(lonely([5, null, 4, 3, null, 0, null])).toEqual([0, 5]);
    expect(lonely([null, 1, 2, null])).toEqual([]);
  });
});

describe("a scale of powers of ten", () => {
  test.each([
    ["holds all values", 3.2, 420, [1, 1000]],
    ["ends where the highest value is one", 20, 100, [10, 100]],
    ["has at least two powers", 12, 12, [10, 100]],
    ["reaches as far as it is to at least", 1.2, 2, [1, 10]],
    ["begins above nothing", 0, 40, [0.1, 100]],
    ["of nothing is the smallest one", null, null, [0.1, 10]],
  ] as const)("%s", (_, min, max, scale) => {
    const [from, to] = decadesAround(min, max, 10);
    expect([Number(from.toPrecision(6)), Number(to.toPrecision(6))]).toEqual([...scale]);
  });
});
