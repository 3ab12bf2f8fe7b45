import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { latencyBucket } from "../../../src/store/latency.ts";
import type { StoreBackend } from "../../support/store-backend.ts";
import { createWorld, type Outcome, type World } from "../../support/store-factory.ts";

const a = "https://a.example/hook";
const b = "https://b.example/hook";
const minuteMs = 60_000;

const delta = { accepted: 0, delivered: 0, failed: 0, attempts: 0, latency: new Map<number, number>() };
const none = { accepted: 0, delivered: 0, failed: 0, attempts: 0, p50Ms: null, p95Ms: null };

/** The verbs of `src/store/stats.ts`, for any backend. */
export function statsContract(backend: StoreBackend): void {
  describe(`${backend.name} keeps statistics:`, () => {
    let world: World;
    beforeEach(async () => {
      world = await createWorld(backend);
    });
    afterEach(() => world.end());

    describe("what happened", () => {
      test("is summed by bucket, also where nothing did, and in all", async () => {
        const { key: tenantKey } = await world.tenant();
        const { key: strangerKey } = await world.tenant();
        await world.store.addStats([
          { ...delta, tenantKey, minute: 59, accepted: 1000 },
          { ...delta, tenantKey, minute: 60, accepted: 2, attempts: 1 },
          { ...delta, tenantKey, minute: 61, accepted: 3, delivered: 2 },
          { ...delta, tenantKey, minute: 239, failed: 1 },
          { ...delta, tenantKey, minute: 240, accepted: 1000 },
          { ...delta, tenantKey: strangerKey, minute: 60, accepted: 100 },
        ]);
        await world.store.addStats([{ ...delta, tenantKey, minute: 60, accepted: 1, failed: 4 }]);
        const hours = await world.store.stats(tenantKey, {
          from: 70 * minuteMs,
          to: 190 * minuteMs,
          bucketMs: 60 * minuteMs,
        });
        expect(hours.buckets).toEqual([
          { ...none, at: 60 * minuteMs, accepted: 6, delivered: 2, failed: 4, attempts: 1 },
          { ...none, at: 120 * minuteMs },
          { ...none, at: 180 * minuteMs, failed: 1 },
        ]);
        expect(hours.total).toEqual({ ...none, accepted: 6, delivered: 2, failed: 5, attempts: 1 });
        const minutes = await world.store.stats(tenantKey, {
          from: 60 * minuteMs,
          to: 61 * minuteMs,
          bucketMs: minuteMs,
        });
        expect(minutes.buckets.map(({ at, accepted }) => [at / minuteMs, accepted])).toEqual([
          [60, 3],
          [61, 3],
        ]);
      });

      test("is whole in a chart of more minutes than are read at once", async () => {
        const { key: tenantKey } = await world.tenant();
        const minutes = Array.from({ length: 4_500 }, (_, i) => i);
        await world.store.addStats(
          minutes.map((minute) => ({ ...delta, tenantKey, minute, accepted: 1, latency: new Map([[3, 1]]) })),
        );
        const { buckets, total } = await world.store.stats(tenantKey, {
          from: 0,
          to: 4_499 * minuteMs,
          bucketMs: 1_500 * minuteMs,
        });
        expect(buckets.map(({ accepted }) => accepted)).toEqual([1_500, 1_500, 1_500]);
        expect([total.accepted, total.p95Ms]).toEqual([4_500, buckets[2]?.p95Ms ?? -1]);
      });

      test("has percentiles within half a bucket", async () => {
        const { key: tenantKey } = await world.tenant();
        for (let ms = 1; ms <= 1_000; ms++) {
          const latency = new Map([[latencyBucket(ms), 1]]);
          if (ms % 100 === 0) await world.store.addStats([{ ...delta, tenantKey, minute: 5, latency }]);
          else void world.store.addStats([{ ...delta, tenantKey, minute: ms % 5, latency }]);
        }
        const range = { from: 0, to: 9 * minuteMs, bucketMs: 10 * minuteMs };
        const { buckets, total } = await world.store.stats(tenantKey, range);
        for (const sums of [buckets[0], total]) {
          expect(Math.abs((sums?.p50Ms ?? 0) / 500 - 1)).toBeLessThan(0.1);
          expect(Math.abs((sums?.p95Ms ?? 0) / 950 - 1)).toBeLessThan(0.1);
        }
      });

      test("has percentiles of all attempts in its total, not the mean of those of the buckets", async () => {
        const { key: tenantKey } = await world.tenant();
        const of = (ms: number, count: number) => new Map([[latencyBucket(ms), count]]);
        await world.store.addStats([
          { ...delta, tenantKey, minute: 0, latency: of(10, 98) },
          { ...delta, tenantKey, minute: 1, latency: of(5_000, 2) },
        ]);
        const range = { from: 0, to: 2 * minuteMs, bucketMs: minuteMs };
        const { buckets, total } = await world.store.stats(tenantKey, range);
        const bucketOf = (ms: number | null) => (ms === null ? null : latencyBucket(ms));
        expect(buckets.map(({ p95Ms }) => bucketOf(p95Ms))).toEqual([latencyBucket(10), latencyBucket(5_000), null]);
        expect([bucketOf(total.p50Ms), bucketOf(total.p95Ms)]).toEqual([latencyBucket(10), latencyBucket(10)]);
      });

      test("of a deleted tenant is passed over", async () => {
        const [gone, tenant] = [await world.tenant(), await world.tenant()];
        await world.store.deleteTenant(gone.key, 1);
        while (await world.store.eraseDeleted(100));
        await world.store.addStats(
          [gone, tenant].map(({ key }) => ({ ...delta, tenantKey: key, minute: 0, accepted: 1 })),
        );
        const { total } = await world.store.stats(tenant.key, { from: 0, to: 0, bucketMs: minuteMs });
        expect(total.accepted).toBe(1);
      });
    });

    describe("what became of a webhook's deliveries", () => {
      const range = { from: 0, to: 9 * minuteMs, bucketMs: 10 * minuteMs };

      test("is found by its id and by its URL, beside what happened in all", async () => {
        const { key: tenantKey } = await world.tenant({ urls: [a, b] });
        const [first, second] = await world.store.webhooks(tenantKey);
        const webhookKey = first?.key ?? 0;
        const latency = new Map([[latencyBucket(100), 2]]);
        await world.store.addStats([
          { ...delta, tenantKey, minute: 1, accepted: 3, delivered: 3, failed: 2, attempts: 9 },
          { ...delta, tenantKey, webhookKey, minute: 1, delivered: 1, attempts: 3, latency },
          { ...delta, tenantKey, webhookKey: second?.key ?? 0, minute: 1, delivered: 2, failed: 1, attempts: 5 },
        ]);
        await world.store.addStats([
          { ...delta, tenantKey, webhookKey, minute: 1, failed: 1, attempts: 1, latency },
          { ...delta, tenantKey, webhookKey, minute: 2, delivered: 4, attempts: 4 },
        ]);
        const ofFirst = { delivered: 5, failed: 1, attempts: 8 };
        const byUrl = await world.store.stats(tenantKey, { ...range, webhookId: a });
        expect(byUrl.total).toMatchObject({ accepted: 0, ...ofFirst });
        expect(latencyBucket(byUrl.total.p95Ms ?? 0)).toBe(latencyBucket(100));
        expect(await world.store.stats(tenantKey, { ...range, webhookId: first?.id ?? "" })).toEqual(byUrl);
        const minutes = { ...range, bucketMs: minuteMs, webhookId: a };
        const { buckets } = await world.store.stats(tenantKey, minutes);
        expect(buckets.slice(0, 3).map(({ delivered, failed }) => [delivered, failed])).toEqual([
          [0, 0],
          [1, 1],
          [4, 0],
        ]);
        const ofSecond = await world.store.stats(tenantKey, { ...range, webhookId: b });
        expect(ofSecond.total).toEqual({ ...none, delivered: 2, failed: 1, attempts: 5 });
        expect((await world.store.stats(tenantKey, range)).total).toMatchObject({ accepted: 3, attempts: 9 });
      });

      test("stays when it is removed, and is nobody else's", async () => {
        const tenant = await world.tenant({ urls: [a, b] });
        const stranger = await world.tenant({ urls: [a] });
        const [webhook] = await world.store.webhooks(tenant.key);
        await world.event(tenant, "delivered", "delivered");
        const webhookKey = webhook?.key ?? 0;
        await world.store.addStats([{ ...delta, tenantKey: tenant.key, webhookKey, minute: 1, delivered: 1 }]);
        await world.setUrls(tenant, b);
        const deliveredOf = async (tenantKey: number, webhookId: string) =>
          (await world.store.stats(tenantKey, { ...range, webhookId })).total.delivered;
        expect(await deliveredOf(tenant.key, a)).toBe(1);
        expect(await deliveredOf(tenant.key, b)).toBe(0);
        expect(await deliveredOf(stranger.key, a)).toBe(0);
        expect(await deliveredOf(stranger.key, webhook?.id ?? "")).toBe(0);
      });
    });

    describe("after 30 days", () => {
      const hourOf = (minute: number) => minute - (minute % 60);
      const nowMinute = () => Math.floor(world.clock.now() / minuteMs);
      const thin = async () => {
        let steps = 0;
        while (await world.store.thinStats(world.clock.now())) steps += 1;
        return steps;
      };
      const rows = async () => {
        const { stat, webhook_stat } = await world.count();
        return [stat, webhook_stat];
      };

      test("minutes are merged to hours, with the same sums and percentiles, and later ones stay", async () => {
        const { key: tenantKey } = await world.tenant({ urls: [a] });
        const { key: strangerKey } = await world.tenant();
        const webhookKey = (await world.store.webhooks(tenantKey))[0]?.key ?? 0;
        const kept = hourOf(nowMinute() - 30 * 24 * 60);
        const at = (minute: number, ms: number) => {
          const counts = {
            accepted: 1,
            delivered: 2,
            failed: 3,
            attempts: 4,
            latency: new Map([[latencyBucket(ms), 1]]),
          };
          return [
            { tenantKey, minute, ...counts },
            { tenantKey, webhookKey, minute, ...counts },
          ];
        };
        const minutes = [-3000, -2999, -121, -120, -119, -61, -1, 0, 1];
        await world.store.addStats(minutes.flatMap((minute, i) => at(kept + minute, 2 ** i)));
        await world.store.addStats([{ ...delta, tenantKey: strangerKey, minute: kept - 7, accepted: 1 }]);
        const range = { from: (kept - 6000) * minuteMs, to: (kept + 119) * minuteMs, bucketMs: 60 * minuteMs };
        const read = () => [
          world.store.stats(tenantKey, range),
          world.store.stats(tenantKey, { ...range, webhookId: a }),
          world.store.stats(strangerKey, range),
        ];
        const before = await Promise.all(read());
        expect(before[0]?.total).toMatchObject({ accepted: 9, attempts: 36 });
        expect(await rows()).toEqual([10, 9]);
        await thin();
        // Hours at -3000, -180, -120 and -60, and two minutes.
        expect(await rows()).toEqual([7, 6]);
        expect(await Promise.all(read())).toEqual(before);
        const atHour = { from: (kept - 120) * minuteMs, to: (kept - 61) * minuteMs, bucketMs: minuteMs };
        const { buckets } = await world.store.stats(tenantKey, atHour);
        expect(buckets.map(({ accepted }) => accepted)).toEqual([3, ...Array(59).fill(0)]);

        // Nothing is left of that, and an hour later there is the next one.
        await thin();
        expect(await rows()).toEqual([7, 6]);
        world.clock.advance(60 * minuteMs);
        await thin();
        expect(await rows()).toEqual([6, 5]);
        expect(await Promise.all(read())).toEqual(before);
      });

      test("minutes of a deleted account that is not erased yet hold up no others", async () => {
        const { key: deletedKey } = await world.tenant();
        const { key: tenantKey } = await world.tenant();
        const kept = hourOf(nowMinute() - 30 * 24 * 60);
        const minutes = [deletedKey, tenantKey].flatMap((key) =>
          [-61, -60, -59].map((minute) => [key, minute] as const),
        );
        await world.store.addStats(
          minutes.map(([key, minute]) => ({ ...delta, tenantKey: key, minute: kept + minute, accepted: 1 })),
        );
        await world.store.deleteTenant(deletedKey, world.clock.now());
        await thin();
        const range = { from: (kept - 120) * minuteMs, to: kept * minuteMs, bucketMs: minuteMs };
        const { buckets } = await world.store.stats(tenantKey, range);
        expect(buckets.map(({ accepted }) => accepted).filter((n) => n > 0)).toEqual([1, 2]);
      });

      test("hours are forgotten after two years", async () => {
        const { key: tenantKey } = await world.tenant({ urls: [a] });
        const webhookKey = (await world.store.webhooks(tenantKey))[0]?.key ?? 0;
        const kept = hourOf(nowMinute() - 2 * 365 * 24 * 60);
        const at = (minute: number) => [
          { ...delta, tenantKey, minute, accepted: 1 },
          { ...delta, tenantKey, webhookKey, minute, attempts: 1 },
        ];
        await world.store.addStats([-100_000, -61, -60, 0, 60].flatMap((minute) => at(kept + minute)));
        await thin();
        expect(await rows()).toEqual([2, 2]);
        const range = { from: 0, to: world.clock.now(), bucketMs: 100_000 * minuteMs };
        expect((await world.store.stats(tenantKey, range)).total.accepted).toBe(2);
      });
    });

    describe("refused events", () => {
      test("are added up by month and reason", async () => {
        const [tenant, stranger] = [await world.tenant(), await world.tenant()];
        const refused = { tenantKey: tenant.key, month: 202611, reason: "quota", events: 1 } as const;
        await world.store.addRefused([refused, { ...refused, reason: "invalid", events: 5 }]);
        await world.store.addRefused([
          { ...refused, events: 30 },
          { ...refused, month: 202610, events: 700 },
          { ...refused, tenantKey: stranger.key, reason: "inactive", events: 2 },
        ]);
        const nothing = { quota: 0, inactive: 0, invalid: 0 };
        expect(await world.store.refusedEvents(tenant.key, 202611)).toEqual({ ...nothing, quota: 31, invalid: 5 });
        expect(await world.store.refusedEvents(tenant.key, 202612)).toEqual(nothing);
        expect(await world.store.refusedEvents(stranger.key, 202611)).toEqual({ ...nothing, inactive: 2 });
      });

      test("of a deleted tenant are passed over", async () => {
        const [gone, tenant] = [await world.tenant(), await world.tenant()];
        await world.store.deleteTenant(gone.key, 1);
        while (await world.store.eraseDeleted(100));
        const refused = { month: 202611, reason: "quota", events: 1 } as const;
        await world.store.addRefused([gone, tenant].map(({ key }) => ({ ...refused, tenantKey: key })));
        expect(await world.store.refusedEvents(gone.key, 202611)).toMatchObject({ quota: 0 });
        expect(await world.store.refusedEvents(tenant.key, 202611)).toMatchObject({ quota: 1 });
      });
    });

    describe("what waits", () => {
      /** The records in order of ingestion, a second apart: how the deliveries to `a` and `b` ended, null where they did not. */
      async function ingest(...events: (readonly [Outcome | null, Outcome | null])[]) {
        const tenant = await world.tenant({ urls: [a, b] });
        const ids: string[] = [];
        for (const outcomes of events) {
          world.clock.advance(1_000);
          const { eventIds, deliveries } = await world.acceptOwned(tenant);
          for (const [i, outcome] of outcomes.entries()) {
            const delivery = deliveries[i];
            if (delivery && outcome) await world.settle(delivery, outcome);
          }
          ids.push(...eventIds);
        }
        return { tenant, ids };
      }

      test("is nothing at first, and nothing when all has ended", async () => {
        const nothing = { records: 0, oldestIngestedAt: null };
        const { tenant } = await ingest();
        expect(await world.store.waiting(tenant.key)).toEqual(nothing);
        const ended = await ingest(["delivered", "failed"], ["failed", "delivered"]);
        expect(await world.store.waiting(ended.tenant.key)).toEqual(nothing);
      });

      test("are the records that are queued, in flight or retried, and the oldest of them", async () => {
        const start = world.clock.now();
        const { tenant } = await ingest(
          ["delivered", "failed"],
          ["delivered", "retry"],
          [null, null],
          [null, "failed"],
        );
        await ingest([null, null]);
        expect(await world.store.waiting(tenant.key)).toEqual({ records: 4, oldestIngestedAt: start + 2_000 });
      });

      test("grows by a replay, to the oldest event again", async () => {
        const start = world.clock.now();
        const { tenant, ids } = await ingest(["delivered", "failed"], [null, "delivered"]);
        expect(await world.store.waiting(tenant.key)).toEqual({ records: 1, oldestIngestedAt: start + 2_000 });
        await world.replayEvent(tenant, ids[0] ?? "");
        expect(await world.store.waiting(tenant.key)).toEqual({ records: 3, oldestIngestedAt: start + 1_000 });
      });

      test("shrinks as the records of a removed webhook fail", async () => {
        const start = world.clock.now();
        const { tenant } = await ingest([null, "delivered"], [null, null]);
        await world.setUrls(tenant, b);
        while (await world.store.failUndeliverable(1));
        expect(await world.store.waiting(tenant.key)).toEqual({ records: 1, oldestIngestedAt: start + 2_000 });
      });

      test("is nothing for a tenant that is erased", async () => {
        const { tenant } = await ingest([null, null]);
        const neighbour = await ingest([null, "delivered"]);
        await world.store.deleteTenant(tenant.key, 1);
        while (await world.store.eraseDeleted(1));
        expect(await world.store.waiting(tenant.key)).toEqual({ records: 0, oldestIngestedAt: null });
        expect(await world.store.waiting(neighbour.tenant.key)).toMatchObject({ records: 1 });
      });
    });
  });
}
