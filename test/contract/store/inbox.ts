import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { Tenant } from "../../../src/domain/tenant.ts";
import { readAll } from "../../support/read-all.ts";
import type { StoreBackend } from "../../support/store-backend.ts";
import { bytes, createWorld, newInboxDelivery, refusalOf, type World } from "../../support/store-factory.ts";

/** The text of `src/store/inbox.ts` as tests. */
export function inboxContract(backend: StoreBackend): void {
  describe(`${backend.name} keeps inboxes:`, () => {
    let world: World;
    let tenant: Tenant;
    beforeEach(async () => {
      world = await createWorld(backend);
      tenant = await world.tenant();
    });
    afterEach(() => world.end());

    /** Keeps deliveries with these ids, one after the other. */
    async function keep(ids: readonly string[], { of = tenant, kept = 100 } = {}): Promise<void> {
      for (const id of ids) await world.store.keepInboxDelivery(of.key, newInboxDelivery({ id }), kept);
    }

    /** The ids in a range, and how many are kept. */
    async function list(range: { limit?: number; after?: string; before?: string } = {}, of = tenant) {
      const { deliveries, total } = await world.inboxOf(of.key, { limit: 100, ...range });
      return { ids: deliveries.map(({ id }) => id).join(" "), total };
    }

    test("a delivery comes back as it was kept, byte for byte, also after a restart", async () => {
      const whole = newInboxDelivery({
        receivedAt: 1_772_368_496_789,
        headers: { Host: "relay.example", "webhook-id": "evt_1", "Service-Replay-Group": "a%20b", "x-proto": "x" },
        // A body is UTF-8: it is what we send.
        body: bytes(`${String.fromCodePoint(...Array.from({ length: 300 }, (_, i) => i))} 🚀\ufeff\u2028`).subarray(7),
        answeredStatus: null,
        isTest: true,
      });
      const other = newInboxDelivery({ body: new Uint8Array(0), answeredStatus: 599 });
      expect(await world.store.keepInboxDelivery(tenant.key, whole, 100)).toEqual(tenant);
      await world.store.keepInboxDelivery(tenant.key, other, 100);
      await world.reopen();
      const { deliveries } = await world.inboxOf(tenant.key, { limit: 10 });
      const plain = deliveries.map((delivery) => ({ ...delivery, body: [...delivery.body] }));
      expect(plain).toEqual([other, whole].map((delivery) => ({ ...delivery, body: [...delivery.body] })));
    });

    test("the newest come first, as many as asked for, and all are counted", async () => {
      await keep(["a", "b", "c"]);
      expect(await list()).toEqual({ ids: "c b a", total: 3 });
      expect(await list({ limit: 2 })).toEqual({ ids: "c b", total: 3 });
    });

    test("only the newest are kept, of each tenant by itself", async () => {
      const other = await world.tenant();
      await keep(["x", "y", "z"], { of: other });
      await keep(["a", "b", "c", "d", "e"], { kept: 3 });
      expect(await list()).toEqual({ ids: "e d c", total: 3 });
      await keep(["f"], { kept: 1 });
      expect(await list()).toEqual({ ids: "f", total: 1 });
      expect(await list({}, other)).toEqual({ ids: "z y x", total: 3 });
    });

    test("those that arrive together are trimmed together, and the next one is the newest", async () => {
      const ids = Array.from({ length: 250 }, () => newInboxDelivery().id);
      await Promise.all(ids.map((id) => keep([id])));
      const kept = await list();
      expect(kept.total).toBe(100);
      const found = kept.ids.split(" ");
      expect([new Set(found).size, found.filter((id) => !ids.includes(id))]).toEqual([100, []]);
      await keep(["next"]);
      expect(await list()).toEqual({ ids: ["next", ...found.slice(0, -1)].join(" "), total: 100 });
    });

    test.each([
      [{ after: "b" }, "d c"],
      [{ before: "c" }, "b a"],
      [{ after: "a", before: "d" }, "c b"],
      [{ after: "a", limit: 2 }, "d c"],
      [{ before: "d", limit: 2 }, "c b"],
      [{ after: "d" }, ""],
      [{ before: "a" }, ""],
      [{ after: "gone" }, "d c b a"],
      [{ before: "gone" }, ""],
    ])("the range %j holds %p", async (range, ids) => {
      await keep(["gone", "a"]);
      await keep(["b", "c", "d"], { kept: 4 });
      expect(await list(range)).toEqual({ ids, total: 4 });
    });

    test("the id of another tenant's delivery is no place in the list", async () => {
      const other = await world.tenant();
      await keep(["a", "b"]);
      await keep(["x"], { of: other });
      expect((await list({ before: "x" })).ids).toBe("");
      expect((await list({ after: "x" })).ids).toBe("b a");
    });

    test("an emptied inbox is empty, goes on, and leaves others and the answer alone", async () => {
      const other = await world.tenant();
      await keep(["x"], { of: other });
      await keep(["a", "b"]);
      await world.store.setInboxAnswer(tenant.key, { status: 500, delayMs: 1, silent: true });
      await world.store.emptyInbox(tenant.key);
      expect(await list()).toEqual({ ids: "", total: 0 });
      await keep(["c"]);
      expect(await list({ after: "b" })).toEqual({ ids: "c", total: 1 });
      expect(await list({}, other)).toEqual({ ids: "x", total: 1 });
      expect(await world.store.inboxAnswer(tenant.key)).toEqual({ status: 500, delayMs: 1, silent: true });
    });

    test("a list in progress has nothing of what was kept since, be it another tenant's or its own", async () => {
      const other = await world.tenant();
      await keep(["a", "b", "c", "d", "e", "f"]);
      const { deliveries } = await world.store.inboxDeliveries(tenant.key, { limit: 100 });
      expect((await deliveries.next(1)).map(({ id }) => id)).toEqual(["f"]);
      await world.store.emptyInbox(tenant.key);
      await keep(["x", "y"], { of: other });
      await keep(["g", "h", "i", "j"]);
      expect(await readAll(deliveries)).toEqual([]);
      expect(await list({}, other)).toEqual({ ids: "y x", total: 2 });
    });

    test("the answer is the one that was told last, of each tenant by itself, also after a restart", async () => {
      const other = await world.tenant();
      expect(await world.store.inboxAnswer(tenant.key)).toBeNull();
      await world.store.setInboxAnswer(tenant.key, { status: 200, delayMs: 15_000, silent: true });
      await world.store.setInboxAnswer(tenant.key, { status: 599, delayMs: 0, silent: false });
      await world.reopen();
      expect(await world.store.inboxAnswer(tenant.key)).toEqual({ status: 599, delayMs: 0, silent: false });
      expect(await world.store.inboxAnswer(other.key)).toBeNull();
    });

    test("what no answer can be is refused, and nothing of it is kept", async () => {
      const before = await world.count();
      const refused = [
        world.store.setInboxAnswer(tenant.key, { status: 199, delayMs: 0, silent: false }),
        world.store.setInboxAnswer(tenant.key, { status: 204, delayMs: -1, silent: false }),
        world.store.keepInboxDelivery(tenant.key, newInboxDelivery({ answeredStatus: 600 }), 100),
      ];
      expect((await Promise.allSettled(refused)).map(({ status }) => status)).toEqual(refused.map(() => "rejected"));
      expect(await world.count()).toEqual(before);
    });

    test("a tenant that never was has no inbox to keep anything in", async () => {
      const kept = world.store.keepInboxDelivery(4_711, newInboxDelivery({ body: bytes("x") }), 100);
      expect(await refusalOf(kept)).toBe("unauthenticated account_gone");
      expect(await world.inboxOf(4_711, { limit: 1 })).toEqual({ deliveries: [], total: 0 });
    });

    test("writes end with the store", async () => {
      await world.store.close();
      const kept = world.store.keepInboxDelivery(tenant.key, newInboxDelivery(), 100);
      expect(await refusalOf(kept)).toBe("unavailable shutting_down");
    });
  });
}
