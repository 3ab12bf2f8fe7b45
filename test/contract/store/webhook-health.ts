import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { Tenant } from "../../../src/domain/tenant.ts";
import { typeHashOf } from "../../../src/store/type-hash.ts";
import type { StoreBackend } from "../../support/store-backend.ts";
import { bytes, createWorld, type World } from "../../support/store-factory.ts";

const a = "https://a.example/hook";
const b = "https://b.example/hook";
const c = "https://c.example/hook";

const noError = { lastFailedAt: null, lastError: null, lastErrorCode: null };
const none = { delivered: 0, failed: 0, pending: 0, lastDeliveredAt: null, deliveredTypes: new Map(), ...noError };
const unused = { records: 0, ...none, lastStatusCode: null };

/** `webhookHealth` of `src/store/store.ts`, for any backend. */
export function webhookHealthContract(backend: StoreBackend): void {
  describe(`${backend.name} tells how deliveries to a webhook went:`, () => {
    let world: World;
    beforeEach(async () => {
      world = await createWorld(backend);
    });
    afterEach(() => world.end());

    const healthOf = async (tenant: Tenant, limits: Partial<{ records: number; walked: number }> = {}) => {
      const found = await world.store.webhookHealth(tenant.key, { records: 100, walked: 5000, ...limits });
      return found.map(({ webhook, ...health }) => [webhook.url, health] as const);
    };

    /** A second later than whatever was before. */
    const event: World["event"] = (...given) => {
      world.clock.advance(1_000);
      return world.event(...given);
    };

    test("nothing without webhooks, and zeros without records, in the order of the webhooks", async () => {
      const tenant = await world.tenant();
      expect(await healthOf(tenant)).toEqual([]);
      await world.setUrls(tenant, b, a);
      expect(await healthOf(tenant)).toEqual([
        [b, unused],
        [a, unused],
      ]);
    });

    test("counts by state, and the newest success and failure of each", async () => {
      const tenant = await world.tenant({ urls: [a, b] });
      const start = world.clock.now();
      await event(tenant, "delivered", "failed");
      await event(tenant, "failed", "delivered");
      await event(tenant, "delivered", "failed");
      await event(await world.tenant({ urls: [a] }), "failed");
      expect(await healthOf(tenant)).toEqual([
        [
          a,
          {
            records: 3,
            delivered: 2,
            failed: 1,
            pending: 0,
            lastDeliveredAt: start + 3_000,
            deliveredTypes: new Map([[null, start + 3_000]]),
            lastFailedAt: start + 2_000,
            lastError: `HTTP 503 from ${a}`,
            lastErrorCode: "http_status",
            lastStatusCode: 204,
          },
        ],
        [
          b,
          {
            records: 3,
            delivered: 1,
            failed: 2,
            pending: 0,
            lastDeliveredAt: start + 2_000,
            deliveredTypes: new Map([[null, start + 2_000]]),
            lastFailedAt: start + 3_000,
            lastError: `HTTP 503 from ${b}`,
            lastErrorCode: "http_status",
            lastStatusCode: 503,
          },
        ],
      ]);
    });

    test("when something of each type was last delivered", async () => {
      const tenant = await world.tenant({ urls: [a] });
      const at: number[] = [];
      for (const [type, outcome] of [
        ["x", "delivered"],
        ["y", "delivered"],
        ["x", "delivered"],
        ["z", "failed"],
      ] as const) {
        world.clock.advance(1_000);
        at.push(world.clock.now());
        const { deliveries } = await world.acceptOwned(tenant, { events: [{ payload: bytes("{}"), type }] });
        for (const delivery of deliveries) await world.settle(delivery, outcome);
      }
      const [[, health] = []] = await healthOf(tenant);
      expect([...(health?.deliveredTypes ?? [])].sort(([, one], [, other]) => one - other)).toEqual([
        [typeHashOf("y"), at[1] ?? 0],
        [typeHashOf("x"), at[2] ?? 0],
      ]);
    });

    test("a record that waits for its next try has failed of late, one that was never tried says nothing", async () => {
      const tenant = await world.tenant({ urls: [a] });
      await event(tenant, "retry");
      const failedAt = world.clock.now();
      world.clock.advance(1_000);
      await world.accept(tenant);
      const waiting = { ...none, records: 2, pending: 2 };
      const lastErrorCode = "http_status" as const;
      const failed = { lastFailedAt: failedAt, lastError: `HTTP 503 from ${a}`, lastErrorCode, lastStatusCode: 503 };
      expect(await healthOf(tenant)).toEqual([[a, { ...waiting, ...failed }]]);
    });

    test("an attempt that was not answered has no status", async () => {
      const tenant = await world.tenant({ urls: [a] });
      const delivery = await world.delivery(tenant);
      await world.store.settle({
        delivery,
        attempt: {
          startedAt: world.clock.now(),
          durationMs: 10_000,
          statusCode: null,
          error: `No response within 10 s from ${a}`,
          errorCode: "timeout",
          responseBody: null,
          answerHead: null,
        },
        next: { kind: "failed" },
      });
      const [[, health] = []] = await healthOf(tenant);
      expect(health).toMatchObject({
        lastError: `No response within 10 s from ${a}`,
        lastErrorCode: "timeout",
        lastStatusCode: null,
      });
    });

    test("the newest attempt is the one that began last, also of an old event", async () => {
      const tenant = await world.tenant({ urls: [a] });
      const id = await event(tenant, "failed");
      await event(tenant, "delivered");
      world.clock.advance(1_000);
      await world.replayEvent(tenant, id);
      const [delivery] = await world.claim(tenant);
      if (!delivery) throw new Error("the replay is due");
      await world.settle(delivery, "retry");
      const [[, health] = []] = await healthOf(tenant);
      expect(health).toMatchObject({ delivered: 1, pending: 1, lastFailedAt: world.clock.now(), lastStatusCode: 503 });
    });

    test("an attempt of an overtaken run, which its record does not show, is not the newest", async () => {
      const tenant = await world.tenant({ urls: [a] });
      const overtaken = await world.delivery(tenant);
      await world.replayEvent(tenant, overtaken.eventId);
      await world.store.release([overtaken]);
      const [delivery] = await world.claim(tenant);
      if (!delivery) throw new Error("the replay is due");
      await world.settle(delivery, "delivered");
      world.clock.advance(1_000);
      await world.settle(overtaken, "failed");
      const [[, health] = []] = await healthOf(tenant);
      expect(health).toMatchObject({ delivered: 1, lastFailedAt: null, lastStatusCode: 204 });
    });

    test("looks at the latest records of each webhook, so many and no more", async () => {
      const tenant = await world.tenant({ urls: [a, b] });
      for (let n = 0; n < 3; n++) await event(tenant, "failed", "delivered");
      for (let n = 0; n < 2; n++) await event(tenant, "delivered", "failed");
      const counts = async (limits: Parameters<typeof healthOf>[1]) =>
        (await healthOf(tenant, limits)).map(([, { records, delivered, failed }]) => [records, delivered, failed]);
      expect(await counts({ records: 2 })).toEqual([
        [2, 2, 0],
        [2, 0, 2],
      ]);
      expect(await counts({ records: 4 })).toEqual([
        [4, 2, 2],
        [4, 2, 2],
      ]);
      expect(await counts({ walked: 3 })).toEqual([
        [2, 2, 0],
        [1, 0, 1],
      ]);
    });

    test("a new webhook has what came since, and what replays have sent to it", async () => {
      const tenant = await world.tenant({ urls: [a] });
      const old = await event(tenant, "failed");
      for (let n = 0; n < 5; n++) await event(tenant, "delivered");
      await world.setUrls(tenant, a, b);
      await event(tenant, "delivered", "failed");
      const records = async (limits?: Parameters<typeof healthOf>[1]) =>
        (await healthOf(tenant, limits)).map(([url, { records }]) => [url, records]);
      expect(await records()).toEqual([
        [a, 7],
        [b, 1],
      ]);
      await world.replayEvent(tenant, old);
      expect(await records()).toEqual([
        [a, 7],
        [b, 2],
      ]);
      expect(await records({ walked: 8 })).toEqual([
        [a, 7],
        [b, 1],
      ]);
    });

    test("a removed webhook has none, and its URL begins anew", async () => {
      const tenant = await world.tenant({ urls: [a, b] });
      await event(tenant, "failed", "delivered");
      await world.setUrls(tenant, b, c);
      expect((await healthOf(tenant)).map(([url, { records }]) => [url, records])).toEqual([
        [b, 1],
        [c, 0],
      ]);
      await world.setUrls(tenant, a);
      expect(await healthOf(tenant)).toEqual([[a, unused]]);
    });
  });
}
