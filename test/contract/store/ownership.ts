import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { DueDelivery } from "../../../src/domain/delivery.ts";
import type { Tenant } from "../../../src/domain/tenant.ts";
import type { StoreBackend } from "../../support/store-backend.ts";
import { createWorld, type World } from "../../support/store-factory.ts";

const a = "https://a.example/hook";
const b = "https://b.example/hook";

/** Whose a pending delivery is, and until when: what `DeliveryVerbs` of `src/store/store.ts` says of owning, as tests. */
export function ownershipContract(backend: StoreBackend): void {
  describe(`${backend.name} is a store:`, () => {
    let world: World;
    beforeEach(async () => {
      world = await createWorld(backend);
    });
    afterEach(() => world.end());

    const drain = async () => {
      while (await world.store.failUndeliverable(10));
    };

    async function disable({ tenantKey, webhookKey }: DueDelivery): Promise<void> {
      const failures = { since: 0, at: world.clock.now(), gone: [1, 2, 3], excusedMs: 0 };
      await world.store.noteFailures({ tenantKey, webhookKey }, failures, { disableAfterMs: 5 * 24 * 3_600_000 });
    }

    async function throughDisabling(delivery: DueDelivery, tenant: Tenant): Promise<void> {
      const { tenantKey, eventId } = delivery;
      await disable(delivery);
      await drain();
      const [webhook] = await world.store.webhooks(tenantKey);
      await world.store.enableWebhook(tenantKey, webhook?.id ?? "");
      await world.replayEvent(tenant, eventId);
    }

    describe("a delivery that is owned", () => {
      /** What is done with a delivery that somebody owns; whether it can be claimed afterwards, and as which run. */
      const deeds: readonly [string, (delivery: DueDelivery, tenant: Tenant) => Promise<unknown>, number | null][] = [
        ["nothing", async () => {}, null],
        ["it is released", (delivery) => world.store.release([delivery]), 1],
        ["it is settled", (delivery) => world.settle(delivery, "delivered"), null],
        [
          "it is settled, and the time of its retry has come",
          async (delivery) => {
            await world.settle(delivery, "retry");
            world.clock.advance(60_000);
          },
          1,
        ],
        ["its event is replayed", ({ eventId }, tenant) => world.replayEvent(tenant, eventId), null],
        [
          "its event is replayed, and it is settled then",
          async (delivery, tenant) => {
            await world.replayEvent(tenant, delivery.eventId);
            await world.settle(delivery, "delivered");
          },
          2,
        ],
        [
          "its event is replayed, and it is released then",
          async (delivery, tenant) => {
            await world.replayEvent(tenant, delivery.eventId);
            await world.store.release([delivery]);
          },
          2,
        ],
        [
          "it is settled, and its event is replayed in the same breath",
          (delivery, tenant) =>
            Promise.all([world.settle(delivery, "failed"), world.replayEvent(tenant, delivery.eventId)]),
          2,
        ],
        [
          "its account pauses and goes on",
          async (_, tenant) => {
            await world.store.suspend(tenant.key, "operator", 1);
            await world.store.resume(tenant.key, "operator");
          },
          null,
        ],
        ["its webhook is disabled, drained, enabled, and its event replayed", throughDisabling, null],
        [
          "its webhook is disabled, drained, enabled, its event replayed, and it is settled then",
          async (delivery, tenant) => {
            await throughDisabling(delivery, tenant);
            await world.settle(delivery, "failed");
          },
          2,
        ],
        ["the store is closed and opened again", () => world.reopen(), 1],
      ];
      test.each(deeds)("%s: who claims it then gets the run %p", async (_, deed, run) => {
        const tenant = await world.tenant({ urls: [a] });
        await world.accept(tenant);
        const [claimed] = await world.claim(tenant);
        if (!claimed) throw new Error("it is due");
        await deed(claimed, tenant);
        expect((await world.claim(tenant)).map((delivery) => delivery.run)).toEqual(run === null ? [] : [run]);
      });

      test("is told of by a replay that overtakes it, and by no other", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const owned = await world.delivery(tenant);
        const { eventIds } = await world.accept(tenant);
        const { tenantKey, webhookKey, eventSeq, deliveryKey } = owned;
        const ref = { tenantKey, webhookKey, eventSeq, deliveryKey };
        expect((await world.replayEvent(tenant, owned.eventId)).overtaken).toEqual([ref]);
        expect((await world.replayEvent(tenant, eventIds[0] ?? "")).overtaken).toEqual([]);
        await world.settle(owned, "delivered");
        expect((await world.replayEvent(tenant, owned.eventId)).overtaken).toEqual([]);
      });

      test("is so from the moment in which its event was accepted", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const delivery = await world.delivery(tenant);
        expect(await world.claim(tenant)).toEqual([]);
        await world.store.release([delivery]);
        expect(await world.claim(tenant)).toMatchObject([{ eventId: delivery.eventId }]);
      });

      test("is claimed once, however many claim at the same time", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const ids = await world.acceptMany(tenant, 20);
        const claims = await Promise.all(Array.from({ length: 6 }, () => world.claim(tenant)));
        expect(claims.flatMap((due) => due.map(({ eventId }) => eventId)).sort()).toEqual([...ids].sort());
      });

      test("takes no room of those that are not, and is not waited for", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const [webhook] = await world.store.webhooks(tenant.key);
        const ref = { tenantKey: tenant.key, webhookKey: webhook?.key ?? 0 };
        const start = world.clock.now();
        const ids = await world.acceptMany(tenant, 5);
        const claim = async (limit: number, now = start) => {
          const { due, nextDueAt } = await world.store.claim(ref, now, limit);
          return { ids: due.map(({ eventId }) => eventId), nextDueAt };
        };
        expect(await claim(2)).toEqual({ ids: ids.slice(0, 2), nextDueAt: start });
        expect(await claim(2)).toEqual({ ids: ids.slice(2, 4), nextDueAt: start });
        expect(await claim(2)).toEqual({ ids: ids.slice(4), nextDueAt: null });
        // By a clock that was set back all of them lie ahead.
        expect(await claim(2, start - 1_000)).toEqual({ ids: [], nextDueAt: null });
      });

      test("of a disabled webhook fails without an outcome, too, once its owner is gone", async () => {
        const tenant = await world.tenant({ urls: [a] });
        await disable(await world.delivery(tenant));
        // Long enough for the store to look no more for what comes late.
        world.clock.advance(61_000);
        await drain();
        await world.reopen();
        await drain();
        expect(await world.totals(tenant)).toEqual({ PENDING: 0, DELIVERED: 0, FAILED: 1 });
      });

      test("of a removed webhook ends with the attempt, and of an erased account with its rows", async () => {
        const tenant = await world.tenant({ urls: [a, b] });
        const { deliveries } = await world.acceptOwned(tenant);
        await world.setUrls(tenant, b);
        await drain();
        const [forA, forB] = deliveries as [DueDelivery, DueDelivery];
        expect(await world.settle(forA, "failed")).toMatchObject({ kind: "settled" });
        await world.store.deleteTenant(tenant.key, 1);
        while (await world.store.eraseDeleted(100));
        expect(await world.settle(forB, "delivered")).toEqual({ kind: "gone", attempt: null });
        await world.store.release([forA, forB]);
        expect(await world.store.discover()).toEqual([]);
      });
    });
  });
}
