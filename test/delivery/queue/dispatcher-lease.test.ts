import { describe, expect, test } from "bun:test";
import type { Dispatcher } from "../../../src/delivery/queue/dispatcher.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { createDispatcherWorld, deliveryOf, range, webhookOf } from "./dispatcher-world.ts";

/** What the dispatcher does as one of several that share the table. */
describe("the dispatcher of a node", () => {
  test("starts nothing while its lease is in doubt, and goes on once that is confirmed", async () => {
    let mayStart = true;
    const { dispatcher, inFlight, startedKeys, whenInFlight } = createDispatcherWorld({
      concurrency: 1,
      mayStart: () => mayStart,
    });
    await dispatcher.start();
    dispatcher.offer(range(3));
    expect(startedKeys).toHaveLength(1);
    mayStart = false;
    expect([...inFlight.values()][0]?.route.isClosed()).toBe(true);
    [...inFlight.values()][0]?.end();
    await Bun.sleep(0);
    expect(startedKeys).toHaveLength(1);
    mayStart = true;
    dispatcher.wake([]);
    await whenInFlight(1);
    expect(startedKeys).toHaveLength(2);
  });

  test("that was declared dead breaks off what is in flight, and gives nothing back that others own by now", async () => {
    let releases = 0;
    const { dispatcher, inFlight, startedKeys, owned } = createDispatcherWorld({
      concurrency: 2,
      onRelease: () => (releases += 1),
    });
    await dispatcher.start();
    dispatcher.offer(range(5));
    const attempts = [...inFlight.values()];
    expect(dispatcher.surrender()).toBe(5);
    expect(attempts.map(({ route }) => route.signal.aborted)).toEqual([true, true]);
    expect(dispatcher.held).toBe(2);
    for (const attempt of attempts) attempt.end({ kind: "aborted", answered: false, next: null, connectionFree: null });
    await dispatcher.whenIdle();
    expect([dispatcher.held, releases, startedKeys.length, owned.size]).toEqual([0, 0, 2, 5]);
  });

  test("finds anew what it surrendered, while the attempts of before still end", async () => {
    const world = createDispatcherWorld({ concurrency: 2 });
    const { dispatcher, inFlight, startedKeys, owned, whenInFlight } = world;
    await dispatcher.start();
    dispatcher.offer([deliveryOf(1)]);
    const before = inFlight.get(1);
    dispatcher.surrender();
    owned.clear();
    inFlight.delete(1);
    dispatcher.look();
    await whenInFlight(1);
    expect(startedKeys).toEqual([1, 1]);
    before?.end({ kind: "aborted", answered: false, next: null, connectionFree: null });
    await Bun.sleep(0);
    dispatcher.offer([deliveryOf(2)]);
    expect(startedKeys).toEqual([1, 1, 2]);
  });

  test.each<[what: string, stop: (dispatcher: Dispatcher) => void]>([
    ["account was resumed", (dispatcher) => dispatcher.pauseTenant(1)],
    ["webhook was enabled", (dispatcher) => dispatcher.disableWebhook(1)],
  ])("delivers again once it has a lease, though it was not told that the %s meanwhile", async (_, stop) => {
    const { dispatcher, startedKeys } = createDispatcherWorld({ concurrency: 2 });
    await dispatcher.start();
    stop(dispatcher);
    expect(dispatcher.roomFor(webhookOf(1))).toBe(0);
    dispatcher.surrender();
    dispatcher.offer([deliveryOf(1)]);
    expect(startedKeys).toEqual([1]);
  });

  test("does not try again to give back what it could not before it was declared dead", async () => {
    const given: number[] = [];
    const clock = createFakeClock();
    const world = createDispatcherWorld({
      clock,
      concurrency: 1,
      onRelease() {
        given.push(1);
        throw new Error("the table does not answer");
      },
    });
    await world.dispatcher.start();
    world.dispatcher.offer(range(2));
    world.dispatcher.pauseTenant(1);
    await Bun.sleep(0);
    expect(given).toHaveLength(1);
    world.dispatcher.surrender();
    clock.advance(60_000);
    await Bun.sleep(0);
    expect(given).toHaveLength(1);
  });
});
