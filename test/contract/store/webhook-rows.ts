import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { readAttempts } from "../../support/read-all.ts";
import type { StoreBackend } from "../../support/store-backend.ts";
import { createWorld, type World } from "../../support/store-factory.ts";

const a = "https://a.example/hook";
const b = "https://b.example/hook";

/** Which webhooks the store remembers, for any backend. */
export function webhookRowsContract(backend: StoreBackend): void {
  describe(`${backend.name} remembers a removed webhook`, () => {
    let world: World;
    beforeEach(async () => {
      world = await createWorld(backend);
    });
    afterEach(() => world.end());

    const rows = async () => (await world.count()).webhook;

    /** What the janitor does, a while after what was under way has ended. */
    async function clearUp() {
      while (await world.store.failUndeliverable(10));
      world.clock.advance(120_000);
      while (await world.store.failUndeliverable(10));
      while (await world.store.forgetWebhooks(world.clock.now(), 10));
    }

    test("not when it was never used: a list that goes to and fro leaves nothing behind", async () => {
      const tenant = await world.tenant({ urls: [a] });
      for (let change = 0; change < 50; change++) await world.setUrls(tenant, change % 2 === 0 ? b : a);
      expect(await rows()).toBe(1);
      expect((await world.store.webhooks(tenant.key)).map(({ url }) => url)).toEqual([a]);
    });

    test.each([
      ["was delivered", "delivered"],
      ["failed", "failed"],
      ["waited for it", null],
    ] as const)("as long as a record names it that %s", async (_, outcome) => {
      const tenant = await world.tenant({ urls: [a] });
      const eventId = await world.event(tenant, ...(outcome === null ? [] : [outcome]));
      await world.setUrls(tenant, b);
      await world.setUrls(tenant);
      await clearUp();
      expect(await rows()).toBe(1);
      expect(await world.records(tenant, eventId)).toEqual([
        `${outcome === "delivered" ? "DELIVERED" : "FAILED"} ${a}`,
      ]);
    });

    test("when its first record came from a replay", async () => {
      const tenant = await world.tenant();
      const eventId = await world.event(tenant);
      await world.setUrls(tenant, a);
      await world.replayEvent(tenant, eventId);
      await world.setUrls(tenant);
      await clearUp();
      expect(await world.records(tenant, eventId)).toEqual([`FAILED ${a}`]);
    });

    test("for an attempt when its record was replaced", async () => {
      const tenant = await world.tenant({ urls: [a] });
      const eventId = await world.event(tenant, "failed");
      await world.setUrls(tenant, b);
      await world.replayEvent(tenant, eventId);
      await clearUp();
      expect(await world.records(tenant, eventId)).toEqual([`PENDING ${b}`]);
      const attempts = await readAttempts(world.store, tenant.key, eventId);
      expect(attempts.map(({ targetWebhook }) => targetWebhook)).toEqual([a]);
    });

    test("no longer than the last record that waited for it, when that was replaced", async () => {
      const tenant = await world.tenant({ urls: [a] });
      const [first, second] = [await world.event(tenant), await world.event(tenant)];
      for (let change = 0; change < 20; change++) {
        await world.setUrls(tenant, `https://host-${change}.example/hook`);
        while (await world.store.failUndeliverable(10));
        await world.replayEvent(tenant, first);
        await world.replayEvent(tenant, second);
      }
      expect(await rows()).toBe(21);
      await clearUp();
      expect(await rows()).toBe(1);
      expect(await world.records(tenant, first)).toEqual(["PENDING https://host-19.example/hook"]);
    });

    test("while something of it may be under way", async () => {
      const tenant = await world.tenant({ urls: [a] });
      const delivery = await world.delivery(tenant);
      await world.setUrls(tenant, b);
      while (await world.store.failUndeliverable(10));
      await world.replayEvent(tenant, delivery.eventId);
      world.clock.advance(11_000);
      while (await world.store.forgetWebhooks(world.clock.now(), 10));
      await world.settle(delivery, "delivered");
      await clearUp();
      const attempts = await readAttempts(world.store, tenant.key, delivery.eventId);
      expect(attempts.map(({ targetWebhook }) => targetWebhook)).toEqual([a]);
    });

    test("and finds its records by URL and by id, also those of a URL that was registered twice", async () => {
      const tenant = await world.tenant({ urls: [a] });
      const [webhook] = await world.store.webhooks(tenant.key);
      const first = await world.event(tenant, "delivered");
      await world.setUrls(tenant, b);
      const between = await world.event(tenant, "delivered");
      await world.setUrls(tenant, a);
      const second = await world.event(tenant, "delivered");
      const found = async (webhookId: string) =>
        (await world.page(tenant, { webhookId })).records.map(({ eventId }) => eventId);
      expect(await found(a)).toEqual([second, first]);
      expect(await found(webhook?.id ?? "")).toEqual([first]);
      expect(await found(b)).toEqual([between]);
      expect(await found("https://never.example")).toEqual([]);
    });
  });
}
