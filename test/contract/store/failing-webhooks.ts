import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { ownPayload } from "../../../src/domain/own-events.ts";
import type { Tenant } from "../../../src/domain/tenant.ts";
import type { Webhook, WebhookRef } from "../../../src/domain/webhook.ts";
import type { StoreBackend } from "../../support/store-backend.ts";
import { bytes, createWorld, type World } from "../../support/store-factory.ts";

const [a, b] = ["https://a.example", "https://b.example"];
const hour = 3_600_000;
/** An answer is heard of when it has ended, after all that the tests have settled. */
const heardAfter = 1_000;
const policy = { disableAfterMs: 5 * 24 * hour };

const disabledRecord = {
  state: "FAILED",
  errorCode: "webhook_disabled",
  errorReason: "The webhook was disabled before the delivery succeeded",
  statusCode: null,
};

/** `FailingWebhookVerbs` of `src/store/failing-webhooks.ts` as tests, and what a disabled webhook means to the others. */
export function failingWebhooksContract(backend: StoreBackend): void {
  describe(`${backend.name} is a store:`, () => {
    let world: World;
    beforeEach(async () => {
      world = await createWorld(backend);
    });
    afterEach(() => world.end());

    async function webhookOf(tenant: Tenant, url = a) {
      const webhook = (await world.store.webhooks(tenant.key)).find((one) => one.url === url);
      if (!webhook) throw new Error(`${url} is not registered`);
      return webhook;
    }
    const refOf = async (tenant: Tenant, url = a): Promise<WebhookRef> => ({
      tenantKey: tenant.key,
      webhookKey: (await webhookOf(tenant, url)).key,
    });

    /** It has failed from one time on, and once more at another. */
    const fail = async (
      tenant: Tenant,
      { since = 0, at, gone = 0, url = a }: Partial<Record<"since" | "at" | "gone", number>> & { url?: string } = {},
    ) =>
      world.store.noteFailures(
        await refOf(tenant, url),
        { since, at: at ?? since, gone: Array<number>(gone).fill((at ?? since) + heardAfter), excusedMs: 0 },
        policy,
      );
    const disable = (tenant: Tenant, url = a) => fail(tenant, { at: world.clock.now(), gone: 3, url });
    const enable = async (tenant: Tenant) => world.store.enableWebhook(tenant.key, (await webhookOf(tenant)).id);
    const drain = async () => {
      while (await world.store.failUndeliverable(10));
    };

    describe("a webhook that fails", () => {
      test("is known as one, also after a restart, until it succeeds", async () => {
        const tenant = await world.tenant({ urls: [a, b] });
        expect(await world.store.failingWebhooks()).toEqual([]);
        expect(await fail(tenant, { since: 5, at: 70, gone: 2 })).toMatchObject({ isNew: true, disabled: null });
        await world.reopen();
        const known = { since: 5, goneInARow: 2, toldAt: null, warnedAt: null };
        expect(await webhookOf(tenant)).toMatchObject({ failing: known, disabled: null });
        const { since, goneInARow } = known;
        expect(await world.store.failingWebhooks()).toEqual([{ ...(await refOf(tenant)), since, goneInARow }]);
        expect(await world.store.noteSuccess(await refOf(tenant), 80)).toMatchObject({ url: a, failing: null });
        expect(await webhookOf(tenant)).toMatchObject({ failing: null });
        expect(await world.store.failingWebhooks()).toEqual([]);
      });

      test("has failed since the first time, whatever comes later", async () => {
        const tenant = await world.tenant({ urls: [a] });
        await fail(tenant, { since: 5, at: 70 });
        const told = await fail(tenant, { since: 60, at: 25 * hour });
        expect(told).toMatchObject({ isNew: false, isToldNow: true, webhook: { failing: { since: 5 } } });
        const warned = await fail(tenant, { since: 60, at: 97 * hour });
        expect(warned?.webhook.failing).toEqual({ since: 5, goneInARow: 0, toldAt: 25 * hour, warnedAt: 97 * hour });
        expect(await webhookOf(tenant)).toEqual(warned?.webhook as never);
      });

      test("is disabled when its time has come", async () => {
        const tenant = await world.tenant({ urls: [a] });
        for (const at of [0, 25 * hour, 97 * hour]) await fail(tenant, { at });
        const disabled = { at: 121 * hour, reason: "failing" } as const;
        expect(await fail(tenant, { at: 121 * hour })).toMatchObject({ disabled, webhook: { disabled } });
        expect(await webhookOf(tenant)).toMatchObject({ disabled });
        expect(await world.store.failingWebhooks()).toEqual([]);
      });

      test("is listed with its account, disabled or not, those first that have failed for longest", async () => {
        const [tenant, other] = [await world.tenant({ urls: [a, b] }), await world.tenant({ urls: [a] })];
        await fail(tenant, { since: 70 });
        await fail(other, { since: 5 });
        await disable(tenant, b);
        const about = async ({ id: tenantId, name: tenantName, key }: Tenant, url: string) => {
          const { id: webhookId, name } = (await world.store.webhooks(key)).find((one) => one.url === url) as Webhook;
          return { tenantId, tenantName, webhookId, url, name };
        };
        const listed = await world.store.listFailingWebhooks(10);
        expect(listed).toEqual([
          { ...(await about(tenant, b)), failingSince: 0, disabledAt: world.clock.now() },
          { ...(await about(other, a)), failingSince: 5, disabledAt: null },
          { ...(await about(tenant, a)), failingSince: 70, disabledAt: null },
        ]);
        expect(await world.store.listFailingWebhooks(1)).toEqual(listed.slice(0, 1));
        await world.store.deleteTenant(other.key, world.clock.now());
        await world.setUrls(tenant, b);
        expect((await world.store.listFailingWebhooks(10)).map(({ url }) => url)).toEqual([b]);
      });

      test("that is well has nothing to be noted of a success", async () => {
        const tenant = await world.tenant({ urls: [a] });
        expect(await world.store.noteSuccess(await refOf(tenant), 80)).toBeNull();
      });

      test("goes on failing, if the success that is noted was before its first failure", async () => {
        const tenant = await world.tenant({ urls: [a] });
        await fail(tenant, { since: 81, at: 82, gone: 2 });
        expect(await world.store.noteSuccess(await refOf(tenant), 80)).toBeNull();
        expect(await world.store.failingWebhooks()).toMatchObject([{ since: 81, goneInARow: 2 }]);
        expect(await world.store.noteSuccess(await refOf(tenant), 83)).toMatchObject({ failing: null });
      });

      test("and is removed, or disabled, or whose account is gone, is no more to be told about", async () => {
        const tenant = await world.tenant({ urls: [a, b] });
        const [first, second] = [await refOf(tenant), await refOf(tenant, b)];
        const failures = { since: 0, at: 0, gone: [], excusedMs: 0 };
        await disable(tenant);
        expect(await world.store.noteFailures(first, failures, policy)).toBeNull();
        expect(await world.store.noteSuccess(first, hour)).toBeNull();
        await fail(tenant, { url: b });
        await world.setUrls(tenant, a);
        expect(await world.store.failingWebhooks()).toEqual([]);
        for (const ref of [first, second]) expect(await world.store.noteFailures(ref, failures, policy)).toBeNull();
        await world.store.deleteTenant(tenant.key, world.clock.now());
        expect(await world.store.noteSuccess(second, hour)).toBeNull();
      });
    });

    describe("a disabled webhook", () => {
      test("gives out nothing from then on, and its records fail in batches", async () => {
        const tenant = await world.tenant({ urls: [a, b] });
        await world.acceptMany(tenant, 5);
        await disable(tenant);
        expect((await world.due(tenant)).map(({ url }) => url)).toEqual([b, b, b, b, b]);
        expect(await world.store.claim(await refOf(tenant), world.clock.now(), 10)).toMatchObject({ due: [] });
        expect(await world.store.failUndeliverable(3)).toBe(true);
        expect(await world.totals(tenant)).toEqual({ PENDING: 7, DELIVERED: 0, FAILED: 3 });
        expect(await world.store.failUndeliverable(3)).toBe(false);
        expect(await world.totals(tenant)).toEqual({ PENDING: 5, DELIVERED: 0, FAILED: 5 });
        const { records } = await world.page(tenant, { state: "FAILED" });
        for (const record of records) expect(record).toMatchObject({ ...disabledRecord, targetWebhook: a });
      });

      test("has a failed record of what comes meanwhile, counted with those like it, and the others get theirs", async () => {
        const tenant = await world.tenant({ urls: [a, b] });
        await world.acceptMany(tenant, 1);
        await disable(tenant);
        await drain();
        const { eventIds, failed, deliveries, unowned } = await world.acceptOwned(tenant);
        expect({ failed, urls: deliveries.map(({ url }) => url), unowned }).toEqual({
          failed: [(await world.store.webhooks(tenant.key))[0]?.key ?? 0],
          urls: [b],
          unowned: [],
        });
        expect(await world.records(tenant, eventIds[0] ?? "")).toEqual([`FAILED ${a}`, `PENDING ${b}`]);
        const [record] = (await world.recordsOf(tenant.key, eventIds[0] ?? "")) ?? [];
        expect(record).toMatchObject(disabledRecord);
        expect(await world.totals(tenant)).toEqual({ PENDING: 2, DELIVERED: 0, FAILED: 2 });
        const { groups } = await world.store.failures({ tenantKey: tenant.key, from: 0, to: 10 ** 13 });
        expect(groups.map(({ code, failed, waiting }) => ({ code, failed, waiting }))).toEqual([
          { code: "webhook_disabled", failed: 2, waiting: 0 },
        ]);
      });

      test("keeps its standing with its URL, and is another one when that was left out", async () => {
        const tenant = await world.tenant({ urls: [a] });
        await disable(tenant);
        await world.setUrls(tenant, b, { url: a, name: "again" });
        expect(await webhookOf(tenant)).toMatchObject({ name: "again", disabled: { reason: "gone" } });
        await world.setUrls(tenant, b);
        await world.setUrls(tenant, a);
        expect(await webhookOf(tenant)).toMatchObject({ failing: null, disabled: null });
      });

      test("that is removed while something waits has that failed as well", async () => {
        const tenant = await world.tenant({ urls: [a] });
        await world.acceptMany(tenant, 3);
        await disable(tenant);
        await world.store.failUndeliverable(2);
        await world.setUrls(tenant, b);
        await drain();
        expect(await world.totals(tenant)).toEqual({ PENDING: 0, DELIVERED: 0, FAILED: 3 });
      });

      test.each(["delivered", "failed", "retry"] as const)(
        "counts an attempt under way that ends %s",
        async (outcome) => {
          const states = { delivered: "DELIVERED", failed: "FAILED", retry: "FAILED" };
          for (const drained of [false, true]) {
            const tenant = await world.tenant({ urls: [a] });
            const delivery = await world.delivery(tenant);
            await disable(tenant);
            if (drained) await drain();
            expect(await world.settle(delivery, outcome)).toMatchObject({ kind: "settled" });
            expect(await world.recordsOf(tenant.key, delivery.eventId)).toMatchObject([
              {
                state: states[outcome],
                errorCode: { delivered: null, failed: "http_status", retry: "webhook_disabled" }[outcome],
              },
            ]);
          }
        },
      );

      test("gets nothing of a replay, which counts its failures as skipped", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const id = await world.event(tenant, "failed");
        await disable(tenant);
        const { replay, webhooks } = await world.replayEvent(tenant, id);
        expect({ ...replay, webhooks }).toMatchObject({ status: "completed", queued: 0, skipped: 1, webhooks: [] });
        expect(await world.records(tenant, id)).toEqual([`FAILED ${a}`]);
      });

      test("ends the replay whose records waited for it", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const id = await world.event(tenant, "failed");
        const { replay } = await world.replayEvent(tenant, id);
        await disable(tenant);
        await drain();
        expect(await world.replay(tenant, replay.id)).toMatchObject({ status: "completed", failed: 1 });
      });
    });

    describe("an event of our own", () => {
      const type = "postrider.webhook.failing";
      const payload = bytes('{"event_type":"postrider.webhook.failing"}');
      const tell = (tenant: Tenant, aboutKey: number) =>
        world.store.acceptOwnEvent({ tenantKey: tenant.key, type, aboutKey, payload });

      test("is stored for those that ask for it, costs no quota, and is listed like any other", async () => {
        const tenant = await world.tenant({ tier: "free", enforcedTier: "free", urls: [a] });
        await world.acceptMany(tenant, 1);
        const [about] = await world.store.webhooks(tenant.key);
        await world.setUrls(tenant, a, { url: b, eventTypes: ["postrider.*"] });
        const before = await world.store.usage(tenant.key, world.clock.now());
        const accepted = await tell(tenant, about?.key ?? 0);
        expect(accepted).toMatchObject({
          deliveries: [],
          unowned: [await refOf(tenant, b)],
          failed: [],
          repeated: false,
        });
        expect(await world.store.usage(tenant.key, world.clock.now())).toEqual(before);
        const [id = ""] = accepted?.eventIds ?? [];
        expect(await world.records(tenant, id)).toEqual([`PENDING ${b}`]);
        const { records, total } = await world.page(tenant, { type });
        expect({ total, records }).toMatchObject({ total: 1, records: [{ eventId: id, type }] });
        expect((await world.page(tenant)).totalEvents).toBe(2);
        expect(await world.totals(tenant)).toEqual({ PENDING: 2, DELIVERED: 0, FAILED: 0 });
        const due = (await world.claim(tenant)).filter(({ url }) => url === b);
        expect(due.map((delivery) => Buffer.from(delivery.payload).toString())).toEqual([
          Buffer.from(payload).toString(),
        ]);
        for (const delivery of due) await world.settle(delivery, "delivered");
        expect(await world.records(tenant, id)).toEqual([`DELIVERED ${b}`]);
      });

      test("is not for the webhook that it is about when it is replayed either", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const asks = { eventTypes: ["postrider.*"] };
        await world.setUrls(tenant, { url: a, ...asks }, { url: b, ...asks });
        const [about] = await world.store.webhooks(tenant.key);
        if (!about) throw new Error("a is registered");
        const accepted = await world.store.acceptOwnEvent({
          ...{ tenantKey: tenant.key, type, aboutKey: about.key },
          payload: ownPayload(type, about, {}),
        });
        const [id = ""] = accepted?.eventIds ?? [];
        for (const delivery of await world.claim(tenant)) await world.settle(delivery, "failed");
        await world.startReplay(tenant, "failed");
        await world.queueAll();
        expect(await world.records(tenant, id)).toEqual([`PENDING ${b}`]);
        await world.replayEvent(tenant, id);
        expect(await world.records(tenant, id)).toEqual([`PENDING ${b}`]);
      });

      test("that nobody asks for, or of an account that is gone, or without room, is not stored", async () => {
        const tenant = await world.tenant({ urls: [a] });
        const { webhookKey } = await refOf(tenant);
        expect(await tell(tenant, webhookKey)).toBeNull();
        await world.setUrls(tenant, { url: a, eventTypes: ["postrider.*"] });
        expect(await tell(tenant, webhookKey)).toBeNull();
        world.growth.isAllowed = false;
        expect(await tell(tenant, 0)).toBeNull();
        world.growth.isAllowed = true;
        expect((await world.page(tenant)).totalEvents).toBe(0);
        await world.store.deleteTenant(tenant.key, world.clock.now());
        expect(await tell(tenant, 0)).toBeNull();
      });
    });

    describe("a webhook that is enabled", () => {
      test("gets what comes from then on, and what has failed when somebody replays it", async () => {
        const tenant = await world.tenant({ urls: [a] });
        await world.acceptMany(tenant, 2);
        await disable(tenant);
        await drain();
        expect(await enable(tenant)).toMatchObject({ wasDisabled: true, webhook: { disabled: null, failing: null } });
        expect(await webhookOf(tenant)).toMatchObject({ disabled: null, failing: null });
        expect(await world.due(tenant)).toEqual([]);
        await world.accept(tenant);
        expect(await world.due(tenant)).toHaveLength(1);
        await world.startReplay(tenant, "failed");
        await world.queueAll();
        expect(await world.due(tenant)).toHaveLength(3);
      });

      test("has what nobody had failed by then", async () => {
        const tenant = await world.tenant({ urls: [a] });
        await world.acceptMany(tenant, 3);
        await disable(tenant);
        await world.store.failUndeliverable(2);
        await enable(tenant);
        await drain();
        expect(await world.totals(tenant)).toEqual({ PENDING: 1, DELIVERED: 0, FAILED: 2 });
        expect(await world.due(tenant)).toHaveLength(1);
      });

      test("can be disabled again, and removed", async () => {
        const tenant = await world.tenant({ urls: [a] });
        await disable(tenant);
        await drain();
        await enable(tenant);
        await world.accept(tenant);
        world.clock.advance(1);
        await disable(tenant);
        await drain();
        expect(await world.totals(tenant)).toEqual({ PENDING: 0, DELIVERED: 0, FAILED: 1 });
        await enable(tenant);
        await world.accept(tenant);
        world.clock.advance(1);
        await world.setUrls(tenant);
        await drain();
        expect(await world.totals(tenant)).toEqual({ PENDING: 0, DELIVERED: 0, FAILED: 2 });
      });

      test("as it was already stays as it is, its failures too; one that does not exist is none", async () => {
        const tenant = await world.tenant({ urls: [a] });
        await fail(tenant);
        expect(await enable(tenant)).toMatchObject({ wasDisabled: false, webhook: { failing: { since: 0 } } });
        expect(await world.store.enableWebhook(tenant.key, "wh_0")).toBeNull();
        const other = await world.tenant();
        expect(await world.store.enableWebhook(other.key, (await webhookOf(tenant)).id)).toBeNull();
      });
    });
  });
}
