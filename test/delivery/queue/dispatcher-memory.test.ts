import { describe, expect, test } from "bun:test";
import { createFakeClock } from "../../support/fake-clock.ts";
import { createDispatcherWorld, deliveryOf, range, webhookOf } from "./dispatcher-world.ts";

/** What of a backlog is in memory, and how much of that. */
describe("the dispatcher", () => {
  test("a backlog of a million deliveries stays in the table, but for a bounded window", async () => {
    const { dispatcher, start, whenInFlight } = createDispatcherWorld({ table: range(1_000_000) });
    await start(1);
    await whenInFlight(16);
    expect(dispatcher.held).toBeLessThan(200);
    dispatcher.offer(range(20_000, 2));
    expect(dispatcher.held).toBeLessThan(600);
  });

  test("what waits keeps nothing of its request but the payload", async () => {
    const { dispatcher, inFlight } = createDispatcherWorld();
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
    const { dispatcher, start, whenInFlight } = createDispatcherWorld({ concurrency: 1, table });
    await start(...webhooks);
    await whenInFlight(webhooks.length);
    expect(dispatcher.held).toBeLessThan(4 * 64 + 2 * webhooks.length);
  });

  test.each([
    ["hangs", false],
    ["answers", true],
  ])("a crowd that %s is read as its attempts begin, and leaves room for what is new", async (_, answers) => {
    const clock = createFakeClock();
    const payload = new Uint8Array(2 ** 20);
    const webhooks = Array.from({ length: 500 }, (_, n) => n + 1);
    const table = webhooks.flatMap((key) => range(3, key).map((delivery) => ({ ...delivery, payload })));
    const { dispatcher, startedKeys, endAll } = createDispatcherWorld({ clock, table });
    await dispatcher.start();
    const begun = answers ? table.length : webhooks.length;
    while (startedKeys.length < begun) {
      clock.advance(1);
      for (let turn = 0; turn < 6; turn += 1) await Promise.resolve();
      expect(dispatcher.held - dispatcher.inFlight).toBeLessThan(32);
      expect(dispatcher.roomFor(webhookOf(5_000))).toBeGreaterThan(0);
      if (answers) endAll();
    }
  });
});
