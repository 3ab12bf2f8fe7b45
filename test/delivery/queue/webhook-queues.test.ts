import { describe, expect, test } from "bun:test";
import { createWebhookQueues } from "../../../src/delivery/queue/webhook-queues.ts";

/** Counts how often a queue is asked whether it is idle: that is what a sweep takes. */
function setUp() {
  const queues = createWebhookQueues({ webhookConcurrency: () => 16, servers: () => 1 });
  let asked = 0;
  return {
    queues,
    get asked() {
      return asked;
    },
    /** Makes queues for so many more webhooks. */
    add(count: number, { pending }: { pending: boolean }) {
      const from = queues.all().length + 1;
      for (let webhookKey = from; webhookKey < from + count; webhookKey += 1) {
        const queue = queues.of({ webhookKey, tenantKey: webhookKey });
        const { isIdle } = queue;
        queue.isIdle = () => {
          asked += 1;
          return isIdle();
        };
        if (pending) queue.dueAt = 0;
      }
    },
  };
}

describe("the queues of all webhooks", () => {
  test("are kept up to 20,000; then a tenth of them is forgotten, the oldest idle ones first", () => {
    const { queues, add } = setUp();
    add(5_000, { pending: true });
    add(15_000, { pending: false });
    expect(queues.all()).toHaveLength(20_000);
    add(1, { pending: false });
    expect(queues.all()).toHaveLength(18_001);
    const kept = [5_000, 5_001, 7_000, 7_001].map((key) => queues.get(key) !== undefined);
    expect(kept).toEqual([true, false, false, true]);
  });

  test("stay while something is pending, however many there are, and are rarely looked through in vain", () => {
    const world = setUp();
    world.add(100_000, { pending: true });
    expect(world.queues.all()).toHaveLength(100_000);
    expect(world.asked).toBeLessThan(11 * 100_000);
  });

  test("are back at 18,000 soon after a crowd of them has become idle", () => {
    const { queues, add } = setUp();
    add(50_000, { pending: true });
    for (const queue of queues.all()) queue.dueAt = null;
    add(5_000, { pending: false });
    expect(queues.all().length).toBeLessThan(18_000 + 5_000);
  });
});
