import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { StoreBackend } from "../../support/store-backend.ts";
import { bytes, createWorld, type World } from "../../support/store-factory.ts";

const a = "https://a.example/hook";
const b = "https://b.example/hook";
const c = "https://c.example/hook";

/** What a record to `a` says after an attempt that `settlementOf` has failed. */
const answered503 = { errorReason: `HTTP 503 from ${a}`, errorCode: "http_status", statusCode: 503 };

/** `DeliveryVerbs` of `src/store/store.ts` as tests; `ownership.ts` has whose a delivery is. */
export function deliveriesContract(backend: StoreBackend): void {
  describe(`${backend.name} is a store:`, () => {
    let world: World;
    beforeEach(async () => {
      world = await createWorld(backend);
    });
    afterEach(() => world.end());

    test("deliveries have the trace of their event, as it was accepted, claimed, replayed and previewed", async () => {
      const tenant = await world.tenant({ urls: [a] });
      const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\na=1,b=2";
      const payloads = [bytes("{}"), bytes("[]")];
      const { deliveries, eventIds } = await world.acceptOwned(tenant, { payloads, trace });
      const without = await world.acceptOwned(tenant, { payloads });
      const tracesOf = (some: readonly { trace: string | null }[]) => some.map((delivery) => delivery.trace);
      expect([tracesOf(deliveries), tracesOf(without.deliveries)]).toEqual([
        [trace, trace],
        [null, null],
      ]);
      await world.store.release([...deliveries, ...without.deliveries]);
      await world.reopen();
      const claimed = await world.claim(tenant);
      expect(tracesOf(claimed)).toEqual([trace, trace, null, null]);
      for (const delivery of claimed) await world.settle(delivery, "delivered");
      await world.replayEvent(tenant, eventIds[0] ?? "");
      expect(tracesOf(await world.claim(tenant))).toEqual([trace]);
      const preview = (id = "") => world.store.previewDelivery(tenant.key, id);
      expect(await preview(eventIds[0])).toMatchObject({ trace });
      expect(await preview(without.eventIds[0])).toMatchObject({ trace: null });
    });

    describe("settle", () => {
      test("delivered", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const delivery = await world.delivery(tenant);
        await world.settle(delivery, "retry", { durationMs: 3000 });
        expect(await world.recordsOf(tenant.key, delivery.eventId)).toMatchObject([{ lastDurationMs: 3000 }]);
        world.clock.advance(60_000);
        const [again] = await world.claim(tenant);
        expect(again).toMatchObject({ attempts: 1, attemptsInRun: 1, run: 1 });
        expect(again && (await world.settle(again, "delivered"))).toMatchObject({ kind: "settled" });
        expect(await world.recordsOf(tenant.key, delivery.eventId)).toMatchObject([
          {
            ...{ state: "DELIVERED", errorReason: null, errorCode: null, statusCode: null },
            ...{ attempts: 2, lastAttemptAt: world.clock.now(), lastDurationMs: 12, nextAttemptAt: null },
          },
        ]);
        expect(await world.totals(tenant)).toEqual({ PENDING: 0, DELIVERED: 1, FAILED: 0 });
      });

      test("failed", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const id = await world.event(tenant, "failed");
        expect(await world.recordsOf(tenant.key, id)).toMatchObject([
          { state: "FAILED", ...answered503, attempts: 1, nextAttemptAt: null },
        ]);
        expect(await world.totals(tenant)).toEqual({ PENDING: 0, DELIVERED: 0, FAILED: 1 });
      });

      test("retry leaves the record pending until its time", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const id = await world.event(tenant, "retry");
        const at = world.clock.now() + 60_000;
        expect(await world.recordsOf(tenant.key, id)).toMatchObject([
          { state: "PENDING", ...answered503, attempts: 1, nextAttemptAt: at },
        ]);
        expect(await world.due(tenant)).toEqual([]);
        expect(await world.totals(tenant)).toEqual({ PENDING: 1, DELIVERED: 0, FAILED: 0 });
      });

      test("of an overtaken run goes to the log only, and the numbers go on", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const delivery = await world.delivery(tenant);
        await world.replayEvent(tenant, delivery.eventId);
        expect(await world.settle(delivery, "failed")).toMatchObject({ kind: "superseded" });
        expect(await world.records(tenant, delivery.eventId)).toEqual([`PENDING ${a}`]);
        const [newer] = await world.claim(tenant);
        expect(newer).toMatchObject({ run: 2, attemptsInRun: 0, attempts: 1 });
        expect(newer && (await world.settle(newer, "delivered"))).toMatchObject({ kind: "settled" });
        expect(await world.settle(delivery, "delivered")).toMatchObject({ kind: "superseded" });
        const attempts = await world.attemptsOf(tenant.key, delivery.eventId);
        expect(attempts?.map(({ number, replayGroupId }) => [number, replayGroupId])).toEqual([
          [1, null],
          [2, "the single replay"],
          [3, null],
        ]);
        expect(await world.recordsOf(tenant.key, delivery.eventId)).toMatchObject([{ attempts: 3 }]);
        expect(await world.totals(tenant)).toEqual({ PENDING: 0, DELIVERED: 1, FAILED: 0 });
      });

      test("of a record that a replay has replaced is gone, but logged", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const delivery = await world.delivery(tenant);
        await world.setUrls(tenant, b);
        await world.store.failUndeliverable(100);
        await world.replayEvent(tenant, delivery.eventId);
        const settled = await world.settle(delivery, "delivered");
        expect(settled).toMatchObject({ kind: "gone", attempt: expect.anything() });
        expect(await world.records(tenant, delivery.eventId)).toEqual([`PENDING ${b}`]);
        expect(await world.attemptsOf(tenant.key, delivery.eventId)).toMatchObject([{ targetWebhook: a, number: 1 }]);
        expect(await world.totals(tenant)).toEqual({ PENDING: 1, DELIVERED: 0, FAILED: 0 });
      });

      test("to a URL that was registered again meanwhile is counted by the record that goes on", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const delivery = await world.delivery(tenant);
        await world.setUrls(tenant);
        await world.store.failUndeliverable(100);
        await world.setUrls(tenant, a);
        await world.replayEvent(tenant, delivery.eventId);
        const [newer] = await world.claim(tenant);
        if (newer) await world.settle(newer, "retry");
        await world.settle(delivery, "delivered");
        world.clock.advance(60_000);
        const [again] = await world.claim(tenant);
        if (again) await world.settle(again, "delivered");
        const attempts = await world.attemptsOf(tenant.key, delivery.eventId);
        expect(attempts?.map(({ number }) => number)).toEqual([1, 2, 3]);
        expect(await world.recordsOf(tenant.key, delivery.eventId)).toMatchObject([{ attempts: 3 }]);
      });

      test("of a deleted tenant is gone and logs nothing, before its rows are erased and after", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const other = await world.tenant({ urls: [a] });
        const [delivery, neighbour] = [await world.delivery(tenant), await world.delivery(other)];
        const { attempt } = await world.settle(delivery, "retry");
        await world.store.deleteTenant(tenant.key, world.clock.now());
        const gone = { kind: "gone", attempt: null } as const;
        expect(await world.settle(delivery, "delivered")).toEqual(gone);
        while (await world.store.eraseDeleted(100));
        const [settled, late] = await Promise.all([
          world.settle(neighbour, "delivered"),
          world.settle(delivery, "delivered"),
        ]);
        expect(late).toEqual(gone);
        expect(settled.kind).toBe("settled");
        // The body of the erased attempt must not reach the attempt that came after it.
        if (attempt) await world.store.completeResponseBody(attempt, bytes("of another tenant"));
        expect(await world.attemptsOf(other.key, neighbour.eventId)).toMatchObject([{ responseBody: "answer" }]);
      });
    });

    describe("the queue", () => {
      test("has a lane for each webhook with pending deliveries, whenever they are due", async () => {
        const tenant = await world.tenant({ urls: [a, b, c] });
        const [forA, forB, forC] = (await world.store.webhooks(tenant.key)).map(({ key }) => key);
        const start = world.clock.now();
        await world.event(tenant, "retry", "delivered", "delivered");
        expect(await world.store.discover()).toEqual([
          { webhookKey: forA ?? 0, tenantKey: tenant.key, firstDueAt: start + 60_000 },
        ]);
        world.clock.advance(10);
        await world.event(tenant, "failed");
        expect(await world.store.discover()).toEqual([
          { webhookKey: forA ?? 0, tenantKey: tenant.key, firstDueAt: start + 60_000 },
          { webhookKey: forB ?? 0, tenantKey: tenant.key, firstDueAt: start + 10 },
          { webhookKey: forC ?? 0, tenantKey: tenant.key, firstDueAt: start + 10 },
        ]);
        await world.setUrls(tenant, a, c);
        expect((await world.store.discover()).map(({ webhookKey }) => webhookKey)).toEqual([forA ?? 0, forC ?? 0]);
        await world.store.deleteTenant(tenant.key, 1);
        expect(await world.store.discover()).toEqual([]);
      });

      test("has no lane for a webhook whose deliveries are all somebody's", async () => {
        const tenant = await world.tenant({ urls: [a, b] });
        const start = world.clock.now();
        const { deliveries } = await world.acceptOwned(tenant);
        expect(await world.store.discover()).toEqual([]);
        world.clock.advance(10);
        await world.accept(tenant);
        const [forA, forB] = (await world.store.webhooks(tenant.key)).map(({ key }) => ({
          tenantKey: tenant.key,
          webhookKey: key,
          firstDueAt: start + 10,
        }));
        expect<unknown>(await world.store.discover()).toEqual([forA, forB]);
        await world.store.release(deliveries.slice(0, 1));
        expect<unknown>(await world.store.discover()).toEqual([{ ...forA, firstDueAt: start }, forB]);
        for (const delivery of await world.claim(tenant)) await world.settle(delivery, "delivered");
        expect(await world.store.discover()).toEqual([]);
      });

      test("tells what fell due in a range, later than its start and no later than its end", async () => {
        const tenant = await world.tenant({ urls: [a, b] });
        const start = world.clock.now();
        await world.event(tenant, "retry", "delivered");
        const [forA, forB] = (await world.store.webhooks(tenant.key)).map(({ key }) => key);
        world.clock.advance(1_000);
        await world.accept(tenant);
        const found = async (after: number, until: number) =>
          (await world.store.discover({ after: start + after, until: start + until })).map((lane) => [
            lane.webhookKey,
            lane.firstDueAt - start,
          ]);
        const both: unknown[] = [
          [forA, 1_000],
          [forB, 1_000],
        ];
        expect<unknown[]>(await found(0, 999)).toEqual([]);
        expect<unknown[]>(await found(999, 1_000)).toEqual(both);
        expect<unknown[]>(await found(1_000, 59_999)).toEqual([]);
        expect<unknown[]>(await found(1_000, 60_000)).toEqual([[forA, 60_000]]);
        expect<unknown[]>(await found(0, 60_000)).toEqual(both);
        await world.acceptOwned(tenant);
        await world.claim(tenant);
        expect<unknown[]>(await found(0, 59_999)).toEqual([]);
      });

      test("gives the longest waiting first, so many, and when the next is due", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const [webhook] = await world.store.webhooks(tenant.key);
        const start = world.clock.now();
        const due = async (limit: number, now = world.clock.now()) => {
          const ref = { tenantKey: tenant.key, webhookKey: webhook?.key ?? 0 };
          const claimed = await world.store.claim(ref, now, limit);
          await world.store.release(claimed.due);
          return claimed;
        };
        expect(await due(10)).toEqual({ due: [], nextDueAt: null });
        const retried = await world.event(tenant, "retry");
        expect(await due(10)).toEqual({ due: [], nextDueAt: start + 60_000 });
        world.clock.advance(120_000);
        const ids = await world.acceptMany(tenant, 2);
        const found = await due(10);
        expect(found.due.map(({ eventId }) => eventId)).toEqual([retried, ...ids]);
        expect(found.nextDueAt).toBeNull();
        expect((await due(2)).due).toHaveLength(2);
        expect((await due(2)).nextDueAt).toBe(world.clock.now());
        expect(await due(10, start + 70_000)).toMatchObject({
          due: [{ eventId: retried }],
          nextDueAt: start + 120_000,
        });
        expect(await world.store.queueDepth()).toEqual({ pending: 3, oldestDueAt: start + 60_000 });
      });

      test("pauses for a suspension by the operator, not for one for payment", async () => {
        const tenant = await world.tenant({ urls: [a] });
        await world.accept(tenant);
        await world.store.suspend(tenant.key, "payment", 1);
        expect(await world.due(tenant)).toHaveLength(1);
        await world.store.suspend(tenant.key, "operator", 1);
        expect(await world.due(tenant)).toEqual([]);
        expect(await world.store.discover()).toHaveLength(1);
        expect(await world.store.queueDepth()).toEqual({ pending: 0, oldestDueAt: null });
        await world.store.resume(tenant.key, "operator");
        expect(await world.due(tenant)).toHaveLength(1);
      });

      test("of a deleted tenant is empty", async () => {
        const tenant = await world.tenant({ urls: [a] });
        await world.accept(tenant);
        const [lane] = await world.store.discover();
        await world.store.deleteTenant(tenant.key, 1);
        const empty = { due: [], nextDueAt: null };
        expect(lane && (await world.store.claim(lane, world.clock.now(), 10))).toEqual(empty);
        expect(await world.store.queueDepth()).toEqual({ pending: 0, oldestDueAt: null });
      });
    });

    describe("a removed webhook", () => {
      const reason = "The webhook was removed before the delivery succeeded";
      const removed = { errorReason: reason, errorCode: "webhook_removed", statusCode: null };
      const succeeded = { errorReason: null, errorCode: null, statusCode: null };

      test("gives out nothing from then on, and its records fail in batches", async () => {
        const tenant = await world.tenant({ urls: [a, b] });
        await world.acceptMany(tenant, 5);
        await world.setUrls(tenant, b);
        expect((await world.due(tenant)).map(({ url }) => url)).toEqual([b, b, b, b, b]);
        expect(await world.store.failUndeliverable(3)).toBe(true);
        expect(await world.totals(tenant)).toEqual({ PENDING: 7, DELIVERED: 0, FAILED: 3 });
        expect(await world.store.failUndeliverable(3)).toBe(false);
        expect(await world.totals(tenant)).toEqual({ PENDING: 5, DELIVERED: 0, FAILED: 5 });
        expect(await world.store.failUndeliverable(3)).toBe(false);
        const { records } = await world.page(tenant, { state: "FAILED" });
        for (const record of records) expect(record).toMatchObject({ targetWebhook: a, ...removed });
      });

      test("does not come back to life with its URL", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const [before] = await world.store.webhooks(tenant.key);
        await world.accept(tenant);
        await world.setUrls(tenant);
        await world.setUrls(tenant, a);
        const [after] = await world.store.webhooks(tenant.key);
        expect(after?.key).not.toBe(before?.key);
        expect(await world.due(tenant)).toEqual([]);
        while (await world.store.failUndeliverable(10));
        expect(await world.totals(tenant)).toEqual({ PENDING: 0, DELIVERED: 0, FAILED: 1 });
      });

      const late: readonly [Parameters<World["settle"]>[1], boolean, string, object][] = [
        ["delivered", false, "DELIVERED", succeeded],
        ["delivered", true, "DELIVERED", succeeded],
        ["failed", false, "FAILED", answered503],
        ["failed", true, "FAILED", answered503],
        ["retry", false, "FAILED", removed],
        ["retry", true, "FAILED", removed],
      ];
      test.each(late)(
        "an attempt under way that ends %s (record failed before: %p) makes it %s",
        async (outcome, drained, state, why) => {
          const tenant = await world.tenant({ urls: [a] });
          const delivery = await world.delivery(tenant);
          await world.setUrls(tenant);
          if (drained) await world.store.failUndeliverable(10);
          expect(await world.settle(delivery, outcome)).toMatchObject({ kind: "settled" });
          expect(await world.recordsOf(tenant.key, delivery.eventId)).toMatchObject([
            { state, ...why, attempts: 1, lastDurationMs: 12 },
          ]);
          const { [state as "FAILED"]: counted } = await world.totals(tenant);
          expect(counted).toBe(1);
        },
      );

      test("its replay ends with the failures, and is corrected by a late success", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const id = await world.event(tenant, "failed");
        const { replay } = await world.replayEvent(tenant, id);
        const [delivery] = await world.claim(tenant);
        await world.setUrls(tenant);
        await world.store.failUndeliverable(10);
        expect(await world.replay(tenant, replay.id)).toMatchObject({ status: "completed", failed: 1, delivered: 0 });
        if (delivery) await world.settle(delivery, "delivered");
        expect(await world.replay(tenant, replay.id)).toMatchObject({ status: "completed", failed: 0, delivered: 1 });
      });
    });
  });
}
