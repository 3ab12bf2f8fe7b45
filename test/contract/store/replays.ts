import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { DeliveryState } from "../../../src/domain/delivery.ts";
import type { Tenant } from "../../../src/domain/tenant.ts";
import type { StoreBackend } from "../../support/store-backend.ts";
import { createWorld, newReplay, refusalOf, type World } from "../../support/store-factory.ts";

const a = "https://a.example/hook";
const b = "https://b.example/hook";
const c = "https://c.example/hook";

/** `ReplayVerbs` of `src/store/store.ts` as tests. */
export function replaysContract(backend: StoreBackend): void {
  describe(`${backend.name} is a store:`, () => {
    let world: World;
    beforeEach(async () => {
      world = await createWorld(backend);
    });
    afterEach(() => world.end());

    describe("a replay of one event", () => {
      test("starts a new run at once, of whatever state", async () => {
        const tenant = await world.tenant({ urls: [a, b, c] });
        const id = await world.event(tenant, "delivered", "failed", "retry");
        const { replay, webhooks } = await world.replayEvent(tenant, id);
        expect(webhooks).toEqual(
          (await world.store.webhooks(tenant.key)).map(({ key }) => ({ tenantKey: tenant.key, webhookKey: key })),
        );
        expect(replay).toMatchObject({ kind: "single", status: "running", selected: 1, queued: 3, skipped: 0 });
        const due = await world.claim(tenant);
        expect(
          due.map(({ url, run, attempts, attemptsInRun, replayGroupId }) => [
            url,
            run,
            attempts,
            attemptsInRun,
            replayGroupId,
          ]),
        ).toEqual([a, b, c].map((url) => [url, 2, 1, 0, "the single replay"]));
        expect(await world.totals(tenant)).toEqual({ PENDING: 3, DELIVERED: 0, FAILED: 0 });
        for (const delivery of due) await world.settle(delivery, delivery.url === b ? "failed" : "delivered");
        expect(await world.replay(tenant, replay.id)).toMatchObject({
          status: "completed",
          delivered: 2,
          failed: 1,
          completedAt: world.clock.now(),
        });
        const records = await world.recordsOf(tenant.key, id);
        expect(records?.map(({ attempts, replayGroupId }) => [attempts, replayGroupId])).toEqual(
          [0, 0, 0].map(() => [2, "the single replay"]),
        );
      });

      test("tells the event, also when nothing delivers it", async () => {
        const tenant = await world.tenant();
        const id = await world.event(tenant);
        const { replay, eventIds } = await world.replayEvent(tenant, id);
        expect({ queued: replay.queued, eventIds }).toEqual({ queued: 0, eventIds: [id] });
      });

      test("is found by what the deliveries that it began say of it", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const { replay } = await world.replayEvent(tenant, await world.event(tenant, "failed"));
        const [delivery] = await world.claim(tenant);
        const replayKey = delivery?.replayKey ?? 0;
        expect(await world.store.replayByKey({ tenantKey: tenant.key, replayKey })).toMatchObject({ id: replay.id });
        expect(await world.store.replayByKey({ tenantKey: tenant.key, replayKey: replayKey + 1 })).toBeNull();
      });

      test("is what its records are listed by, in the queue and after, until another one begins them again", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const id = await world.event(tenant, "failed");
        await world.event(tenant, "failed");
        const { replay } = await world.replayEvent(tenant, id);
        const listed = async (given: { replayId: string; state?: DeliveryState; text?: string }, who = tenant) => {
          const { records, total, totalIsExact } = await world.page(who, given);
          expect([records.length, totalIsExact]).toEqual([total, true]);
          return records.map(({ eventId, state }) => `${state} ${eventId === id}`);
        };
        expect(await listed({ replayId: replay.id })).toEqual(["PENDING true"]);
        expect(await listed({ replayId: replay.id, state: "FAILED" })).toEqual([]);
        const [sent] = await world.claim(tenant);
        if (sent) await world.settle(sent, "delivered");
        expect(await listed({ replayId: replay.id })).toEqual(["DELIVERED true"]);
        expect(await listed({ replayId: replay.id, state: "DELIVERED" })).toEqual(["DELIVERED true"]);
        expect(await listed({ replayId: replay.id, text: id })).toEqual(["DELIVERED true"]);
        expect(await listed({ replayId: "rpl_none" })).toEqual([]);
        expect(await listed({ replayId: replay.id }, await world.tenant({ urls: [a] }))).toEqual([]);

        const again = (await world.replayEvent(tenant, id)).replay;
        expect(await listed({ replayId: replay.id })).toEqual([]);
        expect(await listed({ replayId: again.id })).toEqual(["PENDING true"]);
      });

      test("overtakes an earlier one", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const id = await world.event(tenant, "failed");
        const first = (await world.replayEvent(tenant, id)).replay;
        const [overtaken] = await world.claim(tenant);
        const second = (await world.replayEvent(tenant, id)).replay;
        expect(await world.replay(tenant, first.id)).toMatchObject({ status: "completed", superseded: 1 });
        if (overtaken) await world.settle(overtaken, "delivered");
        expect(await world.replay(tenant, first.id)).toMatchObject({ superseded: 1, delivered: 0 });
        expect(await world.replay(tenant, second.id)).toMatchObject({ status: "running", queued: 1 });
      });

      test("replaces the record of an event that found no webhook", async () => {
        const tenant = await world.tenant();
        const id = await world.event(tenant);
        const { replay } = await world.replayEvent(tenant, id);
        expect(replay).toMatchObject({ status: "completed", queued: 0, skipped: 1 });
        expect(await world.records(tenant, id)).toEqual(["FAILED"]);
        await world.setUrls(tenant, a, b);
        expect((await world.replayEvent(tenant, id)).replay).toMatchObject({ queued: 2, skipped: 0 });
        expect(await world.records(tenant, id)).toEqual([`PENDING ${a}`, `PENDING ${b}`]);
        expect(await world.totals(tenant)).toEqual({ PENDING: 2, DELIVERED: 0, FAILED: 0 });
      });

      test("replaces a failed record of a URL that is gone; its attempts stay in the log", async () => {
        const tenant = await world.tenant({ urls: [a, b] });
        const id = await world.event(tenant, "failed", "delivered");
        await world.setUrls(tenant, b);
        expect((await world.replayEvent(tenant, id)).replay).toMatchObject({ queued: 1, skipped: 1 });
        expect(await world.records(tenant, id)).toEqual([`FAILED ${a}`, `PENDING ${b}`]);
        await world.setUrls(tenant, b, c);
        expect((await world.replayEvent(tenant, id)).replay).toMatchObject({ queued: 2, skipped: 0 });
        expect(await world.records(tenant, id)).toEqual([`PENDING ${b}`, `PENDING ${c}`]);
        expect((await world.attemptsOf(tenant.key, id))?.map(({ targetWebhook }) => targetWebhook)).toEqual([a, b]);
        expect(await world.totals(tenant)).toEqual({ PENDING: 2, DELIVERED: 0, FAILED: 0 });
      });

      test("leaves a delivered record of a URL that is gone", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const id = await world.event(tenant, "delivered");
        await world.setUrls(tenant, b);
        await world.replayEvent(tenant, id);
        expect(await world.records(tenant, id)).toEqual([`DELIVERED ${a}`, `PENDING ${b}`]);
      });

      test("goes on counting the attempts of a URL that was registered again", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const id = await world.event(tenant, "failed");
        await world.setUrls(tenant);
        await world.setUrls(tenant, a);
        await world.replayEvent(tenant, id);
        const [delivery] = await world.claim(tenant);
        if (delivery) await world.settle(delivery, "delivered");
        const attempts = await world.attemptsOf(tenant.key, id);
        expect(attempts?.map(({ number }) => number)).toEqual([1, 2]);
      });

      test("of an event that is not there is refused", async () => {
        const tenant = await world.tenant();
        const id = await world.event(await world.tenant());
        expect(await refusalOf(world.replayEvent(tenant, id))).toBe("not_found event_not_found");
        expect(await refusalOf(world.replayEvent(tenant, "evt_x"))).toBe("not_found event_not_found");
        expect((await world.replaysOf(tenant.key, { offset: 0, limit: 10 })).total).toBe(0);
      });
    });

    describe("a bulk replay", () => {
      const settleAll = async (tenant: Tenant) => {
        for (const delivery of await world.claim(tenant)) await world.settle(delivery, "delivered");
      };

      test("of all takes every event that was there when it was asked for", async () => {
        const tenant = await world.tenant({ urls: [a] });
        for (const outcome of ["delivered", "failed", "retry"] as const) await world.event(tenant, outcome);
        const replay = await world.startReplay(tenant, "all");
        expect(replay).toMatchObject({ status: "waiting", selected: 3, queued: 0, createdAt: world.clock.now() });
        const later = await world.event(tenant, "failed");
        expect(await world.queueAll(2)).toMatchObject([
          { status: "running", queued: 2 },
          { status: "running", queued: 3 },
        ]);
        expect(await world.records(tenant, later)).toEqual([`FAILED ${a}`]);
        await settleAll(tenant);
        expect(await world.replay(tenant, replay.id)).toMatchObject({ status: "completed", delivered: 3 });
        expect(await world.totals(tenant)).toEqual({ PENDING: 0, DELIVERED: 3, FAILED: 1 });
      });

      test("of a timeline takes the events between two times, both inclusive", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const start = world.clock.now();
        for (let i = 0; i < 5; i++) {
          await world.event(tenant, "delivered");
          world.clock.advance(1_000);
        }
        const range = { from: start + 1_000, to: start + 3_000 };
        expect(await world.store.previewReplay(tenant.key, { kind: "timeline", ...range })).toMatchObject({
          selected: 3,
        });
        expect(await world.startReplay(tenant, "timeline", range)).toMatchObject({ selected: 3 });
        await world.queueAll();
        const pending = (await world.page(tenant, { state: "PENDING" })).records;
        expect(pending.map(({ ingestedAt }) => ingestedAt - start)).toEqual([3_000, 2_000, 1_000]);
      });

      test("of what failed takes events with a failed record, to those that have not acknowledged them", async () => {
        const tenant = await world.tenant({ urls: [a, b] });
        await world.event(tenant, "delivered", "delivered");
        const half = await world.event(tenant, "delivered", "failed");
        const whole = await world.event(tenant, "failed", "failed");
        expect(await world.store.previewReplay(tenant.key, { kind: "failed" })).toMatchObject({ selected: 2 });
        expect(await world.startReplay(tenant, "failed")).toMatchObject({ selected: 2 });
        world.clock.advance(1);
        const later = await world.event(tenant, "failed", "failed");
        expect(await world.queueAll()).toMatchObject([{ queued: 3, skipped: 0 }]);
        expect(await world.records(tenant, half)).toEqual([`DELIVERED ${a}`, `PENDING ${b}`]);
        expect(await world.records(tenant, whole)).toEqual([`PENDING ${a}`, `PENDING ${b}`]);
        expect(await world.records(tenant, later)).toEqual([`FAILED ${a}`, `FAILED ${b}`]);
      });

      test("of what failed takes what had failed before the clock stepped back, also after a restart", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const failed = await world.event(tenant, "retry");
        world.clock.advance(60_000);
        const [delivery] = await world.claim(tenant);
        if (delivery) await world.settle(delivery, "failed");
        world.clock.advance(-3_600_000);
        await world.reopen();
        expect(await world.startReplay(tenant, "failed")).toMatchObject({ selected: 1 });
        expect(await world.queueAll()).toMatchObject([{ queued: 1 }]);
        expect(await world.records(tenant, failed)).toEqual([`PENDING ${a}`]);
      });

      test("of nothing is completed in its turn", async () => {
        const tenant = await world.tenant({ urls: [a] });
        expect(await world.store.previewReplay(tenant.key, { kind: "all" })).toMatchObject({ selected: 0 });
        await world.startReplay(tenant, "all");
        expect(await world.queueAll()).toMatchObject([{ status: "completed", selected: 0, queued: 0 }]);
        expect(await world.store.queueReplayBatch(10, world.clock.now())).toBeNull();
      });

      test("tells the events of each part, in their order", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const ids = await world.acceptMany(tenant, 3);
        await world.startReplay(tenant, "all");
        const parts: (readonly string[])[] = [];
        for (let part = 0; part < 2; part++) {
          const batch = await world.store.queueReplayBatch(2, world.clock.now());
          parts.push(batch?.eventIds ?? []);
        }
        expect(parts).toEqual([ids.slice(0, 2), ids.slice(2)]);
      });

      test("is previewed for one event, too", async () => {
        const tenant = await world.tenant();
        const eventId = await world.event(tenant);
        expect(await world.store.previewReplay(tenant.key, { kind: "single", eventId })).toMatchObject({ selected: 1 });
        expect(await world.store.previewReplay(tenant.key, { kind: "single", eventId: "evt_x" })).toMatchObject({
          selected: 0,
        });
      });

      test("does nothing twice when the program ends in the middle", async () => {
        const tenant = await world.tenant({ urls: [a] });
        for (let i = 0; i < 7; i++) await world.event(tenant, "delivered");
        const replay = await world.startReplay(tenant, "all");
        for (let i = 0; i < 4; i++) {
          await world.store.queueReplayBatch(2, world.clock.now());
          await settleAll(tenant);
          await world.reopen();
        }
        expect(await world.store.queueReplayBatch(2, world.clock.now())).toBeNull();
        expect(await world.replay(tenant, replay.id)).toMatchObject({ status: "completed", queued: 7, delivered: 7 });
        const { records } = await world.page(tenant);
        expect(records.map(({ attempts }) => attempts)).toEqual(records.map(() => 2));
      });

      test("whose runs have all ended, but that nobody has completed, is completed by the next to queue", async () => {
        const tenant = await world.tenant({ urls: [a] });
        await world.event(tenant, "failed");
        const left = await world.startReplay(tenant, "all");
        await world.queueAll();
        for (const delivery of await world.claim(tenant)) await world.settle(delivery, "delivered");
        const next = await world.startReplay(tenant, "all");
        // As servers on PostgreSQL leave it that are killed between the two; a move brings it to SQLite.
        await world.edit(`update replay set phase = 'queued', completed_at = null where id = '${left.id}'`);
        await world.reopen();
        world.clock.advance(1_000);
        expect(await world.queueAll()).toMatchObject([{ id: next.id, queued: 1 }]);
        expect(await world.replay(tenant, left.id)).toMatchObject({
          ...{ status: "completed", delivered: 1, completedAt: world.clock.now() },
        });
      });

      test("waits for the earlier ones of its account; accounts take turns", async () => {
        const [one, two] = [await world.tenant({ urls: [a] }), await world.tenant({ urls: [a] })];
        for (const tenant of [one, two]) for (let i = 0; i < 4; i++) await world.event(tenant, "delivered");
        const replays = [
          await world.startReplay(one, "all"),
          await world.startReplay(one, "all"),
          await world.startReplay(two, "all"),
        ];
        const turns: number[] = [];
        const queueAll = async () => {
          for (;;) {
            const batch = await world.store.queueReplayBatch(3, world.clock.now());
            if (!batch) break;
            turns.push(replays.findIndex(({ id }) => id === batch.replay.id));
          }
        };
        await queueAll();
        expect(turns.filter((turn) => turn < 2)).toEqual([0, 0]);
        expect(turns.indexOf(2)).toBe(1);
        expect(await world.replay(one, replays[0]?.id ?? "")).toMatchObject({ status: "running", queued: 4 });
        expect(await world.replay(one, replays[1]?.id ?? "")).toMatchObject({ status: "waiting", queued: 0 });
        for (const delivery of await world.claim(one)) await world.settle(delivery, "delivered");
        await queueAll();
        expect(turns.filter((turn) => turn < 2)).toEqual([0, 0, 1, 1]);
        const [first] = replays;
        expect(await world.replay(one, first?.id ?? "")).toMatchObject({
          status: "completed",
          delivered: 4,
          superseded: 0,
        });
      });

      test("as many as allowed wait or run", async () => {
        const tenant = await world.tenant();
        const limits = { unfinished: 2, perDay: null };
        const start = () => world.store.startReplay(tenant.key, newReplay("all"), world.clock.now(), limits);
        await start();
        await start();
        expect(await refusalOf(start())).toBe("rate_limited too_many_replays");
        await world.queueAll();
        expect(await refusalOf(start())).toBe("fulfilled");
      });

      test("a cancelled one leaves out what is not queued yet", async () => {
        const tenant = await world.tenant({ urls: [a] });
        for (let i = 0; i < 3; i++) await world.event(tenant, "delivered");
        const { id } = await world.startReplay(tenant, "all");
        await world.store.queueReplayBatch(2, world.clock.now());
        const cancelled = await world.store.cancelReplay(tenant.key, id, world.clock.now());
        expect(cancelled).toMatchObject({ status: "cancelled", queued: 2, completedAt: world.clock.now() });
        expect(await world.store.queueReplayBatch(2, world.clock.now())).toBeNull();
        expect(await world.claim(tenant)).toEqual([]);
        expect(await world.replay(tenant, id)).toMatchObject({ status: "cancelled", delivered: 0, returned: 2 });
        const stranger = await world.tenant();
        expect(await world.store.cancelReplay(stranger.key, id, 1)).toBeNull();
        expect(await world.store.findReplay(stranger.key, id)).toBeNull();
      });

      test("one that has all queued and is cancelled lets the next one begin, and counts what is in flight", async () => {
        const tenant = await world.tenant({ urls: [a] });
        await world.event(tenant, "delivered");
        const { id } = await world.startReplay(tenant, "all");
        await world.queueAll();
        const next = await world.startReplay(tenant, "all");
        expect(await world.queueAll()).toEqual([]);
        const [delivery] = await world.claim(tenant);
        expect(await world.store.cancelReplay(tenant.key, id, 1)).toMatchObject({ status: "cancelled", queued: 1 });
        if (delivery) await world.settle(delivery, "delivered");
        expect(await world.replay(tenant, id)).toMatchObject({ status: "cancelled", delivered: 1 });
        await world.queueAll();
        expect(await world.replay(tenant, next.id)).toMatchObject({ status: "running", queued: 1 });
      });

      test("of an account that the operator has suspended waits; of a deleted one it is cancelled", async () => {
        const tenant = await world.tenant({ urls: [a] });
        await world.event(tenant, "delivered");
        await world.startReplay(tenant, "all");
        await world.store.suspend(tenant.key, "operator", 1);
        expect(await world.store.queueReplayBatch(10, world.clock.now())).toBeNull();
        await world.store.resume(tenant.key, "operator");
        await world.store.deleteTenant(tenant.key, 1);
        const batch = await world.store.queueReplayBatch(10, world.clock.now());
        expect(batch).toMatchObject({ tenantId: tenant.id, tenantKey: tenant.key, webhooks: [] });
        expect(batch?.replay).toMatchObject({ status: "cancelled", queued: 0 });
        expect(await world.store.queueReplayBatch(10, world.clock.now())).toBeNull();
      });

      test("are listed newest first", async () => {
        const tenant = await world.tenant();
        const ids = [];
        for (let i = 0; i < 3; i++) ids.push((await world.startReplay(tenant, "all")).id);
        const { replays, total } = await world.replaysOf(tenant.key, { offset: 0, limit: 2 });
        expect({ ids: replays.map(({ id }) => id), total }).toEqual({ ids: ids.toReversed().slice(0, 2), total: 3 });
        expect((await world.replaysOf(tenant.key, { offset: 2, limit: 2 })).replays).toHaveLength(1);
      });
    });
  });
}
