import { describe, expect, test } from "bun:test";
import type { Dispatcher } from "../../../src/delivery/queue/dispatcher.ts";
import { usualSettings } from "../../../src/domain/webhook.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { createDispatcherWorld, deliveryOf, range, settled, webhookOf } from "./dispatcher-world.ts";

const { eventTypes: _, ...usual } = usualSettings;
const pause = (dispatcher: Dispatcher, webhookKey: number, paused = true) =>
  dispatcher.throttle(webhookKey, [{ ...usual, webhookKey, paused, resumes: !paused }]);

describe("to a webhook that its tenant has paused", () => {
  test("nothing starts and nothing is held; one in flight goes on, and so do other webhooks", async () => {
    const world = createDispatcherWorld({ concurrency: 1 });
    const { dispatcher, inFlight, startedKeys, owned, endAll } = world;
    await dispatcher.start();
    dispatcher.offer(range(100, 1));
    pause(dispatcher, 1);
    await Promise.resolve();
    const [attempt] = [...inFlight.values()];
    expect([attempt?.route.signal.aborted, attempt?.route.isClosed()]).toEqual([false, true]);
    expect([dispatcher.held, owned.size, dispatcher.roomFor(webhookOf(1))]).toEqual([1, 1, 0]);
    attempt?.end();
    dispatcher.offer([deliveryOf(7, 2)]);
    await world.whenInFlight(1);
    expect([...inFlight.keys()]).toEqual([7]);
    endAll();
    await dispatcher.whenIdle();
    expect([startedKeys.length, dispatcher.held, owned.size]).toEqual([2, 0, 0]);
  });

  test("nothing is read for it, whatever wakes it", async () => {
    let loads = 0;
    const onLoad = () => {
      loads += 1;
    };
    const world = createDispatcherWorld({ concurrency: 1, onLoad });
    const { dispatcher, endAll, whenInFlight } = world;
    await dispatcher.start();
    dispatcher.offer(range(3, 1));
    await whenInFlight(1);
    pause(dispatcher, 1);
    dispatcher.wake([webhookOf(1)]);
    dispatcher.offer(range(3, 1));
    dispatcher.look();
    for (const attempt of world.inFlight.values()) attempt.end({ ...settled, next: { kind: "retry", at: 0 } as never });
    endAll();
    await dispatcher.whenIdle();
    expect([loads, dispatcher.held]).toEqual([0, 0]);
  });

  test("what the table had for it is let go", async () => {
    const world = createDispatcherWorld({ table: range(3), onLoad: () => pause(world.dispatcher, 1) });
    const { dispatcher, startedKeys, owned } = world;
    await dispatcher.start();
    await dispatcher.whenIdle();
    expect([startedKeys, dispatcher.held, owned.size]).toEqual([[], 0, 0]);
  });

  test("what has waited goes out in its order once it goes on, and before what comes then", async () => {
    const clock = createFakeClock();
    const world = createDispatcherWorld({ concurrency: 1, clock });
    const { dispatcher, start, startedKeys, inFlight, whenInFlight, endAll, pending } = world;
    await start(1);
    pause(dispatcher, 1);
    const waiting = range(70, 1);
    dispatcher.offer(waiting);
    pause(dispatcher, 1, false);
    await whenInFlight(1);
    // The table has more than what is read of it at once: what is new gets in line.
    expect(dispatcher.roomFor(webhookOf(1))).toBe(0);
    clock.advance(15_000);
    dispatcher.offer([deliveryOf(5, 1)]);
    while (pending.size > 0) {
      await whenInFlight(1);
      // The last of it is in memory, and the table has nothing more.
      if (pending.size === 4 && !pending.has(6)) dispatcher.offer([deliveryOf(6, 1)]);
      endAll();
      await Promise.resolve();
    }
    await dispatcher.whenIdle();
    expect(startedKeys).toEqual([...waiting.map(({ deliveryKey }) => deliveryKey), 5, 6]);
    expect(inFlight.size).toBe(0);
    expect(dispatcher.roomFor(webhookOf(1))).toBeGreaterThan(0);
  });

  test("what has waited goes out first also when the pause began before a restart", async () => {
    const clock = createFakeClock();
    const { dispatcher, pending, whenInFlight } = createDispatcherWorld({ concurrency: 1, clock });
    await dispatcher.start();
    // A replay queues something for it; the table gives out nothing of a paused webhook.
    dispatcher.wake([webhookOf(1)]);
    await dispatcher.whenIdle();
    for (const delivery of range(70, 1)) pending.set(delivery.deliveryKey, delivery);
    pause(dispatcher, 1, false);
    await whenInFlight(1);
    clock.advance(15_000);
    expect(dispatcher.roomFor(webhookOf(1))).toBe(0);
  });

  test("what has waited goes out first also when the table cannot be read for a while", async () => {
    const clock = createFakeClock();
    let isAway = true;
    const onLoad = () => {
      if (isAway) throw new Error("away");
    };
    const { dispatcher, whenInFlight } = createDispatcherWorld({ clock, table: range(70, 1), onLoad });
    pause(dispatcher, 1);
    await dispatcher.start();
    pause(dispatcher, 1, false);
    for (let second = 1; second <= 20; second += 1) {
      clock.advance(1_000);
      for (let turn = 0; turn < 6; turn += 1) await Promise.resolve();
      expect(dispatcher.roomFor(webhookOf(1))).toBe(0);
    }
    isAway = false;
    clock.advance(1_000);
    await whenInFlight(1);
    expect(dispatcher.roomFor(webhookOf(1))).toBe(0);
  });

  test("nothing goes out when its account goes on, and what is due goes out when it does", async () => {
    const world = createDispatcherWorld({ table: range(2, 5) });
    const { dispatcher, startedKeys, whenInFlight, endAll } = world;
    dispatcher.pauseTenant(5);
    pause(dispatcher, 5);
    await dispatcher.start();
    dispatcher.resumeTenant(5);
    await dispatcher.whenIdle();
    expect(startedKeys).toEqual([]);
    pause(dispatcher, 5, false);
    await whenInFlight(2);
    endAll();
    await dispatcher.whenIdle();
    expect(startedKeys).toHaveLength(2);
  });
});

