import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { DueDelivery } from "../../../src/domain/delivery.ts";
import type { Tenant } from "../../../src/domain/tenant.ts";
import type { StoreBackend } from "../../support/store-backend.ts";
import { bytes, createWorld, utf8, type World } from "../../support/store-factory.ts";

const a = "https://a.example/hook";
const b = "https://b.example/hook";

/** What pauses and limits of webhooks do to what waits for them, for any backend. */
export function throttleContract(backend: StoreBackend): void {
  describe(`${backend.name} keeps pauses and limits of webhooks`, () => {
    let world: World;
    let tenant: Tenant;
    beforeEach(async () => {
      world = await createWorld(backend);
      tenant = await world.tenant({ urls: [a, b] });
    });
    afterEach(() => world.end());

    const pause = (paused = true) => world.setUrls(tenant, { url: a, paused }, b);
    const urls = async () => (await world.claim(tenant)).map(({ url }) => url);

    test("until an entry names others, and through a restart", async () => {
      const given = { paused: true, rateLimit: 5, maxConcurrency: 2 };
      const usual = { paused: false, rateLimit: null, maxConcurrency: null };
      await world.setUrls(tenant, { url: a, ...given }, b);
      await world.setUrls(tenant, b, { url: a, name: "A" });
      await world.reopen();
      expect(await world.store.webhooks(tenant.key)).toMatchObject([usual, { name: "A", ...given }]);
      await world.setUrls(tenant, { url: a, ...usual }, b);
      expect(await world.store.webhooks(tenant.key)).toMatchObject([usual, usual]);
    });

    test("from the creation of the account on", async () => {
      const made = await world.tenant({ webhooks: [{ id: "wh_made", url: a, name: "", paused: true, rateLimit: 7 }] });
      expect(await world.store.webhooks(made.key)).toMatchObject([
        { paused: true, rateLimit: 7, maxConcurrency: null },
      ]);
    });

    test("and headers, sealed, which each delivery carries until the webhook is removed", async () => {
      const sealedHeaders = bytes("sealed");
      const carried = (deliveries: readonly DueDelivery[]) =>
        Object.fromEntries(
          deliveries.map((delivery) => [delivery.url, delivery.sealedHeaders && utf8(delivery.sealedHeaders)]),
        );
      await world.setUrls(tenant, { url: a, sealedHeaders }, b);
      await world.setUrls(tenant, { url: a, name: "A" }, b);
      expect(carried((await world.acceptOwned(tenant)).deliveries)).toEqual({ [a]: "sealed", [b]: null });
      expect(carried((await world.acceptOwned(tenant)).deliveries)).toEqual({ [a]: "sealed", [b]: null });
      await world.accept(tenant, { payloads: [bytes("1"), bytes("2")] });
      expect(carried(await world.claim(tenant))).toEqual({ [a]: "sealed", [b]: null });
      await world.setUrls(tenant, b);
      await world.setUrls(tenant, a, b);
      const [again] = await world.store.webhooks(tenant.key);
      expect(again).toMatchObject({ url: a, sealedHeaders: null });
      expect(carried((await world.acceptOwned(tenant)).deliveries)).toEqual({ [a]: null, [b]: null });
    });

    /** Twice: the first event of a webhook goes another way than those that follow. */
    test.each(["the first", "later ones"])(
      "%s of what a paused one gets is nobody's, and nobody is woken",
      async (which) => {
        if (which === "later ones") await world.acceptOwned(tenant);
        await pause();
        const [forA, forB] = await world.store.webhooks(tenant.key);
        const asked: number[] = [];
        const roomFor = ({ webhookKey }: { webhookKey: number }) => {
          asked.push(webhookKey);
          return 1;
        };
        const events = [1, 2].map(() => ({ payload: bytes("{}"), type: null }));
        const { eventIds, deliveries, unowned } = await world.accept(tenant, { events, roomFor });
        expect(asked).toEqual([forB?.key ?? 0]);
        expect(deliveries.map(({ url }) => url)).toEqual([b]);
        expect(unowned).toEqual([{ tenantKey: tenant.key, webhookKey: forB?.key ?? 0 }]);
        expect(await world.records(tenant, eventIds[0] ?? "")).toEqual([`PENDING ${a}`, `PENDING ${b}`]);
        expect(forA?.paused).toBe(true);
      },
    );

    test("nobody finds or claims what waits for a paused one, until it goes on: the longest waiting first", async () => {
      const { eventIds, deliveries } = await world.acceptOwned(tenant);
      await world.store.release(deliveries.filter(({ url }) => url === a));
      await Promise.all(deliveries.filter(({ url }) => url === b).map((ended) => world.settle(ended, "delivered")));
      await pause();
      world.clock.advance(1000);
      await world.accept(tenant);
      const { oldestDueAt } = await world.store.queueDepth();
      expect(await world.store.discover()).toHaveLength(1);
      expect(oldestDueAt).toBe(world.clock.now());
      expect(await urls()).toEqual([b]);
      const [forA] = await world.store.webhooks(tenant.key);
      const ref = { tenantKey: tenant.key, webhookKey: forA?.key ?? 0 };
      expect(await world.store.claim(ref, world.clock.now(), 10)).toEqual({ due: [], nextDueAt: null });
      expect(await world.store.discover({ after: 0, until: world.clock.now() })).toEqual([]);
      await pause(false);
      expect(await world.store.discover()).toHaveLength(1);
      const claimed = await world.claim(tenant);
      expect(claimed.map(({ url }) => url)).toEqual([a, a]);
      expect(claimed[0]?.eventId).toBe(eventIds[0] ?? "");
    });

    test("an attempt that was under way is settled, and its retry waits", async () => {
      const owned = await world.delivery(tenant);
      await pause();
      await world.settle(owned, "retry");
      world.clock.advance(24 * 60 * 60_000);
      expect(await urls()).not.toContain(a);
      await pause(false);
      expect(await urls()).toEqual([a]);
    });

    test("each delivery carries the limits of its webhook, accepted and claimed", async () => {
      await world.setUrls(tenant, { url: a, rateLimit: 5, maxConcurrency: 2 }, b);
      const limits = (deliveries: readonly { url: string; limits: unknown }[]) =>
        Object.fromEntries(deliveries.map((delivery) => [delivery.url, delivery.limits]));
      const expected = {
        [a]: { rateLimit: 5, maxConcurrency: 2 },
        [b]: { rateLimit: null, maxConcurrency: null },
      };
      expect(limits((await world.acceptOwned(tenant)).deliveries)).toEqual(expected);
      await world.accept(tenant);
      expect(limits(await world.claim(tenant))).toEqual(expected);
    });
  });
}
