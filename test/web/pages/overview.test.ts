import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { Stats } from "../../../web/api/types.ts";
import { latencyChart, outcomeChart } from "../../../web/pages/overview/charts.ts";
import { ranges, readRange, statsQuery, urlOf } from "../../../web/pages/overview/range.ts";

/** The zone of whoever looks at the page. */
const ownZone = process.env.TZ;
beforeEach(() => {
  process.env.TZ = "UTC";
});
afterEach(() => {
  if (ownZone === undefined) delete process.env.TZ;
  else process.env.TZ = ownZone;
});

describe("a range", () => {
  test.each([...ranges])("$key is in the URL and read from it", (range) => {
    const query = Object.fromEntries(new URL(urlOf(range), "http://localhost").searchParams);
    expect(readRange(query)).toBe(range);
  });

  test("that the URL does not name, or names wrongly, is the last hour", () => {
    for (const query of [{}, { range: "" }, { range: "9y" }]) expect(readRange(query).key).toBe("1h");
    expect(urlOf(readRange({}))).toBe("/");
  });

  test.each([
    ["1h", "2026-11-21T13:00:00.000Z", 63],
    ["6h", "2026-11-21T08:00:00.000Z", 73],
    ["24h", "2026-11-20T14:00:00.000Z", 97],
    ["7d", "2026-11-14T14:00:00.000Z", 85],
  ] as const)(
    "%s starts at a full hour, %s, and has whole buckets, of which the last is now's",
    (key, from, buckets) => {
      const now = Date.UTC(2026, 10, 21, 14, 2, 11, 482);
      const range = readRange({ range: key });
      expect(statsQuery(range, now)).toEqual({ from, to: "2026-11-21T14:02:11.482Z", bucket: range.bucket });
      const asked = Math.floor(now / range.bucketMs) - Math.floor(Date.parse(from) / range.bucketMs) + 1;
      expect(asked).toBe(buckets);
    },
  );
});

const quiet = { accepted: 0, delivered: 0, failed: 0, attempts: 0, p50Ms: null, p95Ms: null };

function statsOf(buckets: Partial<Stats["buckets"][number]>[], total: Partial<Stats["total"]>): Stats {
  return {
    buckets: buckets.map((bucket, i) => ({ at: `2026-11-21T14:0${i}:00.000Z`, ...quiet, ...bucket })),
    total: { ...quiet, ...total },
    waiting: { records: 0, oldestIngestionTimestamp: null },
  };
}

describe("the chart of outcomes", () => {
  const [hour] = ranges;

  test("shows what was delivered and failed as bars and what was accepted as a line, and says it in a sentence", () => {
    const stats = statsOf(
      [
        { accepted: 1200, delivered: 1150, failed: 50 },
        { accepted: 4, delivered: 3 },
      ],
      {
        accepted: 1204,
        delivered: 1153,
        failed: 50,
      },
    );
    const { series, at, summary } = outcomeChart(stats, hour);
    expect(series.map(({ name, shape, values, whole }) => ({ name, shape, values, whole }))).toEqual([
      { name: "Delivered", shape: "bar", values: [1150, 3], whole: "1\u202f153" },
      { name: "Failed", shape: "bar", values: [50, 0], whole: "50" },
      { name: "Accepted", shape: "none", values: [1200, 4], whole: "1\u202f204" },
    ]);
    expect(at).toEqual([Date.UTC(2026, 10, 21, 14), Date.UTC(2026, 10, 21, 14, 1)]);
    expect(summary).toBe(
      "Since 14:00, 1\u202f204 events were accepted, 1\u202f153 deliveries succeeded and 50 failed. Peak at 14:00: 1\u202f200 per minute.",
    );
  });

  test("of one webhook shows what will be retried, and speaks of no events", () => {
    const counts = { accepted: undefined, attempts: 9, delivered: 3, failed: 2 };
    // It was disabled: what fails then has no attempt.
    const disabled = { accepted: undefined, attempts: 1, failed: 5 };
    const { series, summary } = outcomeChart(statsOf([counts, disabled], { ...counts, attempts: 12 }), hour);
    expect(series.map(({ name, shape, values, whole }) => ({ name, shape, values, whole }))).toEqual([
      { name: "Delivered", shape: "bar", values: [3, 0], whole: "3" },
      { name: "Failed", shape: "bar", values: [2, 5], whole: "2" },
      { name: "To be retried", shape: "bar", values: [4, 0], whole: "7" },
    ]);
    expect(summary).toStartWith("Since 14:00, 3 deliveries succeeded and 2 failed.");
  });

  test("of an hour in which nothing happened has no most", () => {
    expect(outcomeChart(statsOf([{}, {}], {}), hour).summary).toBe(
      "Since 14:00, 0 events were accepted, 0 deliveries succeeded and 0 failed.",
    );
  });
});

describe("the chart of latency", () => {
  const [, , day] = ranges;

  test("says no more digits than the statistics know, and the day where there are two", () => {
    const stats = statsOf([{ p50Ms: 41.5, p95Ms: 181 }, {}], { p50Ms: 41.5, p95Ms: 1843 });
    const { series, summary, format } = latencyChart(stats, day);
    expect(series.map(({ name, values, whole }) => ({ name, values, whole }))).toEqual([
      { name: "p50", values: [41.5, null], whole: "42 ms" },
      { name: "p95", values: [181, null], whole: "1.8 s" },
    ]);
    expect(format(181)).toBe("180 ms");
    expect(summary).toBe(
      "Since 21 Nov 14:00, half of the attempts with a response took up to 42 ms, and 95 % up to 1.8 s. Slowest at 21 Nov 14:00: p95 180 ms.",
    );
  });

  test("says so when nobody answered", () => {
    const { series, summary } = latencyChart(statsOf([{}], {}), day);
    expect(series.map(({ whole }) => whole)).toEqual(["–", "–"]);
    expect(summary).toBe("Since 21 Nov 14:00, no attempt got a response.");
  });
});
