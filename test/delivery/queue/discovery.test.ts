import { describe, expect, test } from "bun:test";
import { createDiscovery } from "../../../src/delivery/queue/discovery.ts";
import { unavailable } from "../../../src/domain/errors.ts";
import { createLog } from "../../../src/lib/log.ts";
import type { DueLane, DueRange } from "../../../src/store/deliveries.ts";
import { createFakeClock } from "../../support/fake-clock.ts";

const rest = () => new Promise<void>((resolve) => setImmediate(resolve));
const away = unavailable("the storage is away", "storage_unavailable", 5);
const lane: DueLane = { tenantKey: 1, webhookKey: 7, firstDueAt: 5 };

/** A store that others may write to; what it is asked for is noted, by time since the start. */
function setUp({ isShared }: { isShared: boolean }) {
  const clock = createFakeClock();
  const start = clock.now();
  const asked: (readonly [number, number] | "all")[] = [];
  const found: DueLane[] = [];
  const lines: string[] = [];
  const table: { fault: Error | null } = { fault: null };
  const discovery = createDiscovery({
    store: {
      isShared,
      async discover(range?: DueRange) {
        if (table.fault) throw table.fault;
        asked.push(range ? [range.after - start, range.until - start] : "all");
        return [lane];
      },
    },
    clock,
    log: createLog({ level: "info", format: "json", now: clock.now, out: (line) => void lines.push(line) }),
    onFound: (each) => void found.push(each),
    onEnd() {},
  });
  /** Lets seconds pass, one after the other. */
  async function pass(seconds: number) {
    for (let left = seconds; left > 0; left -= 1) {
      clock.advance(1_000);
      await rest();
    }
  }
  return { clock, asked, found, lines, table, discovery, pass };
}

describe("discovery", () => {
  test("looks for everything at the start, and sets no timer where nobody else writes", async () => {
    const { clock, asked, found, discovery, pass } = setUp({ isShared: false });
    await discovery.start();
    expect([asked, found, clock.timers]).toEqual([["all"], [lane], 0]);
    await pass(600);
    expect(asked).toEqual(["all"]);
  });

  test("starts though the table cannot be asked at the moment, and looks as soon as it can", async () => {
    const { asked, found, table, discovery, pass } = setUp({ isShared: false });
    table.fault = away;
    await discovery.start();
    await pass(2);
    expect(asked).toEqual([]);
    table.fault = null;
    await pass(1);
    expect([asked, found]).toEqual([["all"], [lane]]);
  });

  test("does not start when the failure is none of those that pass", async () => {
    const { table, discovery } = setUp({ isShared: false });
    table.fault = new Error("no such table");
    await expect(discovery.start()).rejects.toThrow("no such table");
  });

  test("asks each second what fell due since, some way back, where others write", async () => {
    const { asked, discovery, pass } = setUp({ isShared: true });
    await discovery.start();
    await pass(3);
    expect(asked).toEqual(["all", [-15_000, 1_000], [-14_000, 2_000], [-13_000, 3_000]]);
  });

  test("asks for everything each five minutes", async () => {
    const { asked, discovery, pass } = setUp({ isShared: true });
    await discovery.start();
    await pass(601);
    expect(asked.flatMap((range, i) => (range === "all" ? i : []))).toEqual([0, 300, 600]);
  });

  test("leaves it to the storage to say that it is away, and logs every other failure", async () => {
    const { lines, table, discovery, pass } = setUp({ isShared: true });
    await discovery.start();
    table.fault = away;
    await pass(3);
    expect(lines).toEqual([]);
    table.fault = new Error("no such table");
    await pass(1);
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      { level: "error", event: "delivery.load_failed", error: "no such table" },
    ]);
  });

  test("asks again from where it was after a failure", async () => {
    const { asked, table, discovery, pass } = setUp({ isShared: true });
    await discovery.start();
    await pass(1);
    table.fault = away;
    await pass(20);
    table.fault = null;
    await pass(1);
    expect(asked.slice(1)).toEqual([
      [-15_000, 1_000],
      [-14_000, 22_000],
    ]);
  });

  test("goes back with a clock that was set back", async () => {
    const { clock, asked, discovery, pass } = setUp({ isShared: true });
    await discovery.start();
    clock.step(-3_600_000);
    await pass(1);
    expect(asked.at(-1)).toEqual([-3_614_000, -3_599_000]);
  });

  test("looks for everything when it is asked to, and again until the table answers", async () => {
    const { asked, table, discovery, pass } = setUp({ isShared: false });
    table.fault = away;
    discovery.look();
    await rest();
    await pass(2);
    expect(asked).toEqual([]);
    table.fault = null;
    await pass(1);
    expect(asked).toEqual(["all"]);
  });

  test("gives up a look that failed once it is stopped", async () => {
    const { clock, asked, table, discovery, pass } = setUp({ isShared: false });
    table.fault = away;
    discovery.look();
    await rest();
    discovery.stop();
    expect(clock.timers).toBe(0);
    table.fault = null;
    await pass(2);
    expect(asked).toEqual([]);
  });

  test("does not repeat a look that fails as it is stopped", async () => {
    const { clock, table, discovery } = setUp({ isShared: false });
    table.fault = away;
    discovery.look();
    discovery.stop();
    await rest();
    expect(clock.timers).toBe(0);
  });

  test("repeats only one of several looks that failed", async () => {
    const { asked, table, discovery, pass } = setUp({ isShared: false });
    table.fault = away;
    for (let i = 0; i < 3; i++) discovery.look();
    await rest();
    table.fault = null;
    await pass(3);
    expect(asked).toEqual(["all"]);
  });

  test("asks nothing more once it is stopped", async () => {
    const { clock, asked, discovery, pass } = setUp({ isShared: true });
    await discovery.start();
    discovery.stop();
    await pass(2);
    expect([asked, clock.timers]).toEqual([["all"], 0]);
  });
});
