import { describe, expect, test } from "bun:test";
import { growthTable } from "./growth.ts";
import { plotGrowth } from "./plot.ts";
import type { ReadResult, Reads } from "./reads.ts";
import { judge, type SizeResult } from "./report.ts";

const read = (ms: number): ReadResult => ({ name: "read", calls: 10, p50Ms: ms, p99Ms: ms * 2, maxMs: ms * 3 });

function reads(ms: number): Reads {
  const each = read(ms);
  return {
    firstPage: each,
    firstLongPage: each,
    firstFailedPage: each,
    deepPage: each,
    middlePage: each,
    oneEvent: each,
    failures: each,
  };
}

const window = (p99Ms: number, peakBytes: readonly [number, number], seconds = 30) => ({
  seconds,
  accepted: 30_000,
  ingestionP50Ms: 1,
  ingestionP99Ms: p99Ms,
  ingestionMaxMs: p99Ms,
  endToEndP99Ms: p99Ms,
  historical: 0,
  residentStartBytes: 100e6,
  peakBytes,
  serverCores: 1,
  generatorCores: 0.1,
});

const small: SizeResult = { events: 10_000, databaseBytes: 7e6, reads: reads(0.1) };
const large: SizeResult = {
  events: 10_000_000,
  databaseBytes: 7e9,
  reads: reads(1),
  restart: { pending: 1_000_000, firstDeliveryMs: [300, 1_200], drainRate: 4_000, peakBytes: 250e6 },
  aloneBeforeReplay: window(5, [100e6, 100e6]),
  replay: { selected: 1_000_000, delivered: 1_000_000, window: window(9.9, [150e6, 171e6]) },
};

describe("the bars of the scale bench", () => {
  const judged = new Map(judge(large).map(({ name, passed }) => [name, passed]));

  test.each([
    ["first page at the store, p99", true],
    ["one event at the store, p99", true],
    ["deep page of 1,000 at the store, p99", true],
    ["restart to first delivery, slowest", false],
    ["p99 of ingestion beside the replay", true],
    ["memory growth in the second half of the replay", false],
  ])("%s: %p", (name, passed) => {
    expect(judged.get(name)).toBe(passed);
  });

  test("a p99 that more than doubles is missed", () => {
    const slow = { ...large, aloneBeforeReplay: window(4.9, [0, 0]) };
    const [bar] = judge(slow).filter(({ name }) => name === "p99 of ingestion beside the replay");
    expect(bar).toMatchObject({ passed: false, measured: "9.90 ms", wanted: "at most 9.80 ms" });
  });

  test("what was not measured is not judged", () => {
    expect(judge({ events: 1, databaseBytes: 1 })).toEqual([]);
  });
});

describe("how cost grows", () => {
  test("is a table with a column for each size, and a dash for what was not measured", () => {
    const lines = growthTable([small, large]).split("\n");
    expect(lines[0]).toMatch(/^events +10,000 +10,000,000$/);
    expect(lines).toContainEqual(expect.stringMatching(/^one event, p99 \(ms\) +0\.20 +2\.00$/));
    expect(lines).toContainEqual(expect.stringMatching(/^restart, slowest \(ms\) +– +1200$/));
  });

  test("a percentile of a moment is left out", () => {
    const short = { ...large, replay: { selected: 1_000, delivered: 1_000, window: window(9, [0, 0], 1) } };
    expect(growthTable([short])).not.toContain("beside the replay");
  });

  /** Where the points of each line lie, from left to right. */
  const linesOf = (svg: string) =>
    [...svg.matchAll(/<polyline points="([^"]+)"/g)].map(([, points = ""]) =>
      points.split(" ").map((point) => point.split(",").map(Number)),
    );

  test("is a plot in which ten times as much is always the same step", () => {
    const sized = (events: number, ms: number): SizeResult => ({ events, databaseBytes: 1, reads: reads(ms) });
    const lines = linesOf(plotGrowth([sized(10_000, 0.1), sized(100_000, 1), sized(1_000_000, 10)], "machine"));
    expect(lines.length).toBeGreaterThan(4);
    for (const [[x0 = 0, y0 = 0] = [], [x1 = 0, y1 = 0] = [], [x2 = 0, y2 = 0] = []] of lines) {
      expect(x1 - x0).toBeGreaterThan(100);
      expect(x2 - x1).toBeCloseTo(x1 - x0, 0);
      expect(y0 - y1).toBeGreaterThan(100);
      expect(y1 - y2).toBeCloseTo(y0 - y1, 0);
    }
  });

  test("is a plot with a flat line for what costs the same, and leaves out what was not measured", () => {
    const svg = plotGrowth([small, { ...large, reads: reads(0.1) }], "machine <1>");
    const whole = linesOf(svg).filter((points) => points.length === 2);
    expect(whole.length).toBe(6);
    for (const [[, from] = [], [, to] = []] of whole) expect(to).toBe(from);
    expect(svg).toContain("machine &lt;1>");
    expect(svg).not.toContain("NaN");
  });
});
