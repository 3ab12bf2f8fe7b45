import type { Delivered } from "../../../src/delivery/deliver.ts";
import { createAccountPace, type DeliveryRates } from "../../../src/delivery/queue/account-pace.ts";
import { createDispatcher } from "../../../src/delivery/queue/dispatcher.ts";
import type { DueDelivery } from "../../../src/domain/delivery.ts";
import type { Tier } from "../../../src/domain/tenant.ts";
import { noLimits, type WebhookLimits, type WebhookRef } from "../../../src/domain/webhook.ts";
import { silentLog } from "../../../src/lib/log.ts";
import type { Store } from "../../../src/store/store.ts";
import { dueDelivery } from "../../support/due-delivery.ts";
import { createFakeClock } from "../../support/fake-clock.ts";

export const rates: DeliveryRates = { free: 100, pro: 1_000, business: 1, enterprise: null };
const settled: Delivered = { kind: "settled", answered: true, next: { kind: "delivered" }, connectionFree: null };
const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

/** Backlogs in a table, and receivers that answer at once. A webhook's account is its hundreds. */
export function createPacedWorld({ servers = 1 }: { servers?: number } = {}) {
  const clock = createFakeClock();
  const table = new Map<number, DueDelivery>();
  const owned = new Set<number>();
  const tiers = new Map<number, Tier>();
  const limits = new Map<number, WebhookLimits>();
  const started: { webhookKey: number; deliveryKey: number; at: number }[] = [];
  const inFlight = new Map<number, number>();
  const most = new Map<number, number>();
  let loads = 0;
  let lastKey = 0;
  let answered: Promise<void> = Promise.resolve();
  const accountOf = (webhookKey: number) => Math.floor(webhookKey / 100);
  const tierOf = (tenantKey: number) => tiers.get(tenantKey) ?? "free";
  const limitsOfWebhook = (webhookKey: number) => limits.get(webhookKey) ?? noLimits;
  const store = {
    async discover() {
      const keys = new Set([...table.values()].map(({ webhookKey }) => webhookKey));
      return [...keys].map((webhookKey) => ({ webhookKey, tenantKey: accountOf(webhookKey), firstDueAt: 0 }));
    },
    async claim({ webhookKey }: WebhookRef, now: number, limit: number) {
      loads += 1;
      const all = [...table.values()].filter(
        (delivery) => delivery.webhookKey === webhookKey && !owned.has(delivery.deliveryKey),
      );
      const due = all.slice(0, limit).map((delivery) => ({
        ...delivery,
        tier: tierOf(delivery.tenantKey),
        limits: limitsOfWebhook(webhookKey),
      }));
      for (const { deliveryKey } of due) owned.add(deliveryKey);
      return { due, nextDueAt: all.length > limit ? now : null };
    },
    async release(deliveries: readonly DueDelivery[]) {
      for (const { deliveryKey } of deliveries) owned.delete(deliveryKey);
    },
  } as unknown as Store;
  const pace = createAccountPace(clock, rates);
  const dispatcher = createDispatcher({
    store,
    clock,
    log: silentLog,
    webhookConcurrency: () => 16,
    mayStart: () => true,
    servers: () => servers,
    pace,
    async deliver({ webhookKey, deliveryKey }) {
      started.push({ webhookKey, deliveryKey, at: clock.monotonicMs() });
      const now = (inFlight.get(webhookKey) ?? 0) + 1;
      inFlight.set(webhookKey, now);
      most.set(webhookKey, Math.max(now, most.get(webhookKey) ?? 0));
      await answered;
      inFlight.set(webhookKey, (inFlight.get(webhookKey) ?? 0) - 1);
      table.delete(deliveryKey);
      return settled;
    },
  });

  const world = {
    clock,
    pace,
    dispatcher,
    started,
    loads: () => loads,
    countOf: (webhookKey: number) => started.filter((attempt) => attempt.webhookKey === webhookKey).length,
    setTier(tenantKey: number, tier: Tier) {
      tiers.set(tenantKey, tier);
      dispatcher.adoptPlan(tenantKey, tier);
    },
    setLimits(webhookKey: number, given: Partial<WebhookLimits>) {
      limits.set(webhookKey, { ...noLimits, ...given });
      dispatcher.throttle(accountOf(webhookKey), [
        { webhookKey, paused: false, resumes: false, ...limitsOfWebhook(webhookKey) },
      ]);
    },
    /** Most attempts to it that were under way at once. */
    mostAtOnce: (webhookKey: number) => most.get(webhookKey) ?? 0,
    /** Attempts to it that started in this span, its end not included. */
    startedIn: (webhookKey: number, from: number, to: number) =>
      started.filter((attempt) => attempt.webhookKey === webhookKey && attempt.at >= from && attempt.at < to).length,
    /** New deliveries, as their commit offers them. */
    accept(webhookKey: number, count: number) {
      const deliveries = Array.from({ length: count }, () => {
        lastKey += 1;
        const tenantKey = accountOf(webhookKey);
        return dueDelivery({
          deliveryKey: lastKey,
          webhookKey,
          tenantKey,
          tier: tierOf(tenantKey),
          limits: limitsOfWebhook(webhookKey),
        });
      });
      for (const delivery of deliveries) {
        table.set(delivery.deliveryKey, delivery);
        owned.add(delivery.deliveryKey);
      }
      return deliveries;
    },
    offer: (webhookKey: number, count: number) => dispatcher.offer(world.accept(webhookKey, count)),
    hang() {
      answered = new Promise(() => {});
    },
    /** Lets time pass, and everything that can happen in it. */
    async pass(ms: number) {
      await world.rest();
      for (let left = ms; left > 0; left -= 1) {
        clock.advance(1);
        await turn();
        await turn();
      }
      await world.rest();
    },
    async rest() {
      for (let before = -1; before !== started.length + loads; await turn()) {
        before = started.length + loads;
        for (let n = 0; n < 4; n++) await turn();
        clock.advance(0);
      }
    },
  };
  return world;
}
