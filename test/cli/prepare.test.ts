import { describe, expect, test } from "bun:test";
import { describeUpgrade } from "../../src/cli/prepare.ts";

describe("the line of an upgrade", () => {
  const schemas = { fromSchema: 5, toSchema: 6 };
  test.each([
    [
      { what: "events", done: 1_200_000, total: 2_000_000, secondsLeft: 40 },
      "events 1,200,000 of 2,000,000, about 40 s left",
    ],
    [{ what: "attempts", done: 16, total: 999, secondsLeft: null }, "attempts 16 of 999"],
    [
      { what: "the index delivery_due", done: null, total: null, secondsLeft: 90 },
      "the index delivery_due, about 1 min 30 s left",
    ],
    [{ what: "0003_packed_latency", done: null, total: null, secondsLeft: null }, "0003_packed_latency"],
  ])("%#", (progress, said) => {
    expect(describeUpgrade({ ...schemas, ...progress })).toBe(`Upgrading the database from schema 5 to 6: ${said}`);
  });
});
