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

  test("lets go of all that waits", () => {
    const queue = createWebhookQueue(1, 1, () => 16);
    queue.addFresh(delivery(1));
    queue.addStored(delivery(2));
    expect(queue.waiting).toBe(2);
    expect(queue.clear().map(({ deliveryKey }) => deliveryKey)).toEqual([1, 2]);
    expect([queue.waiting, queue.next(), queue.isIdle()]).toEqual([0, null, true]);
  });
});
