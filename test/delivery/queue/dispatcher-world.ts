import type { Delivered, Route } from "../../../src/delivery/deliver.ts";
import { createAccountPace } from "../../../src/delivery/queue/account-pace.ts";
import { createDispatcher, type Dispatcher } from "../../../src/delivery/queue/dispatcher.ts";
import type { DueDelivery } from "../../../src/domain/delivery.ts";
import { usualSettings, type WebhookRef } from "../../../src/domain/webhook.ts";
import { type Clock, systemClock } from "../../../src/lib/clock.ts";
import { silentLog } from "../../../src/lib/log.ts";
import type { Store } from "../../../src/store/store.ts";

export const settled: Delivered = {
  kind: "settled",
  answered: true,
  next: { kind: "delivered" },
  connectionFree: null,
};

export const deliveryOf = (deliveryKey: number, webhookKey = 1, payloadBytes = 10): DueDelivery => ({
  deliveryKey,
  tenantKey: webhookKey,
  tenantId: `t${webhookKey}`,
  tier: "free",
  trace: null,
  webhookKey,
  url: `https://shop.example/${webhookKey}`,
  limits: usualSettings,
  sealedHeaders: null,
  eventSeq: deliveryKey,
  eventId: `evt_${deliveryKey}`,
  payload: new Uint8Array(payloadBytes),
  run: 1,
  attemptsInRun: 0,
  attempts: 0,
  replayKey: null,
  replayGroupId: null,
  orderHash: null,
});

/** So many deliveries of one webhook. */
export const range = (count: number, webhookKey = 1) =>
  Array.from({ length: count }, (_, i) => deliveryOf(webhookKey * 1_000_000 + i, webhookKey));

export const webhookOf = (webhookKey: number): WebhookRef => ({ tenantKey: webhookKey, webhookKey });

/** A table of pending deliveries, each of which is somebody's or nobody's, and attempts that end when the test says so. */
export function createDispatcherWorld({
  concurrency = 16,
  servers = 1,
  mayStart = () => true,
  table = [] as DueDelivery[],
  onLoad = () => {},
  onRelease = () => {},
  clock = systemClock,
}: {
  concurrency?: number;
  servers?: number;
  mayStart?: () => boolean;
  table?: DueDelivery[];
  onLoad?: () => void;
  onRelease?: () => void;
  clock?: Clock;
} = {}) {
  const pending = new Map(table.map((delivery) => [delivery.deliveryKey, delivery]));
  const owned = new Set<number>();
  const inFlight = new Map<
    number,
    { delivery: DueDelivery; route: Route; end(result?: Delivered): void; fail(): void }
  >();
  const startedKeys: number[] = [];
  let onStart = () => {};
  let isTableHidden = false;
  const store = {
    async discover() {
      if (isTableHidden) return [];
      const keys = new Set([...pending.values()].map(({ webhookKey }) => webhookKey));
      return [...keys].map((webhookKey) => ({ webhookKey, tenantKey: webhookKey, firstDueAt: 0 }));
    },
    async claim({ webhookKey }: WebhookRef, now: number, limit: number) {
      onLoad();
      const due: DueDelivery[] = [];
      if (isTableHidden) return { due, nextDueAt: null };
      for (const delivery of pending.values()) {
        if (due.length === limit) break;
        if (delivery.webhookKey === webhookKey && !owned.has(delivery.deliveryKey)) due.push(delivery);
      }
      for (const { deliveryKey } of due) owned.add(deliveryKey);
      return { due, nextDueAt: due.length === limit ? now : null };
    },
    async release(deliveries: readonly DueDelivery[]) {
      onRelease();
      for (const { deliveryKey } of deliveries) owned.delete(deliveryKey);
    },
  } as unknown as Store;
  const created = createDispatcher({
    store,
    clock,
    log: silentLog,
    webhookConcurrency: () => concurrency,
    mayStart,
    servers: () => servers,
    pace: createAccountPace(clock, { free: null, pro: null, business: null, enterprise: null }),
    deliver: (delivery, route) =>
      new Promise((resolve, reject) => {
        startedKeys.push(delivery.deliveryKey);
        inFlight.set(delivery.deliveryKey, {
          delivery,
          route,
          fail() {
            inFlight.delete(delivery.deliveryKey);
            reject(new Error("a defect"));
          },
          end(result = settled) {
            inFlight.delete(delivery.deliveryKey);
            if (result.next?.kind === "retry") {
              pending.set(delivery.deliveryKey, { ...delivery, attemptsInRun: delivery.attemptsInRun + 1 });
            } else if (result.kind === "settled") {
              pending.delete(delivery.deliveryKey);
            }
            if (result.kind !== "aborted") owned.delete(delivery.deliveryKey);
            resolve(result);
          },
        });
        onStart();
      }),
  });
  /** As ingestion does it: what is offered is owned. */
  const dispatcher: Dispatcher = Object.create(created, {
    offer: {
      value(deliveries: readonly DueDelivery[]) {
        for (const delivery of deliveries) {
          pending.set(delivery.deliveryKey, delivery);
          owned.add(delivery.deliveryKey);
        }
        created.offer(deliveries);
      },
    },
  });
  /** Resolves when this many attempts are in flight. */
  const whenInFlight = (count: number) =>
    new Promise<void>((resolve) => {
      onStart = () => inFlight.size >= count && resolve();
      onStart();
    });
  const endAll = () => {
    for (const attempt of [...inFlight.values()]) attempt.end();
  };
  /** Starts it; these webhooks have answered before, so they get all the attempts at once that they may. */
  async function start(...answering: number[]) {
    isTableHidden = true;
    await dispatcher.start();
    for (const webhookKey of answering) {
      dispatcher.offer([deliveryOf(-webhookKey, webhookKey)]);
      await whenInFlight(1);
      endAll();
      await dispatcher.whenIdle();
    }
    startedKeys.length = 0;
    isTableHidden = false;
    dispatcher.wake(answering.map(webhookOf));
  }
  return { dispatcher, start, inFlight, startedKeys, pending, owned, whenInFlight, endAll };
}

export type DispatcherWorld = ReturnType<typeof createDispatcherWorld>;
