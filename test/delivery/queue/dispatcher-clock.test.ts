import { describe, expect, test } from "bun:test";
import type { Delivered } from "../../../src/delivery/deliver.ts";
import { silentYoungLimit, youngMs } from "../../../src/delivery/queue/admission.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { createDispatcherWorld, deliveryOf, range, settled } from "./dispatcher-world.ts";

/** When a delivery is due, also by a clock that is set back. */
describe("the dispatcher", () => {
  test("a retry is made when its time has come", async () => {
    const { dispatcher, inFlight, startedKeys, whenInFlight } = createDispatcherWorld({ table: [deliveryOf(1)] });
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
    const { dispatcher, inFlight } = createDispatcherWorld({
      table: range(16),
      clock,
      onLoad: () => clock.step(-60_000),
    });
    await dispatcher.start();
    for (let ms = 0; ms < 100; ms += 1) {
      clock.advance(1);
      for (let turn = 0; turn < 6; turn += 1) await Promise.resolve();
    }
    expect(inFlight.size).toBe(16);
  });

  test("a retry is not forgotten when the clock was set back while it waited for a place", async () => {
    const clock = createFakeClock();
    const { dispatcher, start, inFlight, startedKeys } = createDispatcherWorld({ concurrency: 1, clock });
    await start();
    const noAnswer: Delivered = { ...settled, answered: false };
    const settle = async () => {
      for (let turn = 0; turn < 6; turn += 1) await Promise.resolve();
    };
    dispatcher.offer([deliveryOf(1)]);
    inFlight.get(1)?.end({ ...noAnswer, next: { kind: "retry", at: clock.now() + 1_000 } });
    await settle();
    // When the time comes, others hang in all the places that such a webhook may have.
    clock.advance(1_000 - youngMs / 2);
    dispatcher.offer(Array.from({ length: silentYoungLimit }, (_, n) => deliveryOf(n + 2, n + 2)));
    clock.advance(youngMs / 2);
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
    const { dispatcher, inFlight, startedKeys, whenInFlight } = createDispatcherWorld({ concurrency: 1, clock });
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
});
