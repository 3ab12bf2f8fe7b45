import { describe, expect, test } from "bun:test";
import { createDispatcherWorld, deliveryOf, range } from "./dispatcher-world.ts";

/** What the end of a webhook, and the end or the pause of an account, does to what is queued and in flight. */
describe("the dispatcher", () => {
  test("no attempt starts to a webhook that was removed; one in flight goes on", async () => {
    const { dispatcher, inFlight, startedKeys } = createDispatcherWorld({ concurrency: 1 });
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
    const { dispatcher, startedKeys } = createDispatcherWorld();
    await dispatcher.start();
    dispatcher.removeWebhooks([1]);
    dispatcher.stopTenant(2);
    dispatcher.offer([...range(2, 1), ...range(2, 2), deliveryOf(7, 3)]);
    expect(startedKeys).toEqual([7]);
  });

  test("what is offered after its webhook was disabled stays in the table, and goes out when that is enabled", async () => {
    const world = createDispatcherWorld({ concurrency: 1, table: range(2) });
    const { dispatcher, startedKeys, whenInFlight, owned, endAll } = world;
    await dispatcher.start();
    await whenInFlight(1);
    dispatcher.disableWebhook(1);
    dispatcher.offer([deliveryOf(7)]);
    expect([startedKeys.length, dispatcher.roomFor({ tenantKey: 1, webhookKey: 1 })]).toEqual([1, 0]);
    expect([...owned]).not.toContain(7);
    dispatcher.enableWebhook({ tenantKey: 1, webhookKey: 1 });
    expect(startedKeys).toHaveLength(1);
    endAll();
    await whenInFlight(1);
    expect(startedKeys).toHaveLength(2);
  });

  test("what the table had for a webhook that was removed meanwhile is let go", async () => {
    const world = createDispatcherWorld({ table: range(3), onLoad: () => world.dispatcher.removeWebhooks([1]) });
    const { dispatcher, startedKeys, owned } = world;
    await dispatcher.start();
    await dispatcher.whenIdle();
    expect([startedKeys, dispatcher.held, owned.size]).toEqual([[], 0, 0]);
  });

  test("no attempt of a cancelled replay starts; one in flight goes on, and so does what waits beside it", async () => {
    const { dispatcher, inFlight, startedKeys, owned, endAll } = createDispatcherWorld({ concurrency: 1 });
    await dispatcher.start();
    const replayed = range(3).map((delivery) => ({ ...delivery, replayKey: 7 }));
    dispatcher.offer([...replayed, { ...deliveryOf(9), replayKey: 8 }]);
    dispatcher.cancelReplay(1, 7);
    const [attempt] = [...inFlight.values()];
    expect([attempt?.route.signal.aborted, attempt?.route.isClosed()]).toEqual([false, true]);
    const begun = startedKeys.length;
    await Promise.resolve();
    expect([...owned].sort()).toEqual([attempt?.delivery.deliveryKey ?? 0, 9].sort());
    endAll();
    expect(startedKeys.slice(begun).every((key) => key === 9)).toBe(true);
  });

  test("the attempts of a deleted account are broken off", async () => {
    const { dispatcher, start, inFlight } = createDispatcherWorld();
    await start(5);
    dispatcher.offer(range(3, 5));
    dispatcher.stopTenant(5);
    expect([...inFlight.values()].map(({ route }) => route.signal.aborted)).toEqual([true, true, true]);
  });

  test("those to a webhook that was removed before are broken off as well", async () => {
    const { dispatcher, start, inFlight } = createDispatcherWorld();
    await start(5);
    dispatcher.offer(range(2, 5));
    dispatcher.removeWebhooks([5]);
    dispatcher.stopTenant(5);
    expect([...inFlight.values()].map(({ route }) => route.signal.aborted)).toEqual([true, true]);
  });

  test("a paused account waits, and goes on where it was", async () => {
    const { dispatcher, inFlight, endAll, pending, whenInFlight } = createDispatcherWorld({ table: range(4, 5) });
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
});
