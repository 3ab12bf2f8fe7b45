import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { DomainError } from "../../../src/domain/errors.ts";
import type { Tenant } from "../../../src/domain/tenant.ts";
import { keptAttempts } from "../../../src/store/deliveries.ts";
import { readAll, readAttempts } from "../../support/read-all.ts";
import type { StoreBackend } from "../../support/store-backend.ts";
import { bytes, createWorld, newReplay, refusalOf, settlementOf, type World } from "../../support/store-factory.ts";

const a = "https://a.example/hook";
const b = "https://b.example/hook";
const hourMs = 60 * 60 * 1000;

/** What replays and attempts may take of the disk, for any backend. */
export function meteringContract(backend: StoreBackend): void {
  describe(`${backend.name} meters replays and attempts:`, () => {
    let world: World;
    beforeEach(async () => {
      world = await createWorld(backend);
    });
    afterEach(() => world.end());

    const bodiesOf = async (tenant: Tenant, eventId: string) =>
      (await readAttempts(world.store, tenant.key, eventId)).map(({ responseBody }) => responseBody);

    const recordsOf = async (tenant: Tenant, eventId: string) => {
      const found = await world.store.records(tenant.key, eventId);
      return found ? readAll(found) : [];
    };

    const numbersOf = async (tenant: Tenant, eventId: string, url = a) =>
      (await readAttempts(world.store, tenant.key, eventId))
        .filter(({ targetWebhook }) => targetWebhook === url)
        .map(({ number }) => number);

    /** Replays one event so many times, each to its end. */
    async function replayTimes(tenant: Tenant, eventId: string, times: number) {
      for (let time = 0; time < times; time++) {
        world.clock.advance(1_000);
        await world.replayEvent(tenant, eventId);
        for (const delivery of await world.claim(tenant)) await world.settle(delivery, "delivered");
      }
    }

    const upTo = (last: number, count: number) => Array.from({ length: count }, (_, i) => last - count + 1 + i);

    describe("below the floor of the disk", () => {
      test("no replay begins, and one is told to come again", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const eventId = await world.event(tenant, "delivered");
        world.growth.isAllowed = false;
        expect(await refusalOf(world.replayEvent(tenant, eventId))).toBe("unavailable storage_full");
        expect(await refusalOf(world.startReplay(tenant, "all"))).toBe("unavailable storage_full");
        expect((await world.store.replays(tenant.key, { offset: 0, limit: 10 })).total).toBe(0);
        expect(await world.records(tenant, eventId)).toEqual([`DELIVERED ${a}`]);
        world.growth.isAllowed = true;
        expect(await refusalOf(world.replayEvent(tenant, eventId))).toBe("fulfilled");
        expect(await refusalOf(world.startReplay(tenant, "all"))).toBe("fulfilled");
      });

      test("what is wrong otherwise is said first", async () => {
        const tenant = await world.tenant({ urls: [a] });
        world.growth.isAllowed = false;
        expect(await refusalOf(world.replayEvent(tenant, "evt_1"))).toBe("not_found event_not_found");
      });

      test("a bulk replay stands, and goes on from where it is when there is room", async () => {
        const tenant = await world.tenant({ urls: [a] });
        await world.acceptMany(tenant, 30);
        const { id } = await world.startReplay(tenant, "all");
        await world.store.queueReplayBatch(10, world.clock.now());
        world.growth.isAllowed = false;
        expect(await refusalOf(world.store.queueReplayBatch(10, world.clock.now()))).toBe("unavailable storage_full");
        expect(await world.replay(tenant, id)).toMatchObject({ status: "running", queued: 10 });
        expect(await world.store.cancelReplay(tenant.key, "rpl_none", 1)).toBeNull();
        world.growth.isAllowed = true;
        await world.queueAll(10);
        expect(await world.replay(tenant, id)).toMatchObject({ status: "running", queued: 30 });
      });

      test("without a replay that waits there is nothing to refuse", async () => {
        world.growth.isAllowed = false;
        expect(await world.store.queueReplayBatch(10, world.clock.now())).toBeNull();
      });

      test("an outcome is recorded, and the body of the answer left out", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const [first, second] = [await world.delivery(tenant), await world.delivery(tenant)];
        world.growth.isAllowed = false;
        expect(await world.settle(first, "delivered")).toMatchObject({ kind: "settled" });
        const { attempt } = await world.store.settle({
          ...settlementOf(second, "failed", world.clock.now()),
          attempt: { ...settlementOf(second, "failed", 0).attempt, responseBody: null },
        });
        if (attempt) await world.store.completeResponseBody(attempt, bytes("late"));
        expect(await world.records(tenant, first.eventId)).toEqual([`DELIVERED ${a}`]);
        expect([await bodiesOf(tenant, first.eventId), await bodiesOf(tenant, second.eventId)]).toEqual([[""], [""]]);
        world.growth.isAllowed = true;
        const third = await world.delivery(tenant);
        await world.settle(third, "delivered");
        expect(await bodiesOf(tenant, third.eventId)).toEqual(["answer"]);
      });
    });

    describe("bulk replays of 24 hours", () => {
      const begin = (tenant: Tenant, perDay: number | null = 3) =>
        world.store.startReplay(tenant.key, newReplay("all"), world.clock.now(), { unfinished: 11, perDay });

      test("are as many as allowed, cancelled ones too, also after a restart, until the first is a day old", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const { id } = await begin(tenant);
        await world.store.cancelReplay(tenant.key, id, world.clock.now());
        world.clock.advance(hourMs);
        await begin(tenant);
        await begin(tenant);
        expect(await refusalOf(begin(tenant))).toBe("rate_limited too_many_replays_today");
        await world.reopen();
        const refused = await begin(tenant).catch((error: unknown) => error);
        expect(refused).toBeInstanceOf(DomainError);
        expect((refused as DomainError).retryAfterSeconds).toBe((23 * hourMs) / 1000);
        world.clock.advance(23 * hourMs - 1);
        expect(await refusalOf(begin(tenant))).toBe("rate_limited too_many_replays_today");
        world.clock.advance(1);
        expect(await refusalOf(begin(tenant))).toBe("fulfilled");
        expect(await refusalOf(begin(tenant))).toBe("rate_limited too_many_replays_today");
      });

      test("are counted for each account, without those of one event, and not where any number may be", async () => {
        const [tenant, other] = [await world.tenant({ urls: [a] }), await world.tenant({ urls: [a] })];
        const eventId = await world.event(tenant, "delivered");
        for (let n = 0; n < 5; n++) await world.replayEvent(tenant, eventId);
        for (let n = 0; n < 3; n++) await begin(tenant);
        expect(await refusalOf(begin(tenant))).toBe("rate_limited too_many_replays_today");
        expect(await refusalOf(begin(other))).toBe("fulfilled");
        expect(await refusalOf(begin(tenant, null))).toBe("fulfilled");
      });
    });

    describe("the attempts of one record", () => {
      test("are the latest hundred; their numbers go on, and those forgotten are counted", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const eventId = await world.event(tenant, "delivered");
        await replayTimes(tenant, eventId, keptAttempts - 1);
        expect(await numbersOf(tenant, eventId)).toEqual(upTo(100, 100));
        expect(await recordsOf(tenant, eventId)).toMatchObject([{ attempts: 100, attemptsForgotten: 0 }]);
        await replayTimes(tenant, eventId, 30);
        expect(await numbersOf(tenant, eventId)).toEqual(upTo(130, 100));
        expect(await recordsOf(tenant, eventId)).toMatchObject([{ attempts: 130, attemptsForgotten: 30 }]);
        expect((await world.page(tenant)).records).toMatchObject([{ attempts: 130, attemptsForgotten: 30 }]);
      });

      test("are those of one webhook: another one's stay", async () => {
        const tenant = await world.tenant({ urls: [a, b] });
        const eventId = await world.event(tenant, "delivered", "delivered");
        await world.setUrls(tenant, a);
        await replayTimes(tenant, eventId, 120);
        expect(await numbersOf(tenant, eventId, b)).toEqual([1]);
        expect(await numbersOf(tenant, eventId, a)).toEqual(upTo(121, 100));
        const other = await world.event(tenant, "delivered");
        expect(await numbersOf(tenant, other)).toEqual([1]);
      });
    });
  });
}
