import { afterEach, describe, expect, test } from "bun:test";
import { unavailable } from "../../src/domain/errors.ts";
import type { WebhookRef } from "../../src/domain/webhook.ts";
import { createLog } from "../../src/lib/log.ts";
import type { Loop } from "../../src/lib/loop.ts";
import { createJanitor } from "../../src/maintenance/janitor.ts";
import { createFakeClock } from "../support/fake-clock.ts";

const webhook = { tenantKey: 1, webhookKey: 2 };

const running: Loop[] = [];
afterEach(async () => {
  for (const janitor of running.splice(0)) await janitor.stop();
});

/** A janitor over a store that has `work` steps of each kind to do; it notes what is asked of it. */
function setUp(
  work: {
    fail?: number;
    order?: number;
    erase?: number;
    prune?: number;
    forget?: number;
    thin?: number;
    release?: number;
  } = {},
  isShared = false,
) {
  const clock = createFakeClock();
  const left = { fail: 0, order: 0, erase: 0, prune: 0, forget: 0, thin: 0, release: 0, ...work };
  const asked: string[] = [];
  const broken = new Map<string, Error>();
  const lines: string[] = [];
  const step = (kind: keyof typeof left) => async () => {
    asked.push(kind);
    const fault = broken.get(kind);
    if (fault) throw fault;
    left[kind] -= 1;
    return left[kind] > 0;
  };
  let failures = 0;
  const woken: WebhookRef[] = [];
  const janitor = createJanitor({
    store: {
      isShared,
      failUndeliverable: step("fail"),
      endOrder: async () => ((await step("order")()) ? [webhook] : null),
      eraseDeleted: step("erase"),
      prune: step("prune"),
      forgetWebhooks: step("forget"),
      thinStats: step("thin"),
      reclaim: step("release"),
    },
    deliveries: { wake: (webhooks) => void woken.push(...webhooks) },
    clock,
    log: createLog({ level: "info", format: "json", now: clock.now, out: (line) => void lines.push(line) }),
    mayRun: () => true,
    passOn() {},
    onFailed() {
      failures += 1;
    },
  });
  running.push(janitor);
  janitor.start();
  const minutePasses = async () => {
    clock.advance(60_000);
    await janitor.whenIdle();
  };
  const times = (kind: keyof typeof left) => asked.filter((one) => one === kind).length;
  const prunes = () => times("prune");
  return { janitor, clock, asked, broken, lines, minutePasses, times, prunes, failures: () => failures, woken };
}

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

describe("the janitor", () => {
  test("fails what waits for removed webhooks first, then ends orders, erases, prunes, forgets webhooks, thins out statistics and gives space back", async () => {
    const { janitor, asked } = setUp({ fail: 2, order: 2, erase: 2, prune: 2, forget: 2, thin: 2, release: 2 });
    await janitor.whenIdle();
    const firstOf = ["fail", "order", "erase", "prune", "forget", "thin", "release"].map((kind) => asked.indexOf(kind));
    expect(firstOf).toEqual([...firstOf].sort((a, b) => a - b));
    expect(asked.filter((kind) => kind === "prune")).toHaveLength(2);
  });

  test("says each time that records may have failed", async () => {
    const { janitor, failures } = setUp({ fail: 3 });
    await janitor.whenIdle();
    expect(failures()).toBeGreaterThanOrEqual(3);
  });

  test("wakes the webhooks of what it has let go that was held back", async () => {
    const { janitor, woken } = setUp({ order: 3 });
    await janitor.whenIdle();
    expect(woken).toEqual([webhook, webhook]);
  });

  test("prunes every minute", async () => {
    const { janitor, prunes, minutePasses } = setUp();
    await janitor.whenIdle();
    await minutePasses();
    await minutePasses();
    expect(prunes()).toBe(3);
  });

  test("prunes every minute also when the wall clock was set back", async () => {
    const { janitor, clock, prunes, minutePasses } = setUp();
    await janitor.whenIdle();
    clock.step(-3_600_000);
    await minutePasses();
    await minutePasses();
    expect(prunes()).toBe(3);
  });

  test.each([
    ["when it has made some itself", false, 1],
    ["each time, when others make some as well", true, 3],
  ])("asks for room to be given back %s", async (_, isShared, expected) => {
    const { janitor, times, minutePasses } = setUp({}, isShared);
    await janitor.whenIdle();
    await minutePasses();
    await minutePasses();
    expect(times("release")).toBe(expected);
  });

  test.each([
    ["a storage that is full, which says so itself", unavailable("The disk is full.", "storage_full"), []],
    ["a defect, of which it tells", new Error("no such table"), [{ level: "warn", event: "maintenance.failed" }]],
  ])("goes on with what had failed after %s", async (_, fault, told) => {
    const { janitor, clock, broken, lines, prunes } = setUp();
    broken.set("prune", fault);
    await turn();
    expect(prunes()).toBe(1);
    broken.clear();
    clock.advance(5_000);
    await janitor.whenIdle();
    expect(prunes()).toBe(2);
    expect(lines.map((line) => JSON.parse(line))).toMatchObject(told);
  });

  test.each(["fail", "order", "erase", "prune", "forget", "thin", "release"] as const)(
    "does everything else, and is idle, when what %s needs is damaged",
    async (kind) => {
      const { janitor, broken, times, minutePasses } = setUp();
      broken.set(kind, unavailable("This data is damaged in storage.", "storage_damaged"));
      await janitor.whenIdle();
      for (const each of ["fail", "order", "erase", "prune", "forget", "thin", "release"] as const) {
        expect([each, times(each)]).toEqual([each, 1]);
      }
      await minutePasses();
      expect(times("prune")).toBe(2);
    },
  );
});
