import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { DueDelivery } from "../../../src/domain/delivery.ts";
import type { Tenant } from "../../../src/domain/tenant.ts";
import type { StoreBackend } from "../../support/store-backend.ts";
import { bytes, createWorld, type World } from "../../support/store-factory.ts";

const a = "https://a.example/hook";
const b = "https://b.example/hook";

/** Deliveries that share an ordering key, for any backend. */
export function orderContract(backend: StoreBackend): void {
  describe(`${backend.name} delivers to an ordered webhook in lines:`, () => {
    let world: World;
    let tenant: Tenant;
    /** Names of events, by their ids. */
    let names: Map<string, string>;
    beforeEach(async () => {
      world = await createWorld(backend);
      tenant = await world.tenant();
      await world.setUrls(tenant, { url: a, ordered: true });
      names = new Map();
    });
    afterEach(() => world.end());

    /** Accepts events such as "x1 x2 y1", whose first letter is their ordering key; "-" stands for none. */
    async function accept(text: string, given: { isOwned?: boolean } = {}) {
      const wanted = text.split(" ");
      const events = wanted.map((name) => {
        const key = name.slice(0, 1);
        return { payload: bytes("{}"), type: null, orderingKey: key === "-" ? null : key };
      });
      const accepted = await (given.isOwned ? world.acceptOwned(tenant, { events }) : world.accept(tenant, { events }));
      accepted.eventIds.forEach((id, i) => {
        names.set(id, wanted[i] ?? "");
      });
      return accepted;
    }

    const idOf = (name: string) => [...names].find(([, given]) => given === name)?.[0] ?? "";
    const told = (deliveries: readonly DueDelivery[]) => deliveries.map(({ eventId }) => names.get(eventId)).join(" ");
    const due = async () => told(await world.due(tenant));

    /** Claims all that is due, of which this is one. */
    async function claim(name: string): Promise<DueDelivery> {
      const claimed = await world.claim(tenant);
      const found = claimed.find(({ eventId }) => names.get(eventId) === name);
      await world.store.release(claimed.filter((delivery) => delivery !== found));
      if (!found) throw new Error(`${name} is not due, but ${told(claimed)}`);
      return found;
    }

    /** Claims and delivers one at a time until nothing is due. */
    async function drain(): Promise<string> {
      const done: DueDelivery[] = [];
      for (;;) {
        const claimed = await world.claim(tenant);
        if (claimed.length === 0) return told(done);
        for (const delivery of claimed) {
          done.push(delivery);
          await world.settle(delivery, "delivered");
        }
      }
    }

    const timeOf = async (name: string) => {
      const [record] = (await world.recordsOf(tenant.key, idOf(name))) ?? [];
      return record?.state === "PENDING" ? record.nextAttemptAt : record?.state;
    };

    test("the first of a key goes, and the others wait, of one batch or of several", async () => {
      await accept("x1 x2 y1 -1");
      await accept("x3 -2");
      await accept("y2");
      expect(await due()).toBe("x1 y1 -1 -2");
      expect(await timeOf("x1")).toBe(world.clock.now());
      expect(await timeOf("x2")).toBeNull();
      expect(await world.totals(tenant)).toEqual({ PENDING: 7, DELIVERED: 0, FAILED: 0 });
    });

    test("what waits is nobody's, and takes no room", async () => {
      await accept("x1");
      const { deliveries, unowned } = await accept("x2 y1 x3", { isOwned: true });
      expect(told(deliveries)).toBe("y1");
      expect(unowned).toEqual([]);
    });

    test("says so to whoever accepts for a webhook in which nothing is due", async () => {
      await accept("x1");
      expect(await accept("x2 x3")).toMatchObject({ deliveries: [], unowned: [] });
    });

    test.each(["delivered", "failed"] as const)("one that is %s lets the next one go, and says so", async (outcome) => {
      await accept("x1 x2 x3");
      expect(await world.settle(await claim("x1"), outcome)).toMatchObject({ kind: "settled", hasReleased: true });
      expect(await due()).toBe("x2");
      await world.settle(await claim("x2"), outcome);
      expect(await world.settle(await claim("x3"), outcome)).not.toMatchObject({ hasReleased: true });
      expect(await due()).toBe("");
    });

    test("the next one is due at once, whatever the time", async () => {
      await accept("x1 x2");
      const first = await claim("x1");
      world.clock.advance(5_000);
      await world.settle(first, "delivered");
      expect(await timeOf("x2")).toBe(world.clock.now());
    });

    test("in the order of acceptance", async () => {
      await accept("x1 x2 y1");
      await accept("y2 x3 y3 x4");
      const done = (await drain()).split(" ");
      for (const key of ["x", "y"]) {
        const ofKey = done.filter((name) => name.startsWith(key));
        expect(ofKey).toEqual([...ofKey].sort());
      }
      expect(done).toHaveLength(7);
    });

    test("one that waits for a retry holds back its key alone", async () => {
      await accept("x1 x2 y1 y2");
      expect(await world.settle(await claim("x1"), "retry")).not.toMatchObject({ hasReleased: true });
      expect(await drain()).toBe("y1 y2");
      await accept("x3 z1");
      expect(await due()).toBe("z1");
      world.clock.advance(60_000);
      await world.settle(await claim("x1"), "failed");
      expect(await timeOf("x2")).toBe(world.clock.now());
      expect(await drain()).toBe("z1 x2 x3");
    });

    test("each webhook has its own, and one that is not ordered has none", async () => {
      const c = "https://c.example/hook";
      await world.setUrls(tenant, { url: a }, { url: b, ordered: true }, c);
      await accept("x1 x2");
      const urls = (await world.due(tenant)).map(({ url, eventId }) => `${names.get(eventId)} ${url}`);
      expect(urls.sort()).toEqual([`x1 ${a}`, `x1 ${b}`, `x1 ${c}`, `x2 ${c}`]);
    });

    test("across a restart", async () => {
      await accept("x1 x2 x3");
      await world.settle(await claim("x1"), "delivered");
      await world.claim(tenant);
      await world.reopen();
      expect(await timeOf("x3")).toBeNull();
      expect(await drain()).toBe("x2 x3");
    });

    test("the key of an event is shown with its payload", async () => {
      await accept("x1 -1");
      const keys = async (payload: "whole" | "none") =>
        (await world.page(tenant, { payload })).records.map(({ orderingKey }) => orderingKey);
      expect([await keys("whole"), await keys("none")]).toEqual([
        [null, "x"],
        [null, null],
      ]);
      expect((await world.recordsOf(tenant.key, idOf("x1")))?.[0]).toMatchObject({ orderingKey: "x" });
    });

    describe("a replay", () => {
      test("of one that has ended waits for the one under way, and goes before those behind it", async () => {
        await accept("x1 x2 x3");
        await world.settle(await claim("x1"), "failed");
        const second = await claim("x2");
        await world.replayEvent(tenant, idOf("x1"));
        expect(await timeOf("x1")).toBeNull();
        expect(await due()).toBe("");
        await world.settle(second, "delivered");
        expect(await drain()).toBe("x1 x3");
      });

      test("of one that has ended, and nobody is in its line, is due at once", async () => {
        await accept("x1");
        await world.settle(await claim("x1"), "delivered");
        await world.replayEvent(tenant, idOf("x1"));
        await accept("x2");
        expect(await drain()).toBe("x1 x2");
      });

      test("of all goes in the order of the events", async () => {
        await accept("x1 x2 y1 x3");
        await drain();
        await world.startReplay(tenant, "all");
        await world.queueAll();
        expect(await due()).toBe("x1 y1");
        expect(await drain()).toBe("x1 y1 x2 x3");
      });

      test("of the head keeps it there, and its late attempt lets nobody go", async () => {
        await accept("x1 x2");
        const first = await claim("x1");
        await world.replayEvent(tenant, idOf("x1"));
        const late = await world.settle(first, "delivered");
        expect(late.kind).toBe("superseded");
        expect(late.hasReleased).not.toBe(true);
        expect(await timeOf("x2")).toBeNull();
        expect(await drain()).toBe("x1 x2");
      });

      test("of one that is held back leaves it there", async () => {
        await accept("x1 x2 x3");
        await world.replayEvent(tenant, idOf("x2"));
        expect(await due()).toBe("x1");
        expect(await timeOf("x2")).toBeNull();
        expect(await drain()).toBe("x1 x2 x3");
      });

      test("to a webhook that had none of it joins the lines of that", async () => {
        await accept("x1 x2");
        await drain();
        await world.setUrls(tenant, { url: b, ordered: true });
        await world.startReplay(tenant, "all");
        await world.queueAll();
        expect(await due()).toBe("x1");
        expect(await drain()).toBe("x1 x2");
      });
    });

    describe("what waits for a cancelled replay", () => {
      async function cancelled(names: string[], beforeCancel = async () => {}) {
        const replay =
          names.length === 1
            ? (await world.replayEvent(tenant, idOf(names[0] ?? ""))).replay
            : await world.startReplay(tenant, "all");
        await world.queueAll();
        await beforeCancel();
        await world.store.cancelReplay(tenant.key, replay.id, world.clock.now());
      }
      async function returnAll(): Promise<void> {
        while ((await world.store.returnCancelled(2, world.clock.now())) !== null);
      }

      test("lets those behind it go", async () => {
        await accept("x1 x2 x3");
        await drain();
        await accept("y1");
        await cancelled(["x1"], () => accept("x4 x5").then(() => {}));
        expect(await due()).toBe("y1");
        await returnAll();
        expect(await timeOf("x1")).toBe("DELIVERED");
        expect(await drain()).toBe("y1 x4 x5");
      });

      test("returns from the line, head or not, as it is claimed or in the background", async () => {
        await accept("x1 x2 x3");
        await drain();
        await cancelled(["all", "of them"]);
        expect(await due()).toBe("");
        await returnAll();
        expect(await world.totals(tenant)).toEqual({ PENDING: 0, DELIVERED: 3, FAILED: 0 });
        await accept("x4");
        expect(await drain()).toBe("x4");
      });

      test("keeps its place where its own schedule goes on", async () => {
        await accept("x1 x2 x3");
        await world.settle(await claim("x1"), "retry");
        const retryAt = await timeOf("x1");
        await cancelled(["all", "of them"]);
        await returnAll();
        expect([await timeOf("x1"), await timeOf("x2"), await timeOf("x3")]).toEqual([retryAt ?? 0, null, null]);
        world.clock.advance(60_000);
        expect(await drain()).toBe("x1 x2 x3");
      });

      test("is due at once where it was held back, and is first now", async () => {
        await accept("x1 x2");
        const first = await claim("x1");
        await cancelled(["x2"], () => world.settle(first, "delivered").then(() => {}));
        await returnAll();
        expect(await timeOf("x2")).toBe(world.clock.now());
        expect(await drain()).toBe("x2");
      });
    });

    describe("a webhook that is removed", () => {
      test("fails what is held back, too", async () => {
        await accept("x1 x2 x3 y1 y2");
        await world.claim(tenant);
        await world.setUrls(tenant, b);
        while (await world.store.failUndeliverable(2));
        expect(await world.totals(tenant)).toEqual({ PENDING: 0, DELIVERED: 0, FAILED: 5 });
      });

      test("leaves nothing behind when its account is deleted", async () => {
        await accept("x1 x2 x3");
        await world.store.deleteTenant(tenant.key, world.clock.now());
        while (await world.store.eraseDeleted(2)) {
          if ((await world.count()).event === 0) break;
        }
        expect(await world.count()).toMatchObject({ event: 0 });
      });
    });

    describe("a webhook that is not ordered any more", () => {
      const setOrdered = (ordered: boolean) => world.setUrls(tenant, { url: a, ordered });

      test("gets what was held back, in steps", async () => {
        await accept("x1 x2 x3 y1 y2 x4");
        await setOrdered(false);
        expect(await due()).toBe("x1 y1");
        const [{ key: webhookKey } = { key: 0 }] = await world.store.webhooks(tenant.key);
        expect(await world.store.endOrder(2)).toEqual([{ tenantKey: tenant.key, webhookKey }]);
        expect((await world.due(tenant)).length).toBe(4);
        while ((await world.store.endOrder(2)) !== null);
        expect((await world.due(tenant)).length).toBe(6);
        expect(await world.store.endOrder(2)).toBeNull();
        await accept("x5");
        expect((await drain()).split(" ")).toHaveLength(7);
      });

      test("gets the next one also as the one before it ends", async () => {
        await accept("x1 x2 x3");
        const first = await claim("x1");
        await setOrdered(false);
        await world.settle(first, "delivered");
        expect(await due()).toBe("x2");
        while ((await world.store.endOrder(10)) !== null);
        expect((await drain()).split(" ").sort()).toEqual(["x2", "x3"]);
      });

      test("and is again holds back what comes from then on, and lets nobody be forgotten", async () => {
        await accept("x1 x2 x3");
        await setOrdered(false);
        await accept("x4");
        expect(await due()).toBe("x1 x4");
        await setOrdered(true);
        while ((await world.store.endOrder(10)) !== null);
        await accept("x5");
        expect(await due()).toBe("x1 x4");
        expect((await drain()).split(" ").filter((name) => name !== "x4")).toEqual(["x1", "x2", "x3", "x5"]);
      });

      test("takes what is replayed out of its line", async () => {
        await accept("x1 x2 x3");
        await setOrdered(false);
        await world.replayEvent(tenant, idOf("x1"));
        await world.replayEvent(tenant, idOf("x3"));
        expect((await due()).split(" ").sort()).toEqual(["x1", "x2", "x3"]);
        expect((await drain()).split(" ")).toHaveLength(3);
      });

      test("and is ordered: what waited for no other joins the line as it is replayed", async () => {
        await setOrdered(false);
        await accept("x1 x2 x3");
        await setOrdered(true);
        expect(await due()).toBe("x1 x2 x3");
        await world.startReplay(tenant, "all");
        await world.queueAll();
        expect(await due()).toBe("x1");
        expect(await drain()).toBe("x1 x2 x3");
      });
    });

    test("nobody is forgotten, whoever accepts and settles at once", async () => {
      const keys = ["x", "y", "z"];
      const done: string[] = [];
      let accepted = 0;
      async function deliverAll(): Promise<void> {
        for (const delivery of await world.claim(tenant)) {
          done.push(names.get(delivery.eventId) ?? "");
          await world.settle(delivery, "delivered");
        }
      }
      for (let round = 0; round < 10; round += 1) {
        const batches = keys.map((key) => accept(`${key}${accepted++} ${key}${accepted++}`));
        await Promise.all([...batches, deliverAll()]);
      }
      while (done.length < accepted) {
        const before = done.length;
        await deliverAll();
        expect(done.length).toBeGreaterThan(before);
      }
      expect(new Set(done).size).toBe(accepted);
    });
  });
}
