import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { ReplayKind } from "../../../src/domain/replay.ts";
import { endedForMs } from "../../../src/domain/retention.ts";
import type { Tenant } from "../../../src/domain/tenant.ts";
import { parseEventId } from "../../../src/lib/id.ts";
import type { AttemptRef } from "../../../src/store/deliveries.ts";
import type { OldEventsQuery } from "../../../src/store/retention.ts";
import type { NewReplay } from "../../../src/store/store.ts";
import type { StoreBackend } from "../../support/store-backend.ts";
import { bytes, createWorld, newInboxDelivery, newReplay, refusalOf, type World } from "../../support/store-factory.ts";

const a = "https://a.example/hook";
const b = "https://b.example/hook";
const everybody = { kind: "except", tenantKeys: [] } as const;

/** `RetentionVerbs` of `src/store/retention.ts` as tests. */
export function retentionContract(backend: StoreBackend): void {
  describe(`${backend.name} is a store:`, () => {
    let world: World;
    beforeEach(async () => {
      world = await createWorld(backend);
    });
    afterEach(() => world.end());

    const seqOf = (eventId: string) => parseEventId(eventId)?.seq ?? 0;
    /** Events, all of which ended long ago. */
    const forget = (tenant: Tenant, ...ids: string[]) =>
      world.store.forgetEvents(tenant.key, ids.map(seqOf), world.clock.now());
    const erase = (tenant: Tenant, ...ids: string[]) =>
      world.store.erasePayloads(tenant.key, ids.map(seqOf), world.clock.now());
    const old = async (given: Partial<OldEventsQuery> = {}) => {
      const query = { afterSeq: 0, before: world.clock.now(), accounts: everybody, withPayload: false, limit: 10 };
      const { events, lookedTo } = await world.store.oldEvents({ ...query, ...given });
      return { seqs: events.map(({ seq }) => seq), lookedTo };
    };
    const groupsOf = async (tenant: Tenant) =>
      (await world.store.failures({ tenantKey: tenant.key, from: 0, to: world.clock.now() + 3_600_000 })).groups.map(
        ({ code, waiting, failed }) => ({ code, waiting, failed }),
      );

    describe("old events", () => {
      test("are found from the oldest on, of the accounts that are asked for", async () => {
        const [mine, other] = [await world.tenant({ urls: [a] }), await world.tenant()];
        const ids = [await world.event(mine, "delivered"), await world.event(other), await world.event(mine)];
        const [first = 0, second = 0, third = 0] = ids.map(seqOf);
        world.clock.advance(10);
        const young = await world.event(mine, "delivered");
        expect(await old({ before: world.clock.now() })).toEqual({ seqs: [first, second, third], lookedTo: null });
        expect(await old({ before: world.clock.now() + 1, limit: 2 })).toEqual({
          seqs: [first, second],
          lookedTo: second,
        });
        expect((await old({ before: world.clock.now() + 1, afterSeq: second })).seqs).toEqual([third, seqOf(young)]);
        expect((await old({ accounts: { kind: "only", tenantKeys: [other.key] } })).seqs).toEqual([second]);
        expect((await old({ accounts: { kind: "except", tenantKeys: [other.key] } })).seqs).toEqual([first, third]);
        await erase(mine, ids[0] ?? "");
        expect((await old({ withPayload: true })).seqs).toEqual([second, third]);
      });

      test("go with their records and attempts, and what counts them follows", async () => {
        const tenant = await world.tenant({ urls: [a, b] });
        const nothing = await world.count();
        const ids = [await world.event(tenant, "delivered", "failed"), await world.event(tenant, "failed", "failed")];
        const stays = await world.event(tenant, "failed", "delivered");
        world.clock.advance(1);
        expect(await forget(tenant, ...ids, "none")).toBe(2);
        expect(await world.totals(tenant)).toEqual({ PENDING: 0, DELIVERED: 1, FAILED: 1 });
        expect((await world.page(tenant)).totalEvents).toBe(1);
        expect(await groupsOf(tenant)).toEqual([{ code: "http_status", waiting: 0, failed: 1 }]);
        expect(await world.recordsOf(tenant.key, ids[0] ?? "")).toBeNull();
        expect((await world.store.usage(tenant.key, world.clock.now())).eventsThisMonth).toBe(3);
        expect(await forget(tenant, ...ids)).toBe(0);
        expect(await forget(tenant, stays)).toBe(1);
        const { event, delivery, attempt } = await world.count();
        expect({ event, delivery, attempt }).toMatchObject({ event: 0, delivery: 0, attempt: 0 });
        expect(nothing.event).toBe(0);
        expect(await groupsOf(tenant)).toEqual([]);
      });

      test("stay while something of them waits, or has ended lately", async () => {
        const tenant = await world.tenant({ urls: [a, b] });
        const waits = await world.event(tenant, "delivered", "retry");
        world.clock.advance(endedForMs);
        const late = await world.event(tenant, "delivered", "delivered");
        const endedBy = world.clock.now() - 1;
        for (const verb of [world.store.forgetEvents, world.store.erasePayloads]) {
          expect(await verb(tenant.key, [seqOf(waits), seqOf(late)], endedBy)).toBe(0);
        }
        expect(await world.totals(tenant)).toEqual({ PENDING: 1, DELIVERED: 3, FAILED: 0 });
      });

      test("are another account's, or a deleted one's: then none goes", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const id = await world.event(tenant, "delivered");
        const other = await world.tenant();
        world.clock.advance(1);
        expect(await forget(other, id)).toBe(0);
        expect(await erase(other, id)).toBe(0);
        expect(await world.totals(tenant)).toEqual({ PENDING: 0, DELIVERED: 1, FAILED: 0 });
        await world.store.deleteTenant(tenant.key, world.clock.now());
        expect(await forget(tenant, id)).toBe(0);
      });

      test("leave what a replay has done as it was counted", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const ids = [await world.event(tenant, "failed"), await world.event(tenant, "failed")];
        const { id } = await world.startReplay(tenant, "failed");
        await world.queueAll();
        for (const delivery of await world.claim(tenant)) await world.settle(delivery, "delivered");
        const before = await world.replay(tenant, id);
        world.clock.advance(1);
        expect(await forget(tenant, ids[0] ?? "")).toBe(1);
        expect(await world.replay(tenant, id)).toEqual(before);
        expect(before).toMatchObject({ status: "completed", delivered: 2 });
        expect(await world.totals(tenant)).toEqual({ PENDING: 0, DELIVERED: 1, FAILED: 0 });
      });

      test.each(["forgetEvents", "erasePayloads"] as const)(
        "take what the inbox keeps of them along, which has their payloads (%s)",
        async (verb) => {
          const [tenant, other] = [await world.tenant({ urls: [a] }), await world.tenant({ urls: [a] })];
          const [goes, stays] = [await world.event(tenant, "delivered"), await world.event(tenant, "delivered")];
          const waits = await world.event(tenant, "retry");
          const keep = (of: Tenant, id: string, eventId: string, isTest = false) =>
            world.store.keepInboxDelivery(of.key, newInboxDelivery({ id, eventId, isTest }), 100);
          await keep(tenant, "first", goes);
          await keep(tenant, "of another", stays);
          await keep(tenant, "replayed", goes);
          await keep(tenant, "of what waits", waits);
          // A test has no event, whatever id it was sent with.
          await keep(tenant, "a test", goes, true);
          await keep(other, "another account's", goes);
          world.clock.advance(1);
          expect(await world.store[verb](tenant.key, [goes, waits].map(seqOf), world.clock.now())).toBe(1);
          const left = async ({ key }: Tenant) =>
            (await world.inboxOf(key, { limit: 100 })).deliveries.map(({ id }) => id);
          expect(await left(tenant)).toEqual(["a test", "of what waits", "of another"]);
          expect(await left(other)).toEqual(["another account's"]);
        },
      );

      test("that go while a replay is under way are not queued, and it completes", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const ids = [await world.event(tenant, "failed"), await world.event(tenant, "failed")];
        const { id } = await world.startReplay(tenant, "all");
        world.clock.advance(1);
        expect(await forget(tenant, ids[1] ?? "")).toBe(1);
        await world.queueAll(1);
        for (const delivery of await world.claim(tenant)) await world.settle(delivery, "delivered");
        expect(await world.replay(tenant, id)).toMatchObject({ status: "completed", queued: 1, delivered: 1 });
      });
    });

    describe("what the operator says of one account", () => {
      const own = { ownRetentionDays: 7, ownPayloadDays: 0, ownStorageBytes: 5_000 };

      test("is found, as long as there is such an account", async () => {
        const [tenant] = [await world.tenant(), await world.tenant()];
        expect(await world.store.accountsKeptOtherwise()).toEqual([]);
        await world.store.setLimits(tenant.key, own);
        expect(await world.store.accountsKeptOtherwise()).toEqual([
          { tenantKey: tenant.key, ...own, storageFullAt: null },
        ]);
        await world.store.setLimits(tenant.key, { ...own, ownRetentionDays: null });
        const [changed] = await world.store.accountsKeptOtherwise();
        expect(changed?.ownRetentionDays).toBeNull();
        await world.store.deleteTenant(tenant.key, 1);
        expect(await world.store.accountsKeptOtherwise()).toEqual([]);
      });

      test("is heeded when its storage is full: nothing is accepted, until there is room or it may store more", async () => {
        const tenant = await world.tenant({ urls: [a] });
        await world.store.setLimits(tenant.key, own);
        const accept = () => refusalOf(world.accept(tenant));
        await world.store.noteStorageFull(tenant.key, 9);
        await world.store.noteStorageFull(tenant.key, 10);
        expect(await accept()).toBe("rate_limited storage_exceeded");
        expect(await world.store.findTenant(tenant.id)).toMatchObject({ storageFullAt: 9 });
        await world.store.noteStorageFull(tenant.key, null);
        expect(await accept()).toBe("fulfilled");
        await world.store.noteStorageFull(tenant.key, 11);
        await world.store.setLimits(tenant.key, { ownStorageBytes: 6_000 });
        expect(await accept()).toBe("fulfilled");
        await world.store.deleteTenant(tenant.key, 1);
        await world.store.noteStorageFull(tenant.key, 12);
      });
    });

    describe("the storage of an account", () => {
      test("grows with what its events hold, and with nobody else's", async () => {
        const [tenant, other] = [await world.tenant({ urls: [a, b] }), await world.tenant({ urls: [a] })];
        expect(await world.store.storageOf(tenant.key)).toBe(0);
        await world.event(tenant, "delivered", "failed");
        const one = await world.store.storageOf(tenant.key);
        expect(one).toBeGreaterThan(300);
        const deliver = async (payloads: Uint8Array[]) => {
          const { deliveries } = await world.acceptOwned(other, { payloads });
          await Promise.all(deliveries.map((delivery) => world.settle(delivery, "delivered")));
        };
        await deliver(Array.from({ length: 300 }, () => bytes("{}")));
        expect(await world.store.storageOf(tenant.key)).toBe(one);
        await deliver(Array.from({ length: 250 }, () => bytes(`{"a":"${"x".repeat(1_000)}"}`)));
        const both = await world.store.storageOf(other.key);
        expect(both).toBeGreaterThan(250 * 1_000 + 300 * 150);
        expect(both).toBeLessThan(250 * 1_600 + 300 * 600);
      });

      test("takes in what still waits, like what has ended", async () => {
        const tenant = await world.tenant({ urls: [a, b] });
        const payloads = Array.from({ length: 25 }, (_, i) => bytes(JSON.stringify("x".repeat(i * 800))));
        const { deliveries } = await world.acceptOwned(tenant, { payloads });
        const waiting = await world.store.storageOf(tenant.key);
        const payloadBytes = payloads.reduce((sum, payload) => sum + payload.length, 0);
        expect(waiting).toBeGreaterThan(payloadBytes);
        expect(waiting).toBeLessThan(payloadBytes * 1.5);
        // The smallest and the largest event, one record of each.
        for (const delivery of [deliveries[0], deliveries.at(-1)])
          if (delivery) await world.settle(delivery, "delivered");
        const some = await world.store.storageOf(tenant.key);
        expect(some).toBeGreaterThan(waiting);
        expect(some).toBeLessThan(waiting + 2 * 500);
        for (const delivery of deliveries.slice(1, -1)) await world.settle(delivery, "delivered");
        const all = await world.store.storageOf(tenant.key);
        expect(all).toBeGreaterThan(some);
        expect(all).toBeLessThan(waiting + deliveries.length * 500);
      });
    });

    describe("the body of an answer", () => {
      const look = (after: AttemptRef | null) =>
        world.store.keptAnswers({ after, before: world.clock.now(), now: world.clock.now() });
      const kept = async () => (await look(null)).attempts;

      test("is found where it acknowledged, in the order of the log, and goes alone", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const ids: string[] = [];
        for (const outcome of ["delivered", "failed", "delivered", "delivered"] as const) {
          ids.push(await world.event(tenant, outcome));
        }
        world.clock.advance(1);
        const found = await kept();
        expect(found.map(({ eventSeq }) => eventSeq)).toEqual([ids[0], ids[2], ids[3]].map((id = "") => seqOf(id)));
        expect(new Set(found.map(({ webhookKey }) => webhookKey)).size).toBe(1);
        const other = await world.tenant();
        await world.store.forgetAnswers(other.key, found);
        await world.store.forgetAnswers(tenant.key, found.slice(0, 2));
        const bodies = await Promise.all(ids.map((id) => world.attemptsOf(tenant.key, id)));
        expect(bodies.map((attempts) => attempts?.[0]?.responseBody)).toEqual(["", "answer", "", "answer"]);
        expect(bodies.map((attempts) => attempts?.[0]?.statusCode)).toEqual([204, 503, 204, 204]);
        const [left] = await kept();
        const { attempts, lookedTo } = await look(left ?? null);
        expect({ attempts, lookedTo }).toMatchObject({ attempts: [], lookedTo: { key: left?.key } });
      });

      test("is not looked for yet while the attempt is new", async () => {
        const tenant = await world.tenant({ urls: [a] });
        await world.event(tenant, "delivered");
        expect(await kept()).toEqual([]);
      });
    });

    describe("an event whose payload was erased", () => {
      test("is shown without it, and found by its id alone", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const payloads = [bytes('{"name":"Ada"}'), bytes('{"name":"Ada, too"}')];
        const { eventIds, deliveries } = await world.acceptOwned(tenant, { payloads });
        for (const delivery of deliveries) await world.settle(delivery, "delivered");
        const [id = "", other = ""] = eventIds;
        world.clock.advance(1);
        expect(await erase(tenant, id, "none")).toBe(1);
        expect(await erase(tenant, id)).toBe(0);
        const [record] = (await world.recordsOf(tenant.key, id)) ?? [];
        expect(record).toMatchObject({ state: "DELIVERED", payload: null, payloadErased: true, attempts: 1 });
        for (const payload of ["whole", "start", "none"] as const) {
          const { records } = await world.page(tenant, { payload });
          expect(records.map(({ payloadErased }) => payloadErased === true)).toEqual([false, true]);
        }
        const found = async (text: string) =>
          (await world.page(tenant, { text })).records.map(({ eventId }) => eventId);
        expect(await found("Ada")).toEqual([other]);
        expect(await found(id)).toEqual([id]);
        expect(await refusalOf(world.store.previewDelivery(tenant.key, id))).toBe("invalid payload_erased");
        expect(await world.attemptsOf(tenant.key, id)).toHaveLength(1);
        expect(await world.totals(tenant)).toEqual({ PENDING: 0, DELIVERED: 2, FAILED: 0 });
      });

      test("is not replayed, by itself or with others", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const ids = [await world.event(tenant, "failed"), await world.event(tenant, "failed")];
        const [erased = "", whole = ""] = ids;
        world.clock.advance(1);
        await erase(tenant, erased);
        expect(await refusalOf(world.replayEvent(tenant, erased))).toBe("invalid payload_erased");
        const preview = (eventId: string) => world.store.previewReplay(tenant.key, newReplay("single", { eventId }));
        expect(await preview(erased)).toEqual({ selected: 1, payloadsErased: 1 });
        expect(await preview(whole)).toEqual({ selected: 1, payloadsErased: 0 });
        const { id } = await world.startReplay(tenant, "failed");
        await world.queueAll();
        expect(await world.due(tenant)).toMatchObject([{ eventId: whole }]);
        expect(await world.replay(tenant, id)).toMatchObject({ selected: 2, queued: 1, skipped: 1, payloadsErased: 1 });
        expect(await groupsOf(tenant)).toEqual([{ code: "http_status", waiting: 1, failed: 1 }]);
      });

      test("is told by a preview, with each filter and kind, and of one account alone", async () => {
        const tenant = await world.tenant({ urls: [a, b] });
        const stranger = await world.tenant({ urls: [a] });
        const strange = await world.event(stranger, "failed");
        const first = world.clock.now();
        const ids = [
          await world.event(tenant, "failed", "delivered"),
          await world.event(tenant, "delivered", "failed"),
        ];
        world.clock.advance(1_000);
        const second = world.clock.now();
        // The last one still waits for b, so its payload stays.
        ids.push(await world.event(tenant, "failed", "failed"), await world.event(tenant, "failed"));
        world.clock.advance(1);
        await erase(tenant, ids[0] ?? "", ids[2] ?? "", ids[3] ?? "");
        const preview = async (kind: ReplayKind, given: Partial<NewReplay> = {}, of = tenant) => {
          const found = await world.store.previewReplay(of.key, { kind, ...given });
          return [found.selected, found.payloadsErased];
        };
        expect(await preview("all")).toEqual([4, 2]);
        expect(await preview("failed")).toEqual([4, 2]);
        expect(await preview("failed", { filter: { webhook: a } })).toEqual([3, 2]);
        expect(await preview("all", { filter: { webhook: b, code: "http_status" } })).toEqual([2, 1]);
        expect(await preview("timeline", { from: first, to: first })).toEqual([2, 1]);
        expect(await preview("all", { filter: { from: second } })).toEqual([2, 1]);
        expect(await preview("all", { filter: { type: "unknown" } })).toEqual([0, 0]);
        expect(await preview("all", {}, stranger)).toEqual([1, 0]);
        await erase(stranger, strange);
        expect(await preview("all", {}, stranger)).toEqual([1, 1]);
        await world.startReplay(tenant, "all", { filter: { webhook: a } });
        expect((await world.queueAll(1)).at(-1)).toMatchObject({ selected: 4, queued: 2, payloadsErased: 2 });
      });
    });
  });
}
