import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { Tenant } from "../../../src/domain/tenant.ts";
import type { StoreBackend } from "../../support/store-backend.ts";
import { bytes, createWorld, type World } from "../../support/store-factory.ts";

const a = "https://a.example/hook";
const b = "https://b.example/hook";

const by = { actor: "operator", via: "restore", address: null } as const;

const failed = {
  state: "FAILED",
  errorCode: "server_restored",
  errorReason: "The server was restored from a backup in which the delivery was pending",
  statusCode: null,
};

/** `failPending` and `cancelReplays` of the store: what a restored server does before anything goes out. */
export function failPendingContract(backend: StoreBackend): void {
  describe(`${backend.name} lets what is pending fail:`, () => {
    let world: World;
    beforeEach(async () => {
      world = await createWorld(backend);
    });
    afterEach(() => world.end());

    /** @returns how many, a step each */
    async function failAll(limit = 100): Promise<number[]> {
      const steps: number[] = [];
      for (;;) {
        const n = await world.store.failPending(limit);
        if (n === 0) return steps;
        steps.push(n);
      }
    }

    async function cancelAll(limit = 100): Promise<number[]> {
      const steps: number[] = [];
      for (;;) {
        const n = await world.store.cancelReplays(limit, world.clock.now(), by);
        if (n === 0) break;
        steps.push(n);
      }
      while ((await world.store.returnCancelled(100, world.clock.now())) !== null);
      return steps;
    }

    const groupsOf = async (tenant: Tenant) => {
      const { groups } = await world.store.failures({ tenantKey: tenant.key, from: 0, to: world.clock.now() });
      return groups.map(({ webhook, code, waiting, failed }) => [webhook?.url, code, waiting, failed]).sort();
    };

    test("of every account and webhook, in steps, and nothing else changes", async () => {
      const tenant = await world.tenant({ urls: [a, b] });
      const [suspended, paused] = [await world.tenant({ urls: [a] }), await world.tenant()];
      await world.setUrls(paused, { url: a, paused: true });
      const ended = await world.event(tenant, "delivered", "failed");
      const id = await world.event(tenant, "retry");
      for (const one of [suspended, paused]) await world.accept(one);
      await world.store.suspend(suspended.key, "operator", world.clock.now());
      const before = await world.recordsOf(tenant.key, ended);

      expect(await failAll(3)).toEqual([3, 1]);
      const [retried, untried] = (await world.recordsOf(tenant.key, id)) ?? [];
      expect(retried).toMatchObject({ ...failed, attempts: 1, nextAttemptAt: null });
      expect(untried).toMatchObject({ ...failed, attempts: 0, nextAttemptAt: null });
      expect(await world.recordsOf(tenant.key, ended)).toEqual(before);
      expect(await world.totals(tenant)).toEqual({ PENDING: 0, DELIVERED: 1, FAILED: 3 });
      for (const one of [suspended, paused]) {
        expect(await world.totals(one)).toEqual({ PENDING: 0, DELIVERED: 0, FAILED: 1 });
      }
      expect(await groupsOf(tenant)).toEqual([
        [a, "server_restored", 0, 1],
        [b, "http_status", 0, 1],
        [b, "server_restored", 0, 1],
      ]);
      expect(await world.store.queueDepth()).toEqual({ pending: 0, oldestDueAt: null });
      world.clock.advance(60_000);
      expect(await world.due(tenant)).toEqual([]);
    });

    test("but for what is owned, whose attempt says what follows", async () => {
      const tenant = await world.tenant({ urls: [a] });
      const delivery = await world.delivery(tenant);
      expect(await failAll()).toEqual([]);
      expect(await world.settle(delivery, "delivered")).toMatchObject({ kind: "settled" });
      expect(await world.totals(tenant)).toEqual({ PENDING: 0, DELIVERED: 1, FAILED: 0 });
    });

    test("without a word about its webhook", async () => {
      const tenant = await world.tenant({ urls: [a] });
      await world.event(tenant, "delivered");
      await world.event(tenant, "retry");
      await world.accept(tenant);
      const healthOf = async () => (await world.store.webhookHealth(tenant.key, { records: 100, walked: 100 }))[0];
      await failAll();
      expect(await healthOf()).toMatchObject({ records: 1, delivered: 1, failed: 0, lastError: null });
      expect(await world.store.webhooks(tenant.key)).toMatchObject([{ failing: null, disabled: null }]);
      expect(await world.store.listFailingWebhooks(10)).toEqual([]);
    });

    test("with its lines, of which nothing is left behind", async () => {
      const tenant = await world.tenant();
      await world.setUrls(tenant, { url: a, ordered: true });
      const event = { payload: bytes("{}"), type: null, orderingKey: "x" };
      await world.accept(tenant, { events: [event, event, event] });
      expect(await failAll(2)).toEqual([2, 1]);
      const { eventIds } = await world.accept(tenant, { events: [event] });
      expect((await world.due(tenant)).map(({ eventId }) => eventId)).toEqual([...eventIds]);
    });

    test("after the replays, of which it is again what it was before", async () => {
      const tenant = await world.tenant({ urls: [a] });
      const [delivered, waits] = [await world.event(tenant, "delivered"), await world.event(tenant)];
      const before = await world.recordsOf(tenant.key, delivered);
      const done = await world.startReplay(tenant, "timeline", { from: 0, to: 1 });
      await world.queueAll();
      const bulk = [await world.startReplay(tenant, "all"), await world.startReplay(tenant, "failed")];
      await world.queueAll(1);
      const { replay: single } = await world.replayEvent(tenant, delivered);
      const gone = await world.tenant({ urls: [a] });
      await world.event(gone, "failed");
      await world.startReplay(gone, "all");
      await world.store.deleteTenant(gone.key, world.clock.now());

      expect(await cancelAll(2)).toEqual([2, 1]);
      expect(await failAll()).toEqual([1]);
      const noted = await world.store.audit({ tenantId: tenant.id, offset: 0, limit: 9 });
      expect(noted.entries.map(({ detail }) => detail?.replay).sort()).toEqual(bulk.map(({ id }) => id).sort());
      expect(noted.entries).toMatchObject([{ ...by, action: "replay.cancelled" }, by]);
      for (const { id } of [...bulk, single])
        expect(await world.replay(tenant, id)).toMatchObject({ status: "cancelled" });
      expect(await world.replay(tenant, done.id)).toMatchObject({ status: "completed" });
      expect(await world.recordsOf(tenant.key, delivered)).toEqual(before);
      expect(await world.recordsOf(tenant.key, waits)).toMatchObject([failed]);
      expect(await world.due(tenant)).toEqual([]);
    });

    test("until a replay of what has failed so", async () => {
      const tenant = await world.tenant({ urls: [a] });
      const chosen = await world.event(tenant);
      await world.event(tenant, "failed");
      await failAll();
      const filter = { code: "server_restored" } as const;
      const replay = await world.startReplay(tenant, "failed", { filter });
      await world.queueAll();
      const [due] = await world.claim(tenant);
      expect(due).toMatchObject({ eventId: chosen, attempts: 0 });
      if (due) await world.settle(due, "delivered");
      expect(await world.replay(tenant, replay.id)).toMatchObject({ status: "completed", queued: 1, delivered: 1 });
      expect(await groupsOf(tenant)).toEqual([[a, "http_status", 0, 1]]);
    });
  });
}
