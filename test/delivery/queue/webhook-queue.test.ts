import { describe, expect, test } from "bun:test";
import { createWebhookQueue } from "../../../src/delivery/queue/webhook-queue.ts";
import { dueDelivery } from "../../support/due-delivery.ts";

const delivery = (deliveryKey: number) => dueDelivery({ deliveryKey });

describe("the queue of a webhook", () => {
  test("gives what is fresh and what is stored in turn", () => {
    const queue = createWebhookQueue(1, 1, () => 16);
    for (const key of [1, 2, 3]) queue.addFresh(delivery(key));
    for (const key of [11, 12]) queue.addStored(delivery(key));
    const given = Array.from({ length: 6 }, () => queue.next()?.deliveryKey ?? null);
    expect(given).toEqual([1, 11, 2, 12, 3, null]);
  });

  test("counts as silent while attempts have waited for a quarter of a second without any answer", () => {
    const queue = createWebhookQueue(1, 1, () => 16);
    expect(queue.standingAt(0)).toBe("untried");
    queue.enter(0);
    expect(queue.standingAt(0)).toBe("silent");
    queue.answered(true, 10);
    queue.leave();
    expect(queue.standingAt(10_000)).toBe("proven");
    queue.enter(10_000);
    queue.enter(10_100);
    expect(queue.standingAt(10_249)).toBe("proven");
    expect(queue.standingAt(10_250)).toBe("silent");
    queue.answered(true, 10_300);
    queue.leave();
    expect(queue.standingAt(10_549)).toBe("proven");
    expect(queue.standingAt(10_550)).toBe("silent");
  });

  test("lets go of all that waits", () => {
    const queue = createWebhookQueue(1, 1, () => 16);
    queue.addFresh(delivery(1));
    queue.addStored(delivery(2));
    expect(queue.waiting).toBe(2);
    expect(queue.clear().map(({ deliveryKey }) => deliveryKey)).toEqual([1, 2]);
    expect([queue.waiting, queue.next(), queue.isIdle()]).toEqual([0, null, true]);
  });
});
