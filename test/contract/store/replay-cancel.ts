import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { DueDelivery } from "../../../src/domain/delivery.ts";
import type { Replay } from "../../../src/domain/replay.ts";
import type { Tenant } from "../../../src/domain/tenant.ts";
import type { StoreBackend } from "../../support/store-backend.ts";
import { createWorld, type Outcome, type World } from "../../support/store-factory.ts";

const a = "https://a.example/hook";
const b = "https://b.example/hook";

/** `cancelReplay` and `returnCancelled` of `src/store/store.ts` as tests. */
export function replayCancelContract(backend: StoreBackend): void {
  describe(`${backend.name} is a store:`, () => {
    let world: World;
    beforeEach(async () => {
      world = await createWorld(backend);
    });
    afterEach(() => world.end());

    const cancel = async (tenant: Tenant, { id }: Pick<Replay, "id">) => {
      const cancelled = await world.store.cancelReplay(tenant.key, id, world.clock.now());
      expect(cancelled).toMatchObject({ status: "cancelled" });
    };

    /** @returns what is left */
    async function returnAll(limit = 100): Promise<"owned" | null> {
      for (;;) {
        const some = await world.store.returnCancelled(limit, world.clock.now());
        if (some === null || some === "owned") return some;
      }
    }

    const first = ([delivery]: readonly DueDelivery[]): DueDelivery => {
      if (!delivery) throw new Error("Nothing is due");
      return delivery;
    };

    /** All of a record that a replay changes. */
    async function recordsOf(tenant: Tenant, id: string) {
      const records = (await world.recordsOf(tenant.key, id)) ?? [];
      return records.map(({ payload: _, ...record }) => record);
    }

    describe("what waits for a cancelled replay", () => {
      const rows: [string, Outcome[]][] = [
        ["was delivered", ["delivered"]],
        ["failed", ["failed"]],
        ["waits for its retry", ["retry"]],
        ["waits for its first attempt", []],
      ];
      test.each(rows)("is again what it was: it %s", async (_, outcomes) => {
        const tenant = await world.tenant({ urls: [a] });
        const id = await world.event(tenant, ...outcomes);
        const [before, totals] = [await recordsOf(tenant, id), await world.totals(tenant)];
        world.clock.advance(1_000);
        const { replay } = await world.replayEvent(tenant, id);
        expect(await recordsOf(tenant, id)).not.toEqual(before);
        await cancel(tenant, replay);
        expect(await returnAll()).toBeNull();
        expect(await recordsOf(tenant, id)).toEqual(before);
        expect(await world.totals(tenant)).toEqual(totals);
        expect(await world.replay(tenant, replay.id)).toMatchObject({
          ...{ status: "cancelled", queued: 1, returned: 1 },
          ...{ delivered: 0, failed: 0, superseded: 0 },
        });
      });

      test("goes on with its own schedule, and wakes its webhook", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const id = await world.event(tenant, "retry");
        const { replay, webhooks } = await world.replayEvent(tenant, id);
        await cancel(tenant, replay);
        expect(await world.store.returnCancelled(10, world.clock.now())).toMatchObject({
          tenantId: tenant.id,
          webhooks,
          replay: { id: replay.id, returned: 1 },
        });
        expect(await world.due(tenant)).toEqual([]);
        world.clock.advance(60_000);
        const due = first(await world.claim(tenant));
        expect(due).toMatchObject({ attempts: 1, attemptsInRun: 1, replayKey: null, replayGroupId: null });
        expect(await world.settle(due, "delivered")).toMatchObject({ kind: "settled" });
        expect(await world.replay(tenant, replay.id)).toMatchObject({ delivered: 0, returned: 1 });
      });

      test("has the label of the replay before", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const id = await world.event(tenant, "failed");
        await world.replayEvent(tenant, id);
        await world.settle(first(await world.claim(tenant)), "failed");
        const before = await recordsOf(tenant, id);
        const replay = await world.startReplay(tenant, "all", { label: "another" });
        await world.queueAll();
        await cancel(tenant, replay);
        await returnAll();
        expect(await recordsOf(tenant, id)).toEqual(before);
      });

      test("goes, if there was none for its webhook", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const id = await world.event(tenant, "delivered");
        const before = await recordsOf(tenant, id);
        await world.setUrls(tenant, a, b);
        const { replay } = await world.replayEvent(tenant, id);
        await cancel(tenant, replay);
        await returnAll();
        expect(await recordsOf(tenant, id)).toEqual(before);
        expect(await world.totals(tenant)).toEqual({ PENDING: 0, DELIVERED: 1, FAILED: 0 });
        expect(await world.replay(tenant, replay.id)).toMatchObject({ queued: 2, returned: 2 });
      });

      test("has failed in the place of a record that it has replaced", async () => {
        const tenant = await world.tenant();
        const id = await world.event(tenant);
        const [before] = await recordsOf(tenant, id);
        await world.setUrls(tenant, a, b);
        const { replay } = await world.replayEvent(tenant, id);
        await cancel(tenant, replay);
        await returnAll();
        expect(await recordsOf(tenant, id)).toEqual(
          [a, b].map((targetWebhook) => ({ ...before, targetWebhook }) as never),
        );
        expect(await world.totals(tenant)).toEqual({ PENDING: 0, DELIVERED: 0, FAILED: 2 });
      });

      test("is what it was before the replay that it has overtaken, which has ended with that", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const id = await world.event(tenant, "failed");
        const before = await recordsOf(tenant, id);
        const one = (await world.replayEvent(tenant, id)).replay;
        const two = (await world.replayEvent(tenant, id)).replay;
        await cancel(tenant, two);
        await returnAll();
        expect(await recordsOf(tenant, id)).toEqual(before);
        expect(await world.replay(tenant, one.id)).toMatchObject({ status: "completed", superseded: 1 });
      });

      test("stays with the replay that has overtaken it", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const id = await world.event(tenant, "failed");
        const one = (await world.replayEvent(tenant, id)).replay;
        await cancel(tenant, one);
        const two = (await world.replayEvent(tenant, id)).replay;
        expect(await returnAll()).toBeNull();
        await world.settle(first(await world.claim(tenant)), "delivered");
        expect(await world.replay(tenant, one.id)).toMatchObject({ status: "cancelled", superseded: 1, returned: 0 });
        expect(await world.replay(tenant, two.id)).toMatchObject({ status: "completed", delivered: 1 });
      });

      test("is what it was after an attempt of the replay, too, which stays in the log", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const id = await world.event(tenant, "delivered");
        const [before] = await recordsOf(tenant, id);
        const { replay } = await world.replayEvent(tenant, id);
        await world.settle(first(await world.claim(tenant)), "retry", { durationMs: 3000 });
        await cancel(tenant, replay);
        await returnAll();
        const lastAttemptAt = world.clock.now();
        expect(await recordsOf(tenant, id)).toEqual([
          { ...before, attempts: 2, lastAttemptAt, lastDurationMs: 3000 } as never,
        ]);
        expect((await world.attemptsOf(tenant.key, id))?.map(({ number }) => number)).toEqual([1, 2]);
      });

      test("is not claimed, also before it has returned; what waits beside it is", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const ids = [await world.event(tenant, "failed"), await world.event(tenant, "failed")];
        const replay = await world.startReplay(tenant, "all");
        await world.queueAll();
        const fresh = await world.event(tenant);
        await cancel(tenant, replay);
        const due = await world.claim(tenant);
        expect(due.map(({ eventId }) => eventId)).toEqual([fresh]);
        for (const id of ids) expect(await world.records(tenant, id)).toEqual([`FAILED ${a}`]);
        expect(await world.replay(tenant, replay.id)).toMatchObject({ returned: 2 });
        expect(await returnAll()).toBeNull();
      });

      test("is failed by the next replay of what has failed, and by none that was asked for before", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const id = await world.event(tenant, "failed");
        world.clock.advance(1_000);
        const all = await world.startReplay(tenant, "all");
        await world.queueAll();
        world.clock.advance(1);
        const early = await world.startReplay(tenant, "failed");
        expect(early.selected).toBe(0);
        world.clock.advance(1_000);
        await cancel(tenant, all);
        await returnAll();
        expect(await world.queueAll()).toMatchObject([{ id: early.id, status: "completed", queued: 0 }]);
        expect(await world.startReplay(tenant, "failed")).toMatchObject({ selected: 1 });
        expect(await world.queueAll()).toMatchObject([{ queued: 1 }]);
        expect(await world.records(tenant, id)).toEqual([`PENDING ${a}`]);
      });

      test("is failed by the replay of what has failed that was asked for while it was, before that began", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const id = await world.event(tenant, "failed");
        world.clock.advance(1_000);
        const one = await world.startReplay(tenant, "failed");
        const two = await world.startReplay(tenant, "failed");
        expect([one.selected, two.selected]).toEqual([1, 1]);
        world.clock.advance(1_000);
        await world.queueAll();
        world.clock.advance(1_000);
        await cancel(tenant, one);
        await returnAll();
        expect(await world.queueAll()).toMatchObject([{ id: two.id, queued: 1, skipped: 0 }]);
        expect(await world.records(tenant, id)).toEqual([`PENDING ${a}`]);
      });

      test("waits for its webhook no more, if that was removed meanwhile", async () => {
        const tenant = await world.tenant({ urls: [a, b] });
        const id = await world.event(tenant, "retry", "failed");
        const { replay } = await world.replayEvent(tenant, id);
        await world.setUrls(tenant, b);
        await cancel(tenant, replay);
        await returnAll();
        while (await world.store.failUndeliverable(10));
        expect(await world.records(tenant, id)).toEqual([`FAILED ${a}`, `FAILED ${b}`]);
        expect(await world.totals(tenant)).toEqual({ PENDING: 0, DELIVERED: 0, FAILED: 2 });
      });

      test("of a deleted account is left to be erased", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const { replay } = await world.replayEvent(tenant, await world.event(tenant, "failed"));
        await cancel(tenant, replay);
        await world.store.deleteTenant(tenant.key, 1);
        expect(await returnAll()).toBeNull();
        while (await world.store.eraseDeleted(100));
        expect(await world.store.queueDepth()).toMatchObject({ pending: 0 });
      });
    });

    describe("an attempt that is in flight as its replay is cancelled", () => {
      const rows: [Outcome, string, Partial<Replay>][] = [
        ["delivered", "DELIVERED", { delivered: 1, returned: 0 }],
        ["failed", "FAILED", { failed: 1, returned: 0 }],
        ["retry", "DELIVERED", { delivered: 0, returned: 1 }],
      ];
      test.each(rows)("counts: %s, and the record is %s", async (outcome, state, counts) => {
        const tenant = await world.tenant({ urls: [a] });
        const id = await world.event(tenant, "delivered");
        const { replay } = await world.replayEvent(tenant, id);
        const inFlight = first(await world.claim(tenant));
        await cancel(tenant, replay);
        expect(await returnAll()).toBe("owned");
        expect(await world.records(tenant, id)).toEqual([`PENDING ${a}`]);
        expect(await world.settle(inFlight, outcome)).toMatchObject({ kind: "settled" });
        expect(await returnAll()).toBeNull();
        expect(await world.records(tenant, id)).toEqual([`${state} ${a}`]);
        expect(await world.replay(tenant, replay.id)).toMatchObject({ status: "cancelled", ...counts });
        world.clock.advance(60_000);
        expect(await world.due(tenant)).toEqual([]);
        await world.totals(tenant);
      });

      test("and is given back returns as well", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const id = await world.event(tenant, "failed");
        const { replay } = await world.replayEvent(tenant, id);
        const owned = await world.claim(tenant);
        await cancel(tenant, replay);
        expect(await returnAll()).toBe("owned");
        await world.store.release(owned);
        expect(await returnAll()).toBeNull();
        expect(await world.records(tenant, id)).toEqual([`FAILED ${a}`]);
      });

      test("and that nobody knows of after a crash returns", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const id = await world.event(tenant, "delivered");
        const { replay } = await world.replayEvent(tenant, id);
        await world.store.release(await world.claim(tenant));
        await cancel(tenant, replay);
        await world.reopen();
        expect(await world.claim(tenant)).toEqual([]);
        expect(await returnAll()).toBeNull();
        expect(await world.records(tenant, id)).toEqual([`DELIVERED ${a}`]);
      });
    });

    describe("a replay that is cancelled", () => {
      async function history(count: number) {
        const tenant = await world.tenant({ urls: [a] });
        for (let i = 0; i < count; i += 1) await world.event(tenant, i % 2 === 0 ? "delivered" : "failed");
        return { tenant, totals: await world.totals(tenant), replay: await world.startReplay(tenant, "all") };
      }

      test.each([
        ["before its turn", 0, 0],
        ["while it is queued", 2, 4],
        ["when all is queued", 4, 7],
      ])("%s leaves everything as it was", async (_, batches, queued) => {
        const { tenant, totals, replay } = await history(7);
        for (let i = 0; i < batches; i += 1) await world.store.queueReplayBatch(2, world.clock.now());
        await cancel(tenant, replay);
        expect(await world.store.queueReplayBatch(2, world.clock.now())).toBeNull();
        expect(await returnAll(3)).toBeNull();
        expect(await world.totals(tenant)).toEqual(totals);
        expect(await world.due(tenant)).toEqual([]);
        expect(await world.replay(tenant, replay.id)).toMatchObject({ status: "cancelled", queued, returned: queued });
      });

      test("goes on to return after a restart, and returns nothing twice", async () => {
        const { tenant, totals, replay } = await history(7);
        await world.queueAll();
        await cancel(tenant, replay);
        for (let i = 0; i < 3; i += 1) {
          await world.store.returnCancelled(2, world.clock.now());
          await world.reopen();
        }
        expect(await world.replay(tenant, replay.id)).toMatchObject({ returned: 6 });
        expect(await returnAll(2)).toBeNull();
        await world.reopen();
        expect(await returnAll(2)).toBeNull();
        expect(await world.replay(tenant, replay.id)).toMatchObject({ returned: 7, queued: 7 });
        expect(await world.totals(tenant)).toEqual(totals);
      });

      test("lets the next one begin before all has returned", async () => {
        const { tenant, replay } = await history(3);
        await world.queueAll();
        const next = await world.startReplay(tenant, "failed");
        await cancel(tenant, replay);
        await world.store.returnCancelled(1, world.clock.now());
        expect(await world.queueAll()).toMatchObject([{ id: next.id, status: "completed", queued: 0 }]);
        expect(await returnAll()).toBeNull();
      });

      test("once it is completed, or cancelled, stays as it is", async () => {
        const { tenant, replay } = await history(1);
        await world.queueAll();
        await world.settle(first(await world.claim(tenant)), "delivered");
        const ended = await world.replay(tenant, replay.id);
        expect(await world.store.cancelReplay(tenant.key, replay.id, 1)).toEqual(ended);
        const again = await world.startReplay(tenant, "all");
        await cancel(tenant, again);
        const cancelled = await world.replay(tenant, again.id);
        world.clock.advance(1_000);
        expect(await world.store.cancelReplay(tenant.key, again.id, world.clock.now())).toEqual(cancelled);
        expect(await returnAll()).toBeNull();
      });
    });
  });
}
