import { describe, expect, test } from "bun:test";
import { createAdmission, type Line, silentYoungLimit, youngMs } from "../../../src/delivery/queue/admission.ts";
import { createReadyWebhooks } from "../../../src/delivery/queue/ready-webhooks.ts";
import { createWebhookQueue, type WebhookQueue } from "../../../src/delivery/queue/webhook-queue.ts";
import { dueDelivery } from "../../support/due-delivery.ts";
import { createFakeClock } from "../../support/fake-clock.ts";

/** Webhooks that are ready, which start nothing and are not ready again unless a test says so. */
function setUp() {
  const clock = createFakeClock();
  const admission = createAdmission(clock);
  const ready = createReadyWebhooks(clock, admission);
  const served: number[] = [];
  return {
    clock,
    admission,
    ready,
    served,
    webhook(key: number, answered?: boolean): WebhookQueue {
      const queue = createWebhookQueue(key, 1, () => 1);
      if (answered !== undefined) queue.answered(answered, clock.monotonicMs());
      return queue;
    },
    serve(start: (queue: WebhookQueue, line: Line) => boolean = () => true) {
      ready.serve((queue, line) => {
        served.push(queue.webhookKey);
        return start(queue, line);
      });
    },
  };
}

describe("webhooks that are ready", () => {
  test("have their turn by what is known of them, and else as they came", () => {
    const { ready, webhook, serve, served } = setUp();
    for (const queue of [webhook(1, false), webhook(2), webhook(3, true), webhook(4), webhook(5, true)])
      ready.add(queue);
    serve();
    expect(served).toEqual([3, 5, 2, 4, 1]);
    expect(ready.isEmpty()).toBe(true);
  });

  test("are ready once, however often they are added", () => {
    const { ready, webhook, serve, served } = setUp();
    const queue = webhook(1);
    ready.add(queue);
    ready.add(queue);
    serve();
    expect(served).toEqual([1]);
  });

  test("go before the others of their kind when they have just been read from the table", () => {
    const { ready, webhook, serve, served } = setUp();
    for (const queue of [webhook(1, true), webhook(2), webhook(3)]) ready.add(queue);
    const read = webhook(4);
    ready.addFirst(read);
    ready.addFirst(read);
    serve();
    expect(served).toEqual([1, 4, 2, 3]);
  });

  test("have their turn alternately when they have something fresh and when they only have a backlog", () => {
    const { ready, webhook, serve, served } = setUp();
    const backlogs = [1, 2, 3, 4].map((key) => webhook(key, true));
    const fresh = [11, 12].map((key) => webhook(key, true));
    for (const queue of backlogs) queue.addStored(dueDelivery());
    for (const queue of fresh) queue.addFresh(dueDelivery());
    for (const queue of [...backlogs, ...fresh]) ready.add(queue);
    serve();
    expect(served).toEqual([11, 1, 12, 2, 3, 4]);
  });

  test("wait no longer among the backlogs when something fresh has come", () => {
    const { ready, webhook, serve, served } = setUp();
    const backlogs = [1, 2, 3, 4].map((key) => webhook(key, true));
    for (const queue of backlogs) {
      queue.addStored(dueDelivery());
      ready.add(queue);
    }
    backlogs[3]?.addFresh(dueDelivery());
    ready.add(backlogs[3] as WebhookQueue);
    serve();
    expect(served).toEqual([4, 1, 2, 3]);
  });

  test("with something fresh have their turn when backlogs have no place left", () => {
    const { clock, admission, ready, webhook, serve, served } = setUp();
    for (let ms = 0; ms < 2_000; ms += 1) {
      clock.advance(1);
      if (ms % 100 === 0) admission.leave(admission.enter("fresh"));
      admission.heed({ attempts: 1, ownMs: 130 });
    }
    while (admission.hasRoom("backlog")) admission.enter("backlog");
    const [backlog, fresh] = [webhook(1, true), webhook(2, true)];
    backlog.addStored(dueDelivery());
    fresh.addFresh(dueDelivery());
    ready.add(backlog);
    ready.add(fresh);
    serve();
    expect(served).toEqual([2]);
    expect(ready.isEmpty()).toBe(false);
  });

  test("have one attempt each in turn", () => {
    const { ready, webhook, serve, served } = setUp();
    for (const queue of [webhook(1, true), webhook(2, true)]) ready.add(queue);
    serve((queue) => {
      if (served.length <= 4) ready.add(queue);
      return true;
    });
    expect(served).toEqual([1, 2, 1, 2, 1, 2]);
  });

  test("go on waiting among their new like when an attempt has told more of them", () => {
    const { ready, webhook, serve, served } = setUp();
    const [silent, other] = [webhook(1, false), webhook(2, false)];
    for (const queue of [silent, other, webhook(3)]) ready.add(queue);
    ready.learn(other, true);
    serve();
    expect(served).toEqual([2, 3, 1]);
  });

  test("that let attempts wait for long come after those that answer, until they answer", () => {
    const { clock, ready, webhook, serve, served } = setUp();
    const [hanging, healthy, other] = [webhook(1, true), webhook(2, true), webhook(3, true)];
    for (const queue of [hanging, healthy, other]) ready.add(queue);
    hanging.enter(clock.monotonicMs());
    clock.advance(youngMs);
    serve();
    expect(served).toEqual([2, 3, 1]);

    for (const queue of [hanging, webhook(4), healthy]) ready.add(queue);
    ready.learn(hanging, true);
    serve();
    expect(served.slice(3)).toEqual([2, 1, 4]);
  });

  test("that answer wait for two waves of attempts at most when a crowd of their like hangs all at once", () => {
    const { clock, admission, ready, webhook } = setUp();
    const healthy = webhook(0, true);
    const turns: number[] = [];
    for (let key = 1; key <= 600; key += 1) ready.add(webhook(key, true));
    const start = (queue: WebhookQueue, line: Line) => {
      const now = clock.monotonicMs();
      const place = admission.enter(line);
      queue.enter(now);
      if (queue === healthy) {
        admission.leave(place);
        queue.answered(true, now);
        queue.leave();
        turns.push(now);
      } else if (queue.inFlight < 16) ready.add(queue);
      return true;
    };
    const startedAt = clock.monotonicMs();
    for (let ms = 0; ms <= 5_000; ms += 10) {
      ready.add(healthy);
      ready.serve(start);
      clock.advance(10);
    }
    const waits = turns.map((at, i) => at - (turns[i - 1] ?? startedAt));
    expect(Math.max(...waits)).toBeLessThanOrEqual(2 * youngMs + 10);
    expect(waits.filter((wait) => wait > 10).length).toBeLessThanOrEqual(2);
  });

  test("tell how many fresh deliveries wait for nothing but a place: those of webhooks that answer", () => {
    const { ready, webhook, serve } = setUp();
    const queues = [webhook(1, true), webhook(2, true), webhook(3, false), webhook(4)];
    for (const queue of queues) {
      queue.addFresh(dueDelivery());
      queue.addStored(dueDelivery());
      ready.add(queue);
    }
    queues[0]?.addFresh(dueDelivery());
    expect(ready.waitingForPlace).toBe(3);
    serve();
    expect(ready.waitingForPlace).toBe(0);
  });

  test("eight in a row have their turn when they have not answered, and what had nothing to start is not counted", () => {
    const { clock, ready, webhook, serve, served } = setUp();
    for (let key = 1; key <= 20; key += 1) ready.add(webhook(key));
    serve((queue) => queue.webhookKey > 3);
    expect(served).toHaveLength(3 + 8);
    expect(ready.nextTurnAt()).toBe(clock.now() + 1);
    clock.advance(1);
    serve();
    expect(served).toHaveLength(3 + 8 + 8);
  });

  test("that have not answered leave others a millisecond after eight turns, however long those took", () => {
    const { clock, ready, webhook, serve, served } = setUp();
    for (let key = 1; key <= 20; key += 1) ready.add(webhook(key));
    const slowly = () => {
      clock.advance(0.3);
      return true;
    };
    serve(slowly);
    expect(served).toHaveLength(8);
    clock.advance(0.9);
    serve(slowly);
    expect(served).toHaveLength(8);
    clock.advance(0.1);
    serve(slowly);
    expect(served).toHaveLength(16);
  });

  test("wait until attempts that take up the room are no longer young", () => {
    const { clock, admission, ready, webhook, serve, served } = setUp();
    for (let n = 0; n < silentYoungLimit; n += 1) admission.enter("silent");
    ready.add(webhook(1, false));
    serve();
    expect(served).toEqual([]);
    expect(ready.nextTurnAt()).toBe(clock.now() + youngMs);
    clock.advance(youngMs);
    serve();
    expect(served).toEqual([1]);
    expect(ready.nextTurnAt()).toBeNull();
  });
});