describe("what waits for a webhook whose settings change", () => {
  const changeTo = (dispatcher: Dispatcher, webhookKey: number) =>
    dispatcher.throttle(webhookKey, [{ ...usual, webhookKey, resumes: false }]);

  test("is read again: it carries what held before", async () => {
    const { dispatcher, start, inFlight, pending, owned, endAll, whenInFlight } = createDispatcherWorld({
      concurrency: 1,
    });
    await start(1);
    dispatcher.offer(range(3, 1));
    for (const [key, delivery] of pending) pending.set(key, { ...delivery, sealedHeaders: new Uint8Array(1) });
    changeTo(dispatcher, 1);
    await Promise.resolve();
    expect(owned.size).toBe(1);
    const carried: (Uint8Array | null)[] = [];
    while (pending.size > 0) {
      await whenInFlight(1);
      carried.push(...[...inFlight.values()].map(({ delivery }) => delivery.sealedHeaders));
      endAll();
    }
    expect(carried).toEqual([null, new Uint8Array(1), new Uint8Array(1)]);
  });

  test("is read again when it has begun and is not on its way yet", async () => {
    const { dispatcher, start, inFlight, endAll, owned } = createDispatcherWorld({ concurrency: 1 });
    await start(1);
    dispatcher.offer([deliveryOf(7, 1)]);
    expect(inFlight.get(7)?.route.isClosed()).toBe(false);
    changeTo(dispatcher, 1);
    expect(inFlight.get(7)?.route.isClosed()).toBe(true);
    endAll();
    await dispatcher.whenIdle();
    expect(owned.size).toBe(0);
  });

  test("is read again when it is offered after that: it may have been accepted before", async () => {
    const clock = createFakeClock();
    const { dispatcher, start, inFlight, pending, owned, whenInFlight, endAll } = createDispatcherWorld({ clock });
    await start(1);
    changeTo(dispatcher, 1);
    dispatcher.offer([deliveryOf(7, 1)]);
    const offered = pending.get(7);
    if (offered) pending.set(7, { ...offered, sealedHeaders: new Uint8Array(1) });
    await whenInFlight(1);
    expect(inFlight.get(7)?.delivery.sealedHeaders).toEqual(new Uint8Array(1));
    endAll();
    await dispatcher.whenIdle();
    expect([owned.size, dispatcher.roomFor(webhookOf(1))]).toEqual([0, 0]);
    clock.advance(15_000);
    expect(dispatcher.roomFor(webhookOf(1))).toBeGreaterThan(0);
  });

  test("is read again when it was on its way: that goes back", async () => {
    let isFirst = true;
    const released: number[] = [];
    const world = createDispatcherWorld({
      table: range(2),
      onLoad() {
        if (isFirst) changeTo(world.dispatcher, 1);
        isFirst = false;
      },
      onRelease: () => void released.push(1),
    });
    await world.dispatcher.start();
    await world.whenInFlight(2);
    expect(released).toHaveLength(1);
    world.endAll();
    await world.dispatcher.whenIdle();
    expect([world.startedKeys.length, world.owned.size]).toEqual([2, 0]);
  });
});
