import { describe, expect, test } from "bun:test";
import type { Delivered } from "../../../src/delivery/deliver.ts";
import { createAccountPace } from "../../../src/delivery/queue/account-pace.ts";
import { createDispatcher } from "../../../src/delivery/queue/dispatcher.ts";
import { createWebhookQueue } from "../../../src/delivery/queue/webhook-queue.ts";
import type { DueDelivery } from "../../../src/domain/delivery.ts";
import { systemClock } from "../../../src/lib/clock.ts";
import { createLog } from "../../../src/lib/log.ts";
import type { Store } from "../../../src/store/store.ts";

const webhookKey = 7;

const delivery = (run: number): DueDelivery => ({
  deliveryKey: 1,
  tenantKey: 1,
  tenantId: "t1",
  tier: "free",
  webhookKey,
  url: "https://example.com/",
  eventSeq: 1,
  eventId: "evt_1",
  payload: Buffer.from("{}"),
  run,
  attemptsInRun: 0,
  attempts: run - 1,
  replayKey: null,
  replayGroupId: null,
});

describe("a delivery of which the table has a newer run", () => {
  const queue = () => createWebhookQueue(webhookKey, 1, 16);

  test("goes out as that run while it waits", () => {
    const waiting = queue();
    waiting.addFresh(delivery(1));
    expect(waiting.addStored(delivery(2))).toBe(false);
    expect([waiting.next()?.run, waiting.next()]).toEqual([2, null]);
    expect(waiting.release(1)).toBe(false);
  });

  test("is noted while it is in flight", () => {
    const busy = queue();
    busy.addFresh(delivery(1));
    busy.next();
    expect(busy.addStored(delivery(2))).toBe(false);
    expect([busy.release(1), busy.heldCount]).toEqual([true, 0]);
    busy.addStored(delivery(2));
    busy.next();
    expect(busy.release(1)).toBe(false);
  });

  test("is no newer run when it is read again", () => {
    const busy = queue();
    busy.addFresh(delivery(1));
    busy.next();
    busy.addStored(delivery(1));
    expect(busy.release(1)).toBe(false);
  });
});

test("a replay that is committed between an attempt's settlement and its end is delivered", async () => {
  const table = [delivery(2)];
  const store: Pick<Store, "dueLanes" | "dueDeliveries"> = {
    dueLanes: async () => [],
    dueDeliveries: async () => ({ due: table, nextDueAt: null }),
  };
  const runs: number[] = [];
  const attempts: PromiseWithResolvers<Delivered>[] = [];
  const dispatcher = createDispatcher({
    store: store as Store,
    clock: systemClock,
    log: createLog({ level: "error", format: "json", now: () => 0, out() {} }),
    webhookConcurrency: 16,
    pace: createAccountPace(systemClock, { free: null, pro: null, business: null, enterprise: null }),
    deliver({ run }) {
      runs.push(run);
      const attempt = Promise.withResolvers<Delivered>();
      attempts.push(attempt);
      return attempt.promise;
    },
  });
  const delivered: Delivered = { kind: "settled", answered: true, next: { kind: "delivered" }, connectionFree: null };

  await dispatcher.start();
  dispatcher.offer([delivery(1)]);
  expect(runs).toEqual([1]);
  // The first run is settled in the table, the second one is there; the attempt's promise has not resolved yet.
  dispatcher.wake([webhookKey]);
  await new Promise((resolve) => setImmediate(resolve));
  attempts[0]?.resolve(delivered);
  await new Promise((resolve) => setImmediate(resolve));
  expect(runs).toEqual([1, 2]);
  table.pop();
  attempts[1]?.resolve(delivered);
  await dispatcher.whenIdle();
  expect(runs).toEqual([1, 2]);
});
