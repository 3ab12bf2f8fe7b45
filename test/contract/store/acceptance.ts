import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { DueDelivery } from "../../../src/domain/delivery.ts";
import type { Tenant } from "../../../src/domain/tenant.ts";
import type { WebhookRef } from "../../../src/domain/webhook.ts";
import { ingestedAtOf } from "../../../src/lib/id.ts";
import type { AcceptRequest } from "../../../src/store/store.ts";
import type { StoreBackend } from "../../support/store-backend.ts";
import { bytes, createWorld, newApiKeyRow, refusalOf, type World } from "../../support/store-factory.ts";

const a = "https://a.example/hook";
const b = "https://b.example/hook";
const dayMs = 86_400_000;

/** `acceptEvents` of `src/store/store.ts` as tests. */
export function acceptanceContract(backend: StoreBackend): void {
  describe(`${backend.name} is a store:`, () => {
    let world: World;
    beforeEach(async () => {
      world = await createWorld(backend);
    });
    afterEach(() => world.end());

    describe("acceptEvents", () => {
      test("makes a delivery for each webhook, in their order, with the very bytes", async () => {
        const tenant = await world.tenant({ urls: [b, a] });
        const payload = bytes('{ "n": 1.0, "ü": 12345678901234567890 }');
        const { eventIds, deliveries, repeated } = await world.acceptOwned(tenant, { payloads: [payload] });
        expect([repeated, ingestedAtOf(eventIds[0] ?? "")]).toEqual([false, world.clock.now()]);
        expect(deliveries.map(({ url }) => url)).toEqual([b, a]);
        await world.store.release(deliveries);
        expect(await world.due(tenant)).toEqual(
          deliveries.map((delivery) => ({ ...delivery, payload: expect.anything() })),
        );
        const records = await world.recordsOf(tenant.key, eventIds[0] ?? "");
        expect(records).toEqual(
          [b, a].map((targetWebhook) => ({
            eventId: eventIds[0] ?? "",
            state: "PENDING",
            ingestedAt: world.clock.now(),
            targetWebhook,
            errorReason: null,
            errorCode: null,
            statusCode: null,
            type: null,
            orderingKey: null,
            payload: expect.anything(),
            attempts: 0,
            attemptsForgotten: 0,
            lastAttemptAt: null,
            lastDurationMs: null,
            nextAttemptAt: world.clock.now(),
            replayGroupId: null,
          })),
        );
        for (const record of records ?? []) expect(Buffer.from(record.payload ?? []).equals(payload)).toBe(true);
      });

      test("stores nothing, and remembers nothing, of a request that nobody waits for any more", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const idempotency = { key: "abandoned", fingerprint: bytes("x") };
        await expect(world.accept(tenant, { idempotency, isAbandoned: () => true })).rejects.toMatchObject({
          code: "request_abandoned",
        });
        expect(await world.due(tenant)).toEqual([]);
        const { repeated } = await world.accept(tenant, { idempotency, isAbandoned: () => false });
        expect(repeated).toBe(false);
      });

      const rooms: readonly [string, AcceptRequest["roomFor"], number][] = [
        ["nobody says", undefined, 0],
        ["there is none", () => 0, 0],
        ["there is less than none", () => -5, 0],
        ["there is some", () => 2, 2],
        ["there is enough", () => 3, 3],
        ["there is more than enough", () => Number.POSITIVE_INFINITY, 3],
      ];
      test.each(rooms)(
        "owns as many deliveries of each webhook as there is room for: %s",
        async (_, roomFor, owned) => {
          const tenant = await world.tenant({ urls: [a, b] });
          const refs = (await world.store.webhooks(tenant.key)).map(({ key }) => ({
            tenantKey: tenant.key,
            webhookKey: key,
          }));
          const payloads = [1, 2, 3].map((n) => bytes(`${n}`));
          const { eventIds, deliveries, unowned } = await world.accept(tenant, { payloads, roomFor });
          const idsOf = (url: string, those: readonly DueDelivery[]) =>
            those.filter((delivery) => delivery.url === url).map(({ eventId }) => eventId);
          const first = eventIds.slice(0, owned);
          expect([idsOf(a, deliveries), idsOf(b, deliveries)]).toEqual([first, first]);
          expect(unowned).toEqual(owned < 3 ? refs : []);
          const others = await world.claim(tenant);
          const rest = eventIds.slice(owned);
          expect([idsOf(a, others), idsOf(b, others)]).toEqual([rest, rest]);
        },
      );

      test("asks for room at the moment of writing, once for each webhook that gets something", async () => {
        const tenant = await world.tenant({ urls: [a, b] });
        const [forA, forB] = (await world.store.webhooks(tenant.key)).map(({ key }) => key);
        const asked: WebhookRef[] = [];
        const roomFor = (webhook: WebhookRef) => {
          asked.push(webhook);
          return webhook.webhookKey === forB ? 1 : 0;
        };
        const payloads = [bytes("1"), bytes("2")];
        const idempotency = { key: "k", fingerprint: bytes("f") };
        const { deliveries, unowned } = await world.accept(tenant, { payloads, roomFor, idempotency });
        expect(asked.map(({ webhookKey }) => webhookKey)).toEqual([forA ?? 0, forB ?? 0]);
        expect(deliveries).toMatchObject([{ url: b, payload: bytes("1") }]);
        expect(unowned).toEqual([forA, forB].map((key = 0) => ({ tenantKey: tenant.key, webhookKey: key })));
        await world.accept(tenant, { payloads, roomFor, idempotency });
        expect(asked).toHaveLength(2);
      });

      test("without a webhook makes one failed record", async () => {
        const tenant = await world.tenant();
        const { eventIds, deliveries, unowned } = await world.acceptOwned(tenant);
        expect([deliveries, unowned]).toEqual([[], []]);
        expect(await world.recordsOf(tenant.key, eventIds[0] ?? "")).toMatchObject([
          {
            state: "FAILED",
            targetWebhook: "",
            errorReason: "No webhook was registered when the event arrived",
            errorCode: "no_webhook",
            statusCode: null,
          },
        ]);
        expect(await world.totals(tenant)).toEqual({ PENDING: 0, DELIVERED: 0, FAILED: 1 });
      });

      test("gives ids that grow, within a batch, between tenants, when the clock steps back and after a restart", async () => {
        const [one, two] = [await world.tenant({ urls: [a] }), await world.tenant()];
        const ids = [...(await world.acceptMany(one, 5_000)), ...(await world.acceptMany(two, 3))];
        world.clock.advance(-3_600_000);
        ids.push(...(await world.acceptMany(one, 2)));
        await world.reopen();
        ids.push(...(await world.acceptMany(one, 2)));
        world.clock.advance(7_200_000);
        ids.push(...(await world.acceptMany(one, 2)));
        expect(ids.toSorted()).toEqual(ids);
        expect(new Set(ids).size).toBe(ids.length);
        expect(ingestedAtOf(ids.at(-1) ?? "")).toBe(world.clock.now());
      });

      test("is due at once also when the clock has stepped back", async () => {
        const tenant = await world.tenant({ urls: [a] });
        await world.accept(tenant);
        world.clock.advance(-3_600_000);
        const { eventIds } = await world.accept(tenant);
        expect(ingestedAtOf(eventIds[0] ?? "")).toBe(world.clock.now() + 3_600_000);
        expect(await world.due(tenant)).toHaveLength(1);
      });

      describe("judges the API key that an event came with:", () => {
        const accept = (tenant: Tenant, apiKey: { readonly id: string }) =>
          refusalOf(world.accept(tenant, { apiKeyId: apiKey.id }));
        /** A new key in place of the earlier ones, which end after `graceMs`. */
        const rotate = (tenant: Tenant, graceMs: number) =>
          world.store.rotateApiKey(tenant.key, newApiKeyRow(), world.clock.now() + graceMs, world.clock.now());

        test("one that a rotation has ended is refused from its answer on, however often it was taken", async () => {
          const apiKey = newApiKeyRow();
          const tenant = await world.tenant({ apiKey, urls: [a] });
          expect(await accept(tenant, apiKey)).toBe("fulfilled");
          const latest = await rotate(tenant, 0);
          expect(await accept(tenant, apiKey)).toBe("unauthenticated unauthenticated");
          expect(await accept(tenant, latest)).toBe("fulfilled");
          expect((await world.page(tenant)).total).toBe(2);
        });

        test("one that ends is taken until then, and is refused like one that never was", async () => {
          const apiKey = newApiKeyRow();
          const tenant = await world.tenant({ apiKey });
          await rotate(tenant, 1_000);
          world.clock.advance(999);
          expect(await accept(tenant, apiKey)).toBe("fulfilled");
          world.clock.advance(1);
          const [ended, unknown] = await Promise.all(
            [apiKey.id, "key_none"].map((apiKeyId) => world.accept(tenant, { apiKeyId }).catch((error) => error)),
          );
          expect(ended).toMatchObject({ kind: "unauthenticated", code: "unauthenticated" });
          expect(unknown).toEqual(ended);
        });

        test("one of another account is refused, whether that one has used it or not", async () => {
          const apiKey = newApiKeyRow();
          const [tenant, other] = [await world.tenant(), await world.tenant({ apiKey })];
          expect(await accept(tenant, apiKey)).toBe("unauthenticated unauthenticated");
          expect(await accept(other, apiKey)).toBe("fulfilled");
          expect(await accept(tenant, apiKey)).toBe("unauthenticated unauthenticated");
        });

        test("one that has ended is refused before anything else is asked", async () => {
          const apiKey = newApiKeyRow();
          const tenant = await world.tenant({ apiKey });
          const idempotency = { key: "k1", fingerprint: bytes("one") };
          await world.accept(tenant, { apiKeyId: apiKey.id, idempotency });
          await rotate(tenant, 0);
          await world.store.suspend(tenant.key, "operator", 1);
          world.growth.isAllowed = false;
          const refused = world.accept(tenant, { apiKeyId: apiKey.id, idempotency });
          expect(await refusalOf(refused)).toBe("unauthenticated unauthenticated");
        });
      });

      /** A tenant whose month has room for so many events: the 10,000 of its tier would take most of a test. */
      async function withQuota(ownEventsPerMonth: number, given: Parameters<World["tenant"]>[0] = {}) {
        const tenant = await world.tenant({ tier: "free", ...given });
        await world.store.setLimits(tenant.key, { ownEventsPerMonth });
        return tenant;
      }

      test("counts to the month's quota and no further, a batch whole or not at all", async () => {
        const tenant = await world.tenant({ tier: "free" });
        await world.acceptMany(tenant, 9_999);
        const two = { payloads: [bytes("{}"), bytes("{}")] };
        expect(await refusalOf(world.accept(tenant, two))).toBe("rate_limited quota_exceeded");
        expect(await world.store.usage(tenant.key, world.clock.now())).toEqual({ eventsThisMonth: 9_999 });
        await world.accept(tenant);
        expect(await refusalOf(world.accept(tenant))).toBe("rate_limited quota_exceeded");
        await world.store.setTier(tenant.key, "pro");
        expect(await refusalOf(world.accept(tenant))).toBe("fulfilled");
        expect((await world.page(tenant, { size: 1 })).total).toBe(10_001);
      });

      test("counts to the account's own quota, which holds as soon as it is set", async () => {
        const tenant = await world.tenant({ tier: "pro" });
        await world.acceptMany(tenant, 20);
        await world.store.setLimits(tenant.key, { ownEventsPerMonth: 21 });
        await world.accept(tenant);
        expect(await refusalOf(world.accept(tenant))).toBe("rate_limited quota_exceeded");
        await world.store.setLimits(tenant.key, { ownEventsPerMonth: 22 });
        expect(await refusalOf(world.accept(tenant))).toBe("fulfilled");
        expect(await refusalOf(world.accept(tenant))).toBe("rate_limited quota_exceeded");
        await world.store.setLimits(tenant.key, { ownEventsPerMonth: null });
        expect(await refusalOf(world.accept(tenant))).toBe("fulfilled");
      });

      test("says when the quota begins anew, and then it does, in UTC", async () => {
        const tenant = await withQuota(20);
        await world.acceptMany(tenant, 20);
        const monthEnd = Date.UTC(2026, 3, 1);
        world.clock.advance(monthEnd - 1_500 - world.clock.now());
        const refused = await world.accept(tenant).catch((error: { retryAfterSeconds: number }) => error);
        expect(refused).toMatchObject({ retryAfterSeconds: 2 });
        world.clock.advance(1_500);
        expect(await world.store.usage(tenant.key, world.clock.now())).toEqual({ eventsThisMonth: 0 });
        expect(await refusalOf(world.accept(tenant))).toBe("fulfilled");
        expect(await world.store.usage(tenant.key, world.clock.now())).toEqual({ eventsThisMonth: 1 });
      });

      test("a clock that steps back over the end of a month does not open the earlier month again", async () => {
        const tenant = await withQuota(20);
        world.clock.advance(Date.UTC(2026, 3, 1) - world.clock.now());
        await world.acceptMany(tenant, 20);
        world.clock.advance(-1);
        expect(await refusalOf(world.accept(tenant))).toBe("rate_limited quota_exceeded");
        expect(await world.store.usage(tenant.key, world.clock.now())).toEqual({ eventsThisMonth: 20 });
      });

      test("and then the quota begins anew after the month in which events count", async () => {
        const tenant = await withQuota(20);
        world.clock.advance(Date.UTC(2026, 3, 1) - world.clock.now());
        await world.acceptMany(tenant, 20);
        world.clock.advance(-1_000);
        const refused = await world.accept(tenant).catch((error: { retryAfterSeconds: number }) => error);
        expect(refused).toMatchObject({ retryAfterSeconds: 30 * 24 * 3_600 + 1 });
      });

      test("events that arrive together share the quota", async () => {
        const tenant = await withQuota(20);
        await world.acceptMany(tenant, 18);
        const outcomes = await Promise.all(Array.from({ length: 5 }, () => refusalOf(world.accept(tenant))));
        expect(outcomes.filter((outcome) => outcome === "fulfilled")).toHaveLength(2);
      });

      const standings: readonly [string, Parameters<World["tenant"]>[0], "payment" | "operator" | null, string][] = [
        ["an unverified card", { tier: "pro", enforcedTier: null }, null, "payment_required card_not_verified"],
        ["a suspension for payment", {}, "payment", "payment_required account_suspended"],
        ["a suspension by the operator", {}, "operator", "forbidden account_suspended"],
      ];
      test.each(standings)("%s is said before the quota", async (_, given, cause, refusal) => {
        const tenant = await withQuota(20, given);
        if (tenant.enforcedTier) await world.acceptMany(tenant, 20);
        if (cause) await world.store.suspend(tenant.key, cause, world.clock.now());
        expect(await refusalOf(world.accept(tenant))).toBe(refusal);
      });

      test("a disk below its floor is the last thing said", async () => {
        const tenant = await withQuota(20);
        await world.acceptMany(tenant, 19);
        world.growth.isAllowed = false;
        expect(await refusalOf(world.accept(tenant))).toBe("unavailable storage_full");
        world.growth.isAllowed = true;
        await world.accept(tenant);
        world.growth.isAllowed = false;
        expect(await refusalOf(world.accept(tenant))).toBe("rate_limited quota_exceeded");
      });

      test("of a deleted tenant is refused; what arrives with the deletion is accepted whole or refused", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const [before, , after] = await Promise.all([
          refusalOf(world.accept(tenant)),
          world.store.deleteTenant(tenant.key, world.clock.now()),
          refusalOf(world.accept(tenant)),
        ]);
        for (const outcome of [before, after]) expect(["fulfilled", "unauthenticated account_gone"]).toContain(outcome);
        expect(await refusalOf(world.accept(tenant))).toBe("unauthenticated account_gone");
        while (await world.store.eraseDeleted(100));
        expect(await refusalOf(world.accept(tenant))).toBe("unauthenticated account_gone");
      });
    });

    describe("an idempotency key", () => {
      const idempotency = { key: "k1", fingerprint: bytes("one") };

      test("met again gives the first answer, also when both arrive at once", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const payloads = [bytes("1"), bytes("2")];
        const together = await Promise.all([
          world.accept(tenant, { payloads, idempotency }),
          world.accept(tenant, { payloads, idempotency }),
        ]);
        world.clock.advance(dayMs - 1);
        const third = await world.accept(tenant, { payloads, idempotency });
        const [first, ...others] = together.filter(({ repeated }) => !repeated);
        expect([first?.eventIds.length, others]).toEqual([2, []]);
        const again = [...together.filter(({ repeated }) => repeated), third];
        expect<object[]>(again).toEqual([0, 0].map(() => ({ ...first, repeated: true, deliveries: [], unowned: [] })));
        expect((await world.page(tenant)).total).toBe(2);
        expect(await world.store.usage(tenant.key, world.clock.now())).toEqual({ eventsThisMonth: 2 });
      });

      test("with another request is refused", async () => {
        const tenant = await world.tenant();
        await world.accept(tenant, { idempotency });
        const other = world.accept(tenant, { idempotency: { ...idempotency, fingerprint: bytes("two") } });
        expect(await refusalOf(other)).toBe("idempotency_conflict idempotency_key_reused");
      });

      test("is new again after 24 hours, and each tenant has its own", async () => {
        const tenant = await world.tenant();
        await world.accept(tenant, { idempotency });
        expect(await world.accept(await world.tenant(), { idempotency })).toMatchObject({ repeated: false });
        world.clock.advance(dayMs);
        const other = { ...idempotency, fingerprint: bytes("two") };
        expect(await world.accept(tenant, { idempotency: other })).toMatchObject({ repeated: false });
        expect(await world.accept(tenant, { idempotency: other })).toMatchObject({ repeated: true });
      });

      test("remembers no refusal, and answers before the account's standing is asked", async () => {
        const tenant = await world.tenant();
        await world.store.suspend(tenant.key, "payment", 1);
        expect(await refusalOf(world.accept(tenant, { idempotency }))).toBe("payment_required account_suspended");
        await world.store.resume(tenant.key, "payment");
        expect(await world.accept(tenant, { idempotency })).toMatchObject({ repeated: false });
        await world.store.suspend(tenant.key, "payment", 1);
        expect(await world.accept(tenant, { idempotency })).toMatchObject({ repeated: true });
      });
    });
  });
}
