import { describe, expect, test } from "bun:test";
import type { Delivered } from "../../../src/delivery/deliver.ts";
import { silentYoungLimit } from "../../../src/delivery/queue/admission.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { createDispatcherWorld, deliveryOf, range, settled } from "./dispatcher-world.ts";

/** Whose turn it is, and how many attempts there are at a time. */
describe("the dispatcher", () => {
  test("makes no more attempts to one webhook at a time than it may", async () => {
    const { dispatcher, start, inFlight } = createDispatcherWorld({ concurrency: 4 });
    await start(1);
    dispatcher.offer(range(10));
    expect(inFlight.size).toBe(4);
  });

  test("says of an attempt that something waits for it while its webhook has more to send than it may, or for its line", async () => {
    const { dispatcher, start, inFlight } = createDispatcherWorld({ concurrency: 2 });
    await start(1);
    // The table is looked at, and has nothing.
    await new Promise<void>((resolve) => setImmediate(resolve));
    const isAwaited = (key: number) => inFlight.get(key)?.route.isAwaited();
    dispatcher.offer([deliveryOf(1), deliveryOf(2)]);
    expect(isAwaited(1)).toBe(false);
    dispatcher.offer([deliveryOf(3)]);
    expect(isAwaited(1)).toBe(true);
    dispatcher.offer([{ ...deliveryOf(4, 2), orderHash: 5 }]);
    expect([isAwaited(4), inFlight.size]).toEqual([true, 3]);
  });

  test("says of an attempt that it is fresh if it came straight from its commit, to a webhook that answers", async () => {
    const { dispatcher, start, inFlight } = createDispatcherWorld();
    await start();
    const unanswered: Delivered = { ...settled, answered: false };
    const isFresh: (boolean | undefined)[] = [];
    for (const [i, result] of [settled, unanswered, settled, settled].entries()) {
      dispatcher.offer([deliveryOf(i)]);
      isFresh.push(inFlight.get(i)?.route.isFresh);
      inFlight.get(i)?.end(result);
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
    dispatcher.offer([deliveryOf(5)]);
    isFresh.push(inFlight.get(5)?.route.isFresh);
    expect(isFresh).toEqual([false, true, false, true, true]);
  });

  test("makes one attempt at a time after no answer, and all again after the next answer", async () => {
    const { dispatcher, start, inFlight, whenInFlight } = createDispatcherWorld({ concurrency: 4 });
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
    const { dispatcher, start, inFlight, whenInFlight } = createDispatcherWorld({ concurrency: 1_000, clock });
    await start();
    dispatcher.offer(Array.from({ length: 300 }, (_, i) => deliveryOf(i + 1, i < 250 ? 1 : 2)));
    // Turns of those that have not answered come with the time, and in less of it than makes an attempt an old one.
    while (inFlight.size < silentYoungLimit) clock.advance(1);
    inFlight.get(1)?.end();
    await whenInFlight(299);
  });

  test("serves webhooks in turn, so a backlog of one does not hold up another", async () => {
    const { dispatcher, start, startedKeys, whenInFlight } = createDispatcherWorld({
      concurrency: 100,
      table: range(2000, 1),
    });
    await start(1);
    await whenInFlight(100);
    dispatcher.offer([deliveryOf(7, 2)]);
    expect(startedKeys.at(-1)).toBe(7);
  });

  test("what is fresh and what is stored take turns", async () => {
    const { dispatcher, startedKeys, inFlight, whenInFlight } = createDispatcherWorld({
      concurrency: 1,
      table: range(50, 1),
    });
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

  test("a crowd of dead webhooks is served a few at a time, and holds up a new one for less than a second", async () => {
    const clock = createFakeClock();
    const crowd = Array.from({ length: 1000 }, (_, n) => n + 1);
    const { dispatcher, inFlight, startedKeys } = createDispatcherWorld({
      table: crowd.flatMap((key) => range(40, key)),
      clock,
    });
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
});
