import { describe, expect, test } from "bun:test";
import { createBoundedLog, linesPerMinute } from "../../src/lib/bounded-log.ts";
import { createLog } from "../../src/lib/log.ts";
import { createFakeClock } from "../support/fake-clock.ts";

function setUp(level: "debug" | "info" = "info") {
  const clock = createFakeClock();
  const lines: { event: string; of?: string; lines?: number }[] = [];
  let leftOut = 0;
  const reader = { isBehind: false };
  const log = createBoundedLog({
    log: createLog({ level, format: "json", now: clock.now, out: (line) => void lines.push(JSON.parse(line)) }),
    clock,
    always: (event) => event === "operator.acted",
    isBehind: () => reader.isBehind,
    onLeftOut: () => {
      leftOut += 1;
    },
  });
  const flood = (event: string, n: number, at: "debug" | "info" | "warn" = "warn") => {
    for (let i = 0; i < n; i++) log.write(at, event, { i });
  };
  const count = (event: string) => lines.filter((line) => line.event === event).length;
  return { clock, lines, reader, flood, count, leftOut: () => leftOut };
}

describe("a bounded log", () => {
  test("writes so many lines of a name in a minute and says how many it left out", () => {
    const { clock, lines, flood, count, leftOut } = setUp();
    flood("login.failed", 100_000);
    expect(count("login.failed")).toBe(linesPerMinute);
    expect(leftOut()).toBe(100_000 - linesPerMinute);
    clock.advance(60_000);
    expect(lines.at(-1)).toMatchObject({ event: "log.lines_left_out", of: "login.failed", lines: leftOut() });
    expect(lines).toHaveLength(linesPerMinute + 1);
  });

  test("begins anew with the next minute, and says nothing when nothing was left out", () => {
    const { clock, flood, count } = setUp();
    flood("a", 10);
    clock.advance(60_000);
    flood("a", linesPerMinute);
    expect(count("a")).toBe(linesPerMinute + 10);
    clock.advance(120_000);
    expect([count("log.lines_left_out"), clock.timers]).toEqual([0, 0]);
  });

  test("counts each name by itself", () => {
    const { flood, count } = setUp();
    flood("a", 1000);
    flood("b", 1);
    expect(count("b")).toBe(1);
  });

  test("never leaves out what is always written, nor what was asked for by the level debug", () => {
    const { flood, count } = setUp("debug");
    flood("operator.acted", 1000);
    flood("request.answered", 1000, "debug");
    expect([count("operator.acted"), count("request.answered")]).toEqual([1000, 1000]);
  });

  test("writes nothing for a reader that stands still but what is always written, and then how many lines it was", () => {
    const { clock, lines, reader, flood, count, leftOut } = setUp("debug");
    reader.isBehind = true;
    flood("request.answered", 1000, "debug");
    flood("login.failed", 1);
    flood("operator.acted", 1);
    expect([lines.length, count("operator.acted"), leftOut()]).toEqual([1, 1, 1001]);
    reader.isBehind = false;
    flood("login.failed", 1);
    flood("request.answered", 400, "debug");
    clock.advance(60_000);
    expect([count("login.failed"), count("request.answered")]).toEqual([1, 400]);
    expect(lines.slice(-2)).toMatchObject([
      { event: "log.lines_left_out", of: "request.answered", lines: 1000 },
      { event: "log.lines_left_out", of: "login.failed", lines: 1 },
    ]);
  });

  test("lines below the level are neither written nor counted", () => {
    const { flood, leftOut } = setUp();
    flood("a", 1000, "debug");
    expect(leftOut()).toBe(0);
  });
});
