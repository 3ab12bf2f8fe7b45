import { describe, expect, test } from "bun:test";
import { createDispatcherWorld, deliveryOf, range } from "./dispatcher-world.ts";

/** How it starts, stands still and stops; the files beside have what it does meanwhile, one topic each. */
describe("the dispatcher", () => {
  test("sends a fresh delivery at once, without a look at the table", async () => {
    const { dispatcher, startedKeys, endAll } = createDispatcherWorld();
    await dispatcher.start();
    dispatcher.offer([deliveryOf(1)]);
    expect(startedKeys).toEqual([1]);
    endAll();
    await dispatcher.whenIdle();
  });

  test("finds everything pending at its start", async () => {
    const { dispatcher, pending, endAll, whenInFlight } = createDispatcherWorld({
      table: [...range(3, 1), ...range(2, 2)],
    });
    await dispatcher.start();
    await whenInFlight(5);
    endAll();
    await dispatcher.whenIdle();
    expect(pending.size).toBe(0);
  });

  test("nothing starts while the store takes no writes", async () => {
    const { dispatcher, start, inFlight } = createDispatcherWorld();
    await start(1);
    dispatcher.stall(true);
    dispatcher.offer(range(3));
    expect(inFlight.size).toBe(0);
    dispatcher.stall(false);
    expect(inFlight.size).toBe(3);
  });

  test("stopping waits for what is in flight and starts nothing more", async () => {
    const { dispatcher, start, startedKeys, endAll } = createDispatcherWorld({ concurrency: 2 });
    await start(1);
    dispatcher.offer(range(5));
    const stopped = dispatcher.stop(10_000);
    endAll();
    expect(await stopped).toBe(0);
    expect(startedKeys).toHaveLength(2);
  });

  test("stopping gives up on attempts that do not end in time and counts them", async () => {
    const { dispatcher, start } = createDispatcherWorld();
    await start(1);
    dispatcher.offer(range(2));
    expect(await dispatcher.stop(10)).toBe(2);
  });
});
