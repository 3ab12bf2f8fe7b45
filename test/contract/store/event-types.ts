import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { Tenant } from "../../../src/domain/tenant.ts";
import type { StoreBackend } from "../../support/store-backend.ts";
import { bytes, createWorld, type World } from "../../support/store-factory.ts";

const a = "https://a.example/hook";
const b = "https://b.example/hook";
const orders = { url: a, eventTypes: ["order.*"] };
const refunds = { url: b, eventTypes: ["refund", "order.refunded"] };

/** Which webhook gets which types of events, for any backend. */
export function eventTypesContract(backend: StoreBackend): void {
  describe(`${backend.name} gives each webhook the types that it names`, () => {
    let world: World;
    let tenant: Tenant;
    beforeEach(async () => {
      world = await createWorld(backend);
      tenant = await world.tenant();
    });
    afterEach(() => world.end());

    const accept = (...types: (string | null)[]) =>
      world.acceptOwned(tenant, { events: types.map((type) => ({ payload: bytes("{}"), type })) });

    const take = async (...types: (string | null)[]) => {
      const { eventIds } = await accept(...types);
      return Promise.all(eventIds.map((id) => world.records(tenant, id)));
    };

    const patterns = async () => (await world.store.webhooks(tenant.key)).map(({ eventTypes }) => eventTypes);

    /** Twice: the first event of a webhook goes another way than those that follow. */
    test.each(["the first", "later ones"])("%s, each event of a batch by itself", async (which) => {
      await world.setUrls(tenant, orders, refunds);
      if (which === "later ones") await take("order.refunded");
      expect(await take("order.paid", "order.refunded", "refund", "order.paid", "login", null)).toEqual([
        [`PENDING ${a}`],
        [`PENDING ${a}`, `PENDING ${b}`],
        [`PENDING ${b}`],
        [`PENDING ${a}`],
        ["SKIPPED"],
        ["SKIPPED"],
      ]);
      const before = which === "later ones" ? 2 : 0;
      expect(await world.totals(tenant)).toEqual({ PENDING: 5 + before, DELIVERED: 0, FAILED: 0, SKIPPED: 2 });
    });

    test("also when one of them never got any, which is forgotten when it is removed", async () => {
      await world.setUrls(tenant, orders, refunds);
      expect(await take("order.paid", "order.paid")).toEqual([[`PENDING ${a}`], [`PENDING ${a}`]]);
      expect(await take("order.paid")).toEqual([[`PENDING ${a}`]]);
      await world.setUrls(tenant, orders);
      expect((await world.count()).webhook).toBe(1);
    });

    test("and asks for room only for those that get something, for as many as they get", async () => {
      await world.setUrls(tenant, orders, refunds);
      const keyOf = new Map((await world.store.webhooks(tenant.key)).map(({ url, key }) => [url, key]));
      const asked: number[] = [];
      const roomFor = ({ webhookKey }: { webhookKey: number }) => {
        asked.push(webhookKey);
        return 1;
      };
      const events = ["order.paid", "login", "order.new"].map((type) => ({ payload: bytes("{}"), type }));
      const { deliveries, unowned, failed } = await world.accept(tenant, { events, roomFor });
      expect(asked).toEqual([keyOf.get(a) ?? 0]);
      expect(deliveries.map(({ url }) => url)).toEqual([a]);
      expect(unowned).toEqual([{ tenantKey: tenant.key, webhookKey: keyOf.get(a) ?? 0 }]);
      expect(failed).toEqual([]);
    });

    test("one that is skipped has ended, without a failure, and is listed by that", async () => {
      await world.setUrls(tenant, orders);
      const { eventIds, deliveries, unowned } = await accept("login");
      expect([deliveries, unowned]).toEqual([[], []]);
      const skipped = { state: "SKIPPED", targetWebhook: "", errorReason: null, errorCode: null, attempts: 0 };
      expect(await world.recordsOf(tenant.key, eventIds[0] ?? "")).toMatchObject([skipped]);
      await take("order.paid");
      expect((await world.page(tenant, { state: "SKIPPED" })).records).toMatchObject([skipped]);
      expect((await world.page(tenant, { state: "SKIPPED", type: "order.paid" })).records).toEqual([]);
    });

    test.each(["single", "all"] as const)("a replay (%s) decides anew what was skipped", async (kind) => {
      await world.setUrls(tenant, orders);
      const [id = "", other = ""] = (await accept("login", "refund")).eventIds;
      await world.setUrls(tenant, orders, { url: b, eventTypes: ["login"] });
      if (kind === "single") await world.replayEvent(tenant, id);
      else await world.startReplay(tenant, kind);
      await world.queueAll();
      expect([await world.records(tenant, id), await world.records(tenant, other)]).toEqual([
        [`PENDING ${b}`],
        ["SKIPPED"],
      ]);
      expect(await world.totals(tenant)).toEqual({ PENDING: 1, DELIVERED: 0, FAILED: 0, SKIPPED: 1 });
    });

    test("what a replay took up is skipped again when that is cancelled, and can be taken up again", async () => {
      await world.setUrls(tenant, orders);
      const [id = ""] = (await accept("login")).eventIds;
      await world.setUrls(tenant, { url: a, eventTypes: ["login"] });
      const { replay } = await world.replayEvent(tenant, id);
      expect(await world.records(tenant, id)).toEqual([`PENDING ${a}`]);
      await world.store.cancelReplay(tenant.key, replay.id, world.clock.now());
      while ((await world.store.returnCancelled(10, world.clock.now())) !== null);
      expect(await world.records(tenant, id)).toEqual([`SKIPPED ${a}`]);
      expect(await world.totals(tenant)).toEqual({ PENDING: 0, DELIVERED: 0, FAILED: 0, SKIPPED: 1 });
      await world.replayEvent(tenant, id);
      expect(await world.records(tenant, id)).toEqual([`PENDING ${a}`]);
      expect(await world.totals(tenant)).toEqual({ PENDING: 1, DELIVERED: 0, FAILED: 0 });
    });

    test("the replay of what has failed leaves alone what was skipped", async () => {
      await world.setUrls(tenant, orders);
      const [id = ""] = (await accept("login")).eventIds;
      await world.setUrls(tenant, a);
      await world.startReplay(tenant, "failed");
      await world.queueAll();
      expect(await world.records(tenant, id)).toEqual(["SKIPPED"]);
    });

    test("keeps the patterns of a URL that stays, unless the list names others or none", async () => {
      await world.setUrls(tenant, orders, b);
      expect(await patterns()).toEqual([["order.*"], null]);
      await world.setUrls(tenant, b, a);
      expect(await patterns()).toEqual([null, ["order.*"]]);
      await world.setUrls(tenant, { url: a, eventTypes: null }, refunds);
      expect(await patterns()).toEqual([null, refunds.eventTypes]);
      await world.setUrls(tenant, a);
      await world.setUrls(tenant, a, b);
      expect(await patterns()).toEqual([null, null]);
    });

    test("takes what a new list names from its answer on", async () => {
      await world.setUrls(tenant, a);
      expect(await take("login")).toEqual([[`PENDING ${a}`]]);
      await world.setUrls(tenant, orders);
      expect(await take("login", "order.paid")).toEqual([["SKIPPED"], [`PENDING ${a}`]]);
    });

    test("of an account that is made with webhooks, too", async () => {
      const webhooks = [{ id: "wh_made", url: a, name: "", eventTypes: ["order.*"] }];
      tenant = await world.tenant({ webhooks });
      expect(await take("login", "order.paid")).toEqual([["SKIPPED"], [`PENDING ${a}`]]);
    });
  });
}
