import { describe, expect, test } from "bun:test";
import { createFakeClock } from "../../support/fake-clock.ts";
import {
  createDispatcherWorld,
  type DispatcherWorld,
  deliveryOf,
  range,
  settled,
  webhookOf,
} from "./dispatcher-world.ts";

/** What it owns goes out once, or is given back. */
describe("the dispatcher", () => {
  test("a delivery that is owned is not claimed a second time", async () => {
    const table = range(40);
    const { dispatcher, start, startedKeys, endAll, whenInFlight } = createDispatcherWorld({
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
    const { dispatcher, inFlight, pending, whenInFlight } = createDispatcherWorld({ concurrency: 1 });
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
    const { dispatcher, inFlight, startedKeys, pending, whenInFlight } = createDispatcherWorld();
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

  const turnedAway: readonly [string, number, (world: DispatcherWorld) => void][] = [
    ["nothing is wrong", 3, () => {}],
    ["its account pauses", 1, ({ dispatcher }) => dispatcher.pauseTenant(1)],
    ["its webhook is removed", 1, ({ dispatcher }) => dispatcher.removeWebhooks([1])],
    ["its account is deleted", 1, ({ dispatcher }) => dispatcher.stopTenant(1)],
    ["the program stops", 1, ({ dispatcher }) => void dispatcher.stop(10_000)],
    ["its attempt was broken off", 2, ({ inFlight }) => inFlight.get(1)?.end({ ...settled, kind: "aborted" })],
    ["its attempt is broken", 2, ({ inFlight }) => inFlight.get(1)?.fail()],
  ];
  test.each(turnedAway)("gives back what will not go out: when %s, of three %i are left", async (_, left, happen) => {
    const world = createDispatcherWorld({ concurrency: 1, clock: createFakeClock() });
    await world.dispatcher.start();
    world.dispatcher.offer([1, 2, 3].map((key) => deliveryOf(key)));
    world.dispatcher.hold(true);
    happen(world);
    await new Promise((resolve) => setImmediate(resolve));
    expect(world.owned.size).toBe(left);
  });

  test("gives back what is offered beyond its window, or while it holds back, pauses or stops", async () => {
    const { dispatcher, start, owned, whenInFlight } = createDispatcherWorld();
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
    const { dispatcher, start } = createDispatcherWorld();
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
    const { dispatcher, owned, startedKeys } = createDispatcherWorld({
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
