import { describe, expect, test } from "bun:test";
import { createAlarm } from "../../../src/delivery/queue/alarm.ts";
import { createWebhookQueue } from "../../../src/delivery/queue/webhook-queue.ts";
import { createFakeClock } from "../../support/fake-clock.ts";

function setUp() {
  const clock = createFakeClock();
  const rung: number[] = [];
  const alarm = createAlarm({
    clock,
    onDue: ({ webhookKey }) => void rung.push(webhookKey),
    onRing: () => alarm.arm(null),
  });
  /** A webhook whose next delivery is due in so many ms. */
  const due = (webhookKey: number, inMs: number) => {
    const queue = createWebhookQueue(webhookKey, 1, () => 16);
    queue.dueAt = clock.now() + inMs;
    alarm.set(queue, queue.dueAt);
    alarm.arm(null);
  };
  return { clock, rung, due, alarm };
}

describe("the alarm", () => {
  test("rings for each webhook at its time, with one timer for all", () => {
    const { clock, rung, due } = setUp();
    due(1, 500);
    due(2, 200);
    expect(clock.timers).toBe(1);
    clock.advance(199);
    expect(rung).toEqual([]);
    clock.advance(1);
    expect(rung).toEqual([2]);
    clock.advance(300);
    expect(rung).toEqual([2, 1]);
    expect(clock.timers).toBe(0);
  });

  test("waits for as long as it takes", () => {
    const { clock, rung, due } = setUp();
    due(1, 36_000_000);
    clock.advance(35_999_999);
    expect(rung).toEqual([]);
    clock.advance(1);
    expect(rung).toEqual([1]);
  });

  test("has what is far in the future only once, however often something nearer comes before it", () => {
    const { clock, rung, alarm } = setUp();
    const queue = createWebhookQueue(1, 1, () => 16);
    const due = (at: number) => {
      queue.dueAt = at;
      alarm.set(queue, at);
      alarm.arm(null);
    };
    const far = clock.now() + 36_000_000;
    due(far);
    for (let n = 1; n <= 100; n += 1) {
      due(clock.now() + 5_000);
      clock.advance(5_000);
      due(far);
      expect(queue.alarms).toEqual([far]);
    }
    expect(rung).toHaveLength(100);
    clock.advance(far - clock.now());
    // A time that was in twice would ring twice.
    expect([rung.length, queue.alarms]).toEqual([101, []]);
  });

  test("notices within a minute that the clock was set ahead", () => {
    const { clock, rung, due } = setUp();
    due(1, 36_000_000);
    clock.step(36_000_000);
    clock.advance(60_000);
    expect(rung).toEqual([1]);
  });

  test("does not ring early when the clock was set back", () => {
    const { clock, rung, due } = setUp();
    due(1, 5_000);
    clock.step(-3_000);
    clock.advance(7_999);
    expect(rung).toEqual([]);
    clock.advance(1);
    expect(rung).toEqual([1]);
  });
});
