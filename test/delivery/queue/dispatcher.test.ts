import { describe, expect, test } from "bun:test";
import type { Delivered, Route } from "../../../src/delivery/deliver.ts";
import { createAccountPace } from "../../../src/delivery/queue/account-pace.ts";
import { silentYoungLimit, unprovenYoungMs } from "../../../src/delivery/queue/admission.ts";
import { createDispatcher, type Dispatcher } from "../../../src/delivery/queue/dispatcher.ts";
import type { DueDelivery } from "../../../src/domain/delivery.ts";
import type { WebhookRef } from "../../../src/domain/webhook.ts";
import { type Clock, systemClock } from "../../../src/lib/clock.ts";
import { silentLog } from "../../../src/lib/log.ts";
import type { Store } from "../../../src/store/store.ts";
import { createFakeClock } from "../../support/fake-clock.ts";

const settled: Delivered = { kind: "settled", answered: true, next: { kind: "delivered" }, connectionFree: null };

const deliveryOf = (deliveryKey: number, webhookKey = 1, payloadBytes = 10): DueDelivery => ({
  deliveryKey,
  tenantKey: webhookKey,
  tenantId: `t${webhookKey}`,
  tier: "free",
  webhookKey,
  url: `https://shop.example/${webhookKey}`,
  eventSeq: deliveryKey,
  eventId: `evt_${deliveryKey}`,
  payload: new Uint8Array(payloadBytes),
  run: 1,
  attemptsInRun: 0,
  attempts: 0,
  replayKey: null,
  replayGroupId: null,
});

const webhookOf = (webhookKey: number): WebhookRef => ({ tenantKey: webhookKey, webhookKey });

/** A table of pending deliveries, each of which is somebody's or nobody's, and attempts that end when the test says so. */
function setUp({
  concurrency = 16,
  table = [] as DueDelivery[],
  onLoad = () => {},
  onRelease = () => {},
  clock = systemClock,
}: {
  concurrency?: number;
  table?: DueDelivery[];
  onLoad?: () => void;
  onRelease?: () => void;
  clock?: Clock;
} = {}) {
  const pending = new Map(table.map((delivery) => [delivery.deliveryKey, delivery]));
  const owned = new Set<number>();
  const inFlight = new Map<
    number,
    { delivery: DueDelivery; route: Route; end(result?: Delivered): void; fail(): void }
  >();
  const startedKeys: number[] = [];
  let onStart = () => {};
  let isTableHidden = false;
  const store = {
    async discover() {
      if (isTableHidden) return [];
      const keys = new Set([...pending.values()].map(({ webhookKey }) => webhookKey));
      return [...keys].map((webhookKey) => ({ webhookKey, tenantKey: webhookKey, firstDueAt: 0 }));
    },
    async claim({ webhookKey }: WebhookRef, now: number, limit: number) {
      onLoad();
      const due: DueDelivery[] = [];
      if (isTableHidden) return { due, nextDueAt: null };
      for (const delivery of pending.values()) {
        if (due.length === limit) break;
        if (delivery.webhookKey === webhookKey && !owned.has(delivery.deliveryKey)) due.push(delivery);
      }
      for (const { deliveryKey } of due) owned.add(deliveryKey);
      return { due, nextDueAt: due.length === limit ? now : null };
    },
    async release(deliveries: readonly DueDelivery[]) {
      onRelease();
      for (const { deliveryKey } of deliveries) owned.delete(deliveryKey);
    },
  } as unknown as Store;
  const created = createDispatcher({
    store,
    clock,
    log: silentLog,
    webhookConcurrency: concurrency,
    pace: createAccountPace(clock, { free: null, pro: null, business: null, enterprise: null }),
    deliver: (delivery, route) =>
      new Promise((resolve, reject) => {
        startedKeys.push(delivery.deliveryKey);
        inFlight.set(delivery.deliveryKey, {
          delivery,
          route,
          fail() {
            inFlight.delete(delivery.deliveryKey);
            reject(new Error("a defect"));
          },
          end(result = settled) {
            inFlight.delete(delivery.deliveryKey);
            if (result.next?.kind === "retry") {
              pending.set(delivery.deliveryKey, { ...delivery, attemptsInRun: delivery.attemptsInRun + 1 });
            } else if (result.kind === "settled") {
              pending.delete(delivery.deliveryKey);
            }
            if (result.kind !== "aborted") owned.delete(delivery.deliveryKey);
            resolve(result);
          },
        });
        onStart();
      }),
  });
  /** As ingestion does it: what is offered is owned. */
  const dispatcher: Dispatcher = Object.create(created, {
    offer: {
      value(deliveries: readonly DueDelivery[]) {
        for (const delivery of deliveries) {
          pending.set(delivery.deliveryKey, delivery);
          owned.add(delivery.deliveryKey);
        }
        created.offer(deliveries);
      },
    },
  });
  /** Resolves when this many attempts are in flight. */
  const whenInFlight = (count: number) =>
    new Promise<void>((resolve) => {
      onStart = () => inFlight.size >= count && resolve();
      onStart();
    });
  const endAll = () => {
    for (const attempt of [...inFlight.values()]) attempt.end();
  };
  /** Starts it; these webhooks have answered before, so they get all the attempts at once that they may. */
  async function start(...answering: number[]) {
    isTableHidden = true;
    await dispatcher.start();
    for (const webhookKey of answering) {
      dispatcher.offer([deliveryOf(-webhookKey, webhookKey)]);
      await whenInFlight(1);
      endAll();
      await dispatcher.whenIdle();
    }
    startedKeys.length = 0;
    isTableHidden = false;
    dispatcher.wake(answering.map(webhookOf));
  }
  return { dispatcher, start, inFlight, startedKeys, pending, owned, whenInFlight, endAll };
}

