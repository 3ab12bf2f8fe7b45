import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { DueDelivery } from "../../../src/domain/delivery.ts";
import type { Tenant } from "../../../src/domain/tenant.ts";
import type { StoreBackend } from "../../support/store-backend.ts";
import {
  bytes,
  createWorld,
  newAct,
  newApiKeyRow,
  newInboxDelivery,
  newSigningKeyRow,
  refusalOf,
  type World,
} from "../../support/store-factory.ts";

const a = "https://a.example/hook";
const b = "https://b.example/hook";

/** Tables without rows of a tenant that never had to do with payments. */
const ofNoTenant =
  /^(lane|vault_check|written_by|ended_session|billing_account|card_verification|saved_card|plan_period|invoice(_day)?|charge|mail|sandbox_\w+)$/;

/** What a deletion leaves, and what it still takes: `TenantVerbs` of `src/store/store.ts` as tests. */
export function erasureContract(backend: StoreBackend): void {
  describe(`${backend.name} is a store:`, () => {
    let world: World;
    beforeEach(async () => {
      world = await createWorld(backend);
    });
    afterEach(() => world.end());

    describe("a deleted tenant", () => {
      /** A tenant with rows in every table that may have them. */
      async function makeFull(): Promise<{ tenant: Tenant; delivery: DueDelivery }> {
        const tenant = await world.tenant({ tier: "business", loginEmail: "full@x.io", urls: [a, b] });
        await world.event(tenant, "delivered", "failed");
        const id = await world.event(tenant, "retry", "failed");
        await world.accept(tenant, { idempotency: { key: "k", fingerprint: bytes("f") } });
        await world.replayEvent(tenant, id);
        await world.setUrls(tenant, b);
        await world.startReplay(tenant, "all", { label: "x".repeat(1_000) });
        await world.store.queueReplayBatch(1, world.clock.now());
        await world.store.rotateApiKey(tenant.key, newApiKeyRow(), 1, 1, newAct({ action: "api_key.rotated" }));
        await world.store.rotateSigningKey(tenant.key, newSigningKeyRow(), 1, 2, 1);
        await world.store.rotateSigningSecret(tenant.key, bytes("x"), 2, 1);
        await world.store.rememberLogin(tenant.key, "192.0.2.1", 1);
        const order = { kind: "password.reset", recipient: "full@x.io", fact: {} } as const;
        await world.store.orderPasswordReset(tenant.key, bytes("x"), order, 1);
        await world.store.setInboxAnswer(tenant.key, { status: 503, delayMs: 0, silent: false });
        for (let i = 0; i < 3; i++) await world.store.keepInboxDelivery(tenant.key, newInboxDelivery(), 100);
        const counts = { accepted: 1, delivered: 0, failed: 0, attempts: 0, latency: new Map([[3, 1]]) };
        const minute = { tenantKey: tenant.key, minute: 1, ...counts };
        await world.store.addStats([minute, { ...minute, webhookKey: 1 }]);
        await world.store.addRefused([{ tenantKey: tenant.key, month: 202611, reason: "quota", events: 1 }]);
        const [delivery] = await world.claim(tenant);
        if (!delivery) throw new Error("something is due");
        return { tenant, delivery };
      }

      test.each([1, 3, 1_000])("leaves no row in any table, erased %i rows at a time", async (limit) => {
        const neighbour = await world.tenant({ urls: [a] });
        const id = await world.event(neighbour, "failed");
        const before = await world.count();
        const { tenant } = await makeFull();
        const full = await world.count();
        const filled = Object.entries(before).filter(([table]) => !ofNoTenant.test(table));
        for (const [table, rows] of filled) expect([table, full[table]]).not.toEqual([table, rows]);
        await world.store.deleteTenant(tenant.key, world.clock.now());
        await world.store.deleteTenant(tenant.key, world.clock.now());
        let steps = 0;
        while (await world.store.eraseDeleted(limit)) {
          steps += 1;
          if (steps === 5) await world.reopen();
        }
        // What waits is not sent any more, and goes within a day: it is found by its recipient.
        expect<Record<string, number>>({ ...(await world.count()), mail: before.mail ?? 0 }).toEqual(before);
        expect(await world.records(neighbour, id)).toEqual([`FAILED ${a}`]);
        expect(await world.store.eraseDeleted(limit)).toBe(false);
      });

      test("is not found, and frees its credentials", async () => {
        const apiKey = newApiKeyRow();
        const tenant = await world.tenant({ apiKey, loginEmail: "me@x.io" });
        await world.store.deleteTenant(tenant.key, 1);
        expect(await world.store.findTenant(tenant.id)).toBeNull();
        expect(await world.store.findTenantByLoginEmail("me@x.io")).toBeNull();
        expect(await world.store.findApiKey(apiKey.hash)).toBeNull();
      });

      test.each([false, true])("takes no writes (rows erased: %p)", async (erased) => {
        const { tenant, delivery } = await makeFull();
        const { key } = tenant;
        const { store } = world;
        const [replay] = (await world.replaysOf(key, { offset: 0, limit: 1 })).replays;
        await store.deleteTenant(key, 1);
        if (erased) while (await store.eraseDeleted(1_000));
        const before = await world.count();
        const writes = [
          world.accept(tenant),
          store.setTier(key, "pro"),
          store.setLimits(key, { ownWebhooks: 1 }),
          store.suspend(key, "operator", 1),
          store.resume(key, "operator"),
          store.setPassword(key, "x"),
          store.replacePassword(key, "x", "y"),
          store.changeEmail(key, "x@example.com"),
          store.rotateApiKey(key, newApiKeyRow(), 1, 1),
          store.rotateSigningKey(key, newSigningKeyRow(), 1, 1, 1),
          store.rotateSigningSecret(key, bytes("x"), 1, 1),
          store.endAllSessions(key),
          store.rememberLogin(key, "192.0.2.9", 1),
          store.replaceWebhooks(key, { webhooks: [], limit: 1 }, 1),
          world.replayEvent(tenant, delivery.eventId),
          world.startReplay(tenant, "all"),
          store.cancelReplay(key, replay?.id ?? "", 1),
          store.setInboxAnswer(key, { status: 204, delayMs: 0, silent: true }),
          store.keepInboxDelivery(key, newInboxDelivery(), 100),
          store.emptyInbox(key),
        ].map(refusalOf);
        expect(await Promise.all(writes)).toEqual(writes.map(() => "unauthenticated account_gone"));
        expect(await world.settle(delivery, "delivered")).toEqual({ kind: "gone", attempt: null });
        await store.touchApiKeys(new Map([["key_x", 1]]));
        await store.failUndeliverable(100);
        await store.queueReplayBatch(100, 1);
        expect(await world.count()).toEqual(before);
        if (!erased) while (await store.eraseDeleted(1_000));
        expect((await world.count()).delivery).toBe(0);
      });
    });
  });
}