const range = (count: number, webhookKey = 1) =>
  Array.from({ length: count }, (_, i) => deliveryOf(webhookKey * 1_000_000 + i, webhookKey));

describe("the dispatcher", () => {
  test("sends a fresh delivery at once, without a look at the table", async () => {
    const { dispatcher, startedKeys, endAll } = setUp();
    await dispatcher.start();
    dispatcher.offer([deliveryOf(1)]);
    expect(startedKeys).toEqual([1]);
    endAll();
    await dispatcher.whenIdle();
  });

  test("finds everything pending at its start", async () => {
    const { dispatcher, pending, endAll, whenInFlight } = setUp({ table: [...range(3, 1), ...range(2, 2)] });
    await dispatcher.start();
    await whenInFlight(5);
    endAll();
    await dispatcher.whenIdle();
    expect(pending.size).toBe(0);
  });

  test("makes no more attempts to one webhook at a time than it may", async () => {
    const { dispatcher, start, inFlight } = setUp({ concurrency: 4 });
    await start(1);
    dispatcher.offer(range(10));
    expect(inFlight.size).toBe(4);
  });

  test("makes one attempt at a time after no answer, and all again after the next answer", async () => {
    const { dispatcher, start, inFlight, whenInFlight } = setUp({ concurrency: 4 });
    await start(1);
    dispatcher.offer(range(12));
    const noAnswer: Delivered = { ...settled, answered: false, next: { kind: "failed" } };
    for (const attempt of [...inFlight.values()]) attempt.end(noAnswer);
    await whenInFlight(1);
    await Promise.resolve();
    expect(inFlight.size).toBe(1);
    for (const attempt of [...inFlight.values()]) attempt.end();
    await whenInFlight(4);
    expect(inFlight.size).toBe(4);
  });

  test("gives a webhook that has answered the places of those that answer, also while it waits", async () => {
    const clock = createFakeClock();
    const { dispatcher, start, inFlight, whenInFlight } = setUp({ concurrency: 1_000, clock });
    await start();
    dispatcher.offer(Array.from({ length: 300 }, (_, i) => deliveryOf(i + 1, i < 250 ? 1 : 2)));
    // Turns of those that have not answered come with the time, and in less of it than makes an attempt an old one.
    while (inFlight.size < silentYoungLimit) clock.advance(1);
    inFlight.get(1)?.end();
    await whenInFlight(299);
  });

  test("serves webhooks in turn, so a backlog of one does not hold up another", async () => {
    const { dispatcher, start, startedKeys, whenInFlight } = setUp({ concurrency: 100, table: range(2000, 1) });
    await start(1);
    await whenInFlight(100);
    dispatcher.offer([deliveryOf(7, 2)]);
    expect(startedKeys.at(-1)).toBe(7);
  });

  test("what is fresh and what is stored take turns", async () => {
    const { dispatcher, startedKeys, inFlight, whenInFlight } = setUp({ concurrency: 1, table: range(50, 1) });
    await dispatcher.start();
    await whenInFlight(1);
    const fresh = Array.from({ length: 5 }, (_, i) => deliveryOf(i + 1, 1));
    dispatcher.offer(fresh);
    for (let i = 0; i < 10; i += 1) {
      for (const attempt of [...inFlight.values()]) attempt.end();
      await whenInFlight(1);
    }
    const freshStarted = startedKeys.filter((key) => key <= 5);
    expect(freshStarted.length).toBeGreaterThanOrEqual(4);
    expect(startedKeys.length - freshStarted.length).toBeGreaterThanOrEqual(4);
  });

  test("a backlog of a million deliveries stays in the table, but for a bounded window", async () => {
    const { dispatcher, start, whenInFlight } = setUp({ table: range(1_000_000) });
    await start(1);
    await whenInFlight(16);
    expect(dispatcher.held).toBeLessThan(200);
    dispatcher.offer(range(20_000, 2));
    expect(dispatcher.held).toBeLessThan(600);
  });

  test("what waits keeps nothing of its request but the payload", async () => {
    const { dispatcher, inFlight } = setUp();
    await dispatcher.start();
    const request = new Uint8Array(5 * 2 ** 20).fill(7);
    dispatcher.offer([{ ...deliveryOf(1), payload: request.subarray(100, 110) }]);
    const payload = inFlight.get(1)?.delivery.payload;
    expect(payload).toEqual(request.subarray(100, 110));
    expect(payload?.buffer.byteLength).toBe(10);
  });

  test("backlogs of long payloads are loaded in small pieces when memory is short", async () => {
    const payload = new Uint8Array(2 ** 20);
    const webhooks = Array.from({ length: 20 }, (_, n) => n + 1);
    const table = webhooks.flatMap((key) => range(100, key).map((delivery) => ({ ...delivery, payload })));
    const { dispatcher, start, whenInFlight } = setUp({ concurrency: 1, table });
    await start(...webhooks);
    await whenInFlight(webhooks.length);
    expect(dispatcher.held).toBeLessThan(4 * 64 + 2 * webhooks.length);
  });

  test("a crowd of dead webhooks is served a few at a time, and holds up a new one for less than a second", async () => {
    const clock = createFakeClock();
    const crowd = Array.from({ length: 1000 }, (_, n) => n + 1);
    const { dispatcher, inFlight, startedKeys } = setUp({ table: crowd.flatMap((key) => range(40, key)), clock });
    await dispatcher.start();
    dispatcher.offer([deliveryOf(7, 5000)]);
    let passedMs = 0;
    for (; !startedKeys.includes(7); passedMs += 1) {
      const before = inFlight.size;
      clock.advance(1);
      for (let turn = 0; turn < 6; turn += 1) await Promise.resolve();
      expect(inFlight.size - before).toBeLessThanOrEqual(8);
    }
    expect(passedMs).toBeLessThan(1000);
    expect(dispatcher.held).toBeLessThan(4 * crowd.length);
  });

  test("a delivery that is owned is not claimed a second time", async () => {
    const table = range(40);
    const { dispatcher, start, startedKeys, endAll, whenInFlight } = setUp({
      concurrency: 100,
      table: table.slice(10),
    });
    await start(1);
    dispatcher.offer(table.slice(0, 10));
    dispatcher.wake([webhookOf(1)]);
    await whenInFlight(40);
    expect(new Set(startedKeys).size).toBe(startedKeys.length);
    endAll();
    await dispatcher.whenIdle();
    expect(startedKeys).toHaveLength(40);
  });

  test("of what a newer run has overtaken, what is in flight ends, and what waits goes back and is claimed anew", async () => {
    const { dispatcher, inFlight, pending, whenInFlight } = setUp({ concurrency: 1 });
    await dispatcher.start();
    const [first, second, third] = [deliveryOf(1), deliveryOf(2), deliveryOf(3)];
    dispatcher.offer([first, second, third]);
    for (const delivery of [first, second]) pending.set(delivery.deliveryKey, { ...delivery, run: 2 });
    dispatcher.overtake([first, second]);
    dispatcher.wake([webhookOf(1)]);
    const sent: string[] = [];
    for (let n = 0; n < 4; n += 1) {
      await whenInFlight(1);
      for (const { delivery, end } of [...inFlight.values()]) {
        sent.push(`${delivery.deliveryKey} run ${delivery.run}`);
        end(n === 0 ? { ...settled, kind: "superseded" } : settled);
      }
    }
    await dispatcher.whenIdle();
    expect(sent[0]).toBe("1 run 1");
    expect(sent.sort()).toEqual(["1 run 1", "1 run 2", "2 run 2", "3 run 1"]);
  });

  test("a newer run is sent once the attempt of the one before has ended", async () => {
    const { dispatcher, inFlight, startedKeys, pending, whenInFlight } = setUp();
    await dispatcher.start();
    dispatcher.offer([deliveryOf(1)]);
    pending.set(1, { ...deliveryOf(1), run: 2 });
    dispatcher.wake([webhookOf(1)]);
    await Promise.resolve();
    expect(startedKeys).toEqual([1]);
    inFlight.get(1)?.end({ ...settled, kind: "superseded" });
    await whenInFlight(1);
    expect(inFlight.get(1)?.delivery.run).toBe(2);
    inFlight.get(1)?.end();
    await dispatcher.whenIdle();
    expect(startedKeys).toEqual([1, 1]);
  });

  test("a retry is made when its time has come", async () => {
    const { dispatcher, inFlight, startedKeys, whenInFlight } = setUp({ table: [deliveryOf(1)] });
    await dispatcher.start();
    await whenInFlight(1);
    const at = Date.now() + 30;
    for (const attempt of [...inFlight.values()]) attempt.end({ ...settled, next: { kind: "retry", at } });
    expect(inFlight.size).toBe(0);
    await whenInFlight(1);
    expect(Date.now()).toBeGreaterThanOrEqual(at);
    expect(startedKeys).toEqual([1, 1]);
  });

  test("what is due in the table does not wait for a clock that was set back between two looks at it", async () => {
    const clock = createFakeClock();
    const { dispatcher, inFlight } = setUp({ table: range(16), clock, onLoad: () => clock.step(-60_000) });
    await dispatcher.start();
    for (let ms = 0; ms < 100; ms += 1) {
      clock.advance(1);
      for (let turn = 0; turn < 6; turn += 1) await Promise.resolve();
    }
    expect(inFlight.size).toBe(16);
  });

  test("a retry is not forgotten when the clock was set back while it waited for a place", async () => {
    const clock = createFakeClock();
    const { dispatcher, start, inFlight, startedKeys } = setUp({ concurrency: 1, clock });
    await start();
    const noAnswer: Delivered = { ...settled, answered: false };
    const settle = async () => {
      for (let turn = 0; turn < 6; turn += 1) await Promise.resolve();
    };
    dispatcher.offer([deliveryOf(1)]);
    inFlight.get(1)?.end({ ...noAnswer, next: { kind: "retry", at: clock.now() + 1_000 } });
    await settle();
    // When the time comes, others hang in all the places that such a webhook may have.
    clock.advance(1_000 - unprovenYoungMs / 2);
    dispatcher.offer(Array.from({ length: silentYoungLimit }, (_, n) => deliveryOf(n + 2, n + 2)));
    clock.advance(unprovenYoungMs / 2);
    expect(inFlight.size).toBe(silentYoungLimit);
    clock.step(-500);
    for (let ms = 0; ms < 1_000; ms += 50) {
      clock.advance(50);
      await settle();
    }
    expect(startedKeys.filter((key) => key === 1)).toHaveLength(2);
  });

  test("a retry is not forgotten when the clock was set back after its time had come", async () => {
    const clock = createFakeClock();
    const { dispatcher, inFlight, startedKeys, whenInFlight } = setUp({ concurrency: 1, clock });
    await dispatcher.start();
    dispatcher.offer([deliveryOf(1), deliveryOf(2)]);
    inFlight.get(1)?.end({ ...settled, next: { kind: "retry", at: clock.now() + 1_000 } });
    await whenInFlight(1);
    clock.advance(1_000); // it is due, and waits for the other one
    clock.step(-500);
    inFlight.get(2)?.end();
    await dispatcher.whenIdle();
    expect(startedKeys).toEqual([1, 2]);
    clock.advance(500);
    await whenInFlight(1);
    expect(startedKeys).toEqual([1, 2, 1]);
  });

  test("no attempt starts to a webhook that was removed; one in flight goes on", async () => {
    const { dispatcher, inFlight, startedKeys } = setUp({ concurrency: 1 });
    await dispatcher.start();
    dispatcher.offer(range(3));
    dispatcher.removeWebhooks([1]);
    const [attempt] = [...inFlight.values()];
    expect(attempt?.route.signal.aborted).toBe(false);
    expect(attempt?.route.isClosed()).toBe(true);
    attempt?.end();
    await dispatcher.whenIdle();
    expect(startedKeys).toHaveLength(1);
  });

  test("what is offered after its webhook was removed, or its account deleted, does not go out", async () => {
    const { dispatcher, startedKeys } = setUp();
    await dispatcher.start();
    dispatcher.removeWebhooks([1]);
    dispatcher.stopTenant(2);
    dispatcher.offer([...range(2, 1), ...range(2, 2), deliveryOf(7, 3)]);
    expect(startedKeys).toEqual([7]);
  });

  test("what the table had for a webhook that was removed meanwhile is let go", async () => {
    const world = setUp({ table: range(3), onLoad: () => world.dispatcher.removeWebhooks([1]) });
    const { dispatcher, startedKeys, owned } = world;
    await dispatcher.start();
    await dispatcher.whenIdle();
    expect([startedKeys, dispatcher.held, owned.size]).toEqual([[], 0, 0]);
  });

  test("the attempts of a deleted account are broken off", async () => {
    const { dispatcher, start, inFlight } = setUp();
    await start(5);
    dispatcher.offer(range(3, 5));
    dispatcher.stopTenant(5);
    expect([...inFlight.values()].map(({ route }) => route.signal.aborted)).toEqual([true, true, true]);
  });

  test("those to a webhook that was removed before are broken off as well", async () => {
    const { dispatcher, start, inFlight } = setUp();
    await start(5);
    dispatcher.offer(range(2, 5));
    dispatcher.removeWebhooks([5]);
    dispatcher.stopTenant(5);
    expect([...inFlight.values()].map(({ route }) => route.signal.aborted)).toEqual([true, true]);
  });

  test("a paused account waits, and goes on where it was", async () => {
    const { dispatcher, inFlight, endAll, pending, whenInFlight } = setUp({ table: range(4, 5) });
    dispatcher.pauseTenant(5);
    await dispatcher.start();
    dispatcher.offer([deliveryOf(9, 6)]);
    expect([...inFlight.keys()]).toEqual([9]);
    endAll();
    dispatcher.resumeTenant(5);
    await whenInFlight(4);
    endAll();
    await dispatcher.whenIdle();
    expect(pending.size).toBe(0);
  });

  test("nothing starts while the store takes no writes", async () => {
    const { dispatcher, start, inFlight } = setUp();
    await start(1);
    dispatcher.stall(true);
    dispatcher.offer(range(3));
    expect(inFlight.size).toBe(0);
    dispatcher.stall(false);
    expect(inFlight.size).toBe(3);
  });

  test("stopping waits for what is in flight and starts nothing more", async () => {
    const { dispatcher, start, startedKeys, endAll } = setUp({ concurrency: 2 });
    await start(1);
    dispatcher.offer(range(5));
    const stopped = dispatcher.stop(10_000);
    endAll();
    expect(await stopped).toBe(0);
    expect(startedKeys).toHaveLength(2);
  });

  test("stopping gives up on attempts that do not end in time and counts them", async () => {
    const { dispatcher, start } = setUp();
    await start(1);
    dispatcher.offer(range(2));
    expect(await dispatcher.stop(10)).toBe(2);
  });

  const turnedAway: readonly [string, number, (world: ReturnType<typeof setUp>) => void][] = [
    ["nothing is wrong", 3, () => {}],
    ["its account pauses", 1, ({ dispatcher }) => dispatcher.pauseTenant(1)],
    ["its webhook is removed", 1, ({ dispatcher }) => dispatcher.removeWebhooks([1])],
    ["its account is deleted", 1, ({ dispatcher }) => dispatcher.stopTenant(1)],
    ["the program stops", 1, ({ dispatcher }) => void dispatcher.stop(10_000)],
    ["its attempt was broken off", 2, ({ inFlight }) => inFlight.get(1)?.end({ ...settled, kind: "aborted" })],
    ["its attempt is broken", 2, ({ inFlight }) => inFlight.get(1)?.fail()],
  ];
  test.each(turnedAway)("gives back what will not go out: when %s, of three %i are left", async (_, left, happen) => {
    const world = setUp({ concurrency: 1, clock: createFakeClock() });
    await world.dispatcher.start();
    world.dispatcher.offer([1, 2, 3].map((key) => deliveryOf(key)));
    world.dispatcher.hold(true);
    happen(world);
    await new Promise((resolve) => setImmediate(resolve));
    expect(world.owned.size).toBe(left);
  });

  test("gives back what is offered beyond its window, or while it holds back, pauses or stops", async () => {
    const { dispatcher, start, owned, whenInFlight } = setUp();
    await start(1);
    dispatcher.offer(range(300));
    await whenInFlight(16);
    await Promise.resolve();
    expect(owned.size).toBe(dispatcher.held);
    expect(owned.size).toBeLessThanOrEqual(256);
    const before = owned.size;
    dispatcher.pauseTenant(2);
    dispatcher.offer(range(3, 2));
    dispatcher.hold(true);
    dispatcher.offer(range(3, 3));
    void dispatcher.stop(10_000);
    dispatcher.offer(range(3, 4));
    await Promise.resolve();
    expect(owned.size).toBe(16);
    expect(before).toBeGreaterThan(16);
  });

  test("says how many more it takes on: none of what it would give back", async () => {
    const { dispatcher, start } = setUp();
    await start(1);
    const room = () => [1, 2].map((key) => dispatcher.roomFor(webhookOf(key)));
    expect(room()).toEqual([256, 256]);
    dispatcher.offer(range(100));
    expect(room()).toEqual([156, 256]);
    dispatcher.hold(true);
    expect(room()).toEqual([0, 0]);
    dispatcher.hold(false);
    dispatcher.pauseTenant(1);
    expect(room()).toEqual([0, 256]);
    dispatcher.removeWebhooks([2]);
    expect(room()).toEqual([0, 0]);
    void dispatcher.stop(10_000);
    expect(dispatcher.roomFor(webhookOf(3))).toBe(0);
  });

  test("tries again to give back what the store did not take, and sends it then", async () => {
    const clock = createFakeClock();
    let isDown = true;
    const { dispatcher, owned, startedKeys } = setUp({
      clock,
      onRelease() {
        if (isDown) throw new Error("the storage is away");
      },
    });
    await dispatcher.start();
    dispatcher.pauseTenant(1);
    dispatcher.offer([deliveryOf(1)]);
    const rest = () => new Promise((resolve) => setImmediate(resolve));
    await rest();
    dispatcher.resumeTenant(1);
    isDown = false;
    await rest();
    expect([owned.size, startedKeys]).toEqual([1, []]);
    clock.advance(1_000);
    await rest();
    expect(startedKeys).toEqual([1]);
  });
});
