import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { DueDelivery } from "../../../src/domain/delivery.ts";
import type { Tenant } from "../../../src/domain/tenant.ts";
import type { Pool } from "../../../src/store/postgres/pool.ts";
import {
  countErasedText,
  countSelectedText,
  nextEventsText,
  type Selecting,
} from "../../../src/store/postgres/replay-selection.ts";
import { leftText, nextTurnText } from "../../../src/store/postgres/replays.ts";
import { namedText, someEventsText } from "../../../src/store/postgres/webhook-use.ts";
import { describeWithPostgres, usePostgres } from "../../support/postgres.ts";
import { planOf } from "../../support/postgres-plans.ts";
import { createPostgresWorlds, type PostgresWorlds } from "../../support/postgres-worlds.ts";
import { latestKey, type World } from "../../support/store-factory.ts";
import { whenWaiting } from "./event-lane.ts";

const a = "https://a.example/hook";
const b = "https://b.example/hook";

describeWithPostgres("replays, with several nodes", () => {
  let nodes: PostgresWorlds;
  let here: World;
  let there: World;
  let pool: Pool;
  beforeEach(async () => {
    nodes = await createPostgresWorlds(2);
    [here, there] = nodes.worlds as [World, World];
    pool = nodes.pool;
  });
  afterEach(() => nodes.end());

  const firstOf = ([delivery]: readonly DueDelivery[]): DueDelivery => {
    if (!delivery) throw new Error("Nothing is due");
    return delivery;
  };

  /** Events of which each has one record, that has been delivered. */
  async function deliver(tenant: Tenant, count: number): Promise<void> {
    const payloads = Array.from({ length: count }, () => new Uint8Array([0x7b, 0x7d]));
    const { deliveries } = await here.acceptOwned(tenant, { payloads });
    await Promise.all(deliveries.map((delivery) => here.settle(delivery, "delivered")));
  }

  const countsLeft = async () => (await pool.read("select 1 from replay_count")).length;

  const usageOf = async ({ key }: Tenant) => {
    const [sums] = await pool.read<Record<string, number>>(
      `select sum(pending)::int as pending, sum(delivered)::int as delivered, sum(failed)::int as failed
        from usage where tenant_key = $1::bigint`,
      [key],
    );
    return sums;
  };

  test("a record that is in flight elsewhere keeps its owner, whose attempt is late", async () => {
    const tenant = await here.tenant({ urls: [a] });
    const { deliveries, eventIds } = await here.acceptOwned(tenant);
    const inFlight = firstOf(deliveries);
    const { replay, overtaken, webhooks } = await there.replayEvent(tenant, eventIds[0] ?? "");
    expect({ overtaken, webhooks }).toMatchObject({ overtaken: [], webhooks: [{ tenantKey: tenant.key }] });
    expect(await there.claim(tenant)).toEqual([]);
    expect(await here.settle(inFlight, "delivered")).toMatchObject({ kind: "superseded" });
    const next = firstOf(await there.claim(tenant));
    expect(next).toMatchObject({ run: 2, attempts: 1, attemptsInRun: 0, replayGroupId: "the single replay" });
    await there.settle(next, "delivered");
    expect(await here.replay(tenant, replay.id)).toMatchObject({ status: "completed", delivered: 1, superseded: 0 });
    expect(await usageOf(tenant)).toEqual({ pending: 0, delivered: 1, failed: 0 });
  });

  test("of what they overtake, those that this node owns are told", async () => {
    const tenant = await here.tenant({ urls: [a, b] });
    const { deliveries, eventIds } = await here.acceptOwned(tenant);
    await here.store.release(deliveries.slice(1));
    const { overtaken } = await here.replayEvent(tenant, eventIds[0] ?? "");
    const { tenantKey, eventSeq, webhookKey, deliveryKey } = firstOf(deliveries);
    expect(overtaken).toEqual([{ tenantKey, eventSeq, webhookKey, deliveryKey }]);
  });

  test("a record that is settled elsewhere as it is replayed is replayed once it is", async () => {
    const tenant = await here.tenant({ urls: [a] });
    const { deliveries, eventIds } = await here.acceptOwned(tenant);
    const settled = here.settle(firstOf(deliveries), "failed");
    const replayed = there.replayEvent(tenant, eventIds[0] ?? "");
    const kind = (await settled).kind;
    expect((await replayed).replay).toMatchObject({ queued: 1, skipped: 0 });
    expect(["settled", "superseded"]).toContain(kind);
    const next = firstOf(await there.claim(tenant));
    expect(next).toMatchObject({ run: 2, attempts: 1 });
    expect(await usageOf(tenant)).toEqual({ pending: 1, delivered: 0, failed: 0 });
  });

  test("is completed once, whichever node ends its last run", async () => {
    const tenant = await here.tenant({ urls: [a] });
    await deliver(tenant, 24);
    const { id } = await here.startReplay(tenant, "all");
    await here.queueAll();
    const lane = { tenantKey: tenant.key, webhookKey: (await here.store.webhooks(tenant.key))[0]?.key ?? 0 };
    const claims = await Promise.all([here, there].map(({ store, clock }) => store.claim(lane, clock.now(), 12)));
    const settled = claims.flatMap(({ due }, i) =>
      due.map((delivery, n) => (i === 0 ? here : there).settle(delivery, n % 2 === 0 ? "delivered" : "failed")),
    );
    expect(settled).toHaveLength(24);
    await Promise.all(settled);
    expect(await here.replay(tenant, id)).toMatchObject({
      status: "completed",
      delivered: 12,
      failed: 12,
      completedAt: here.clock.now(),
    });
    expect(await there.replay(tenant, id)).toEqual(await here.replay(tenant, id));
    expect(await countsLeft()).toBe(0);
  });

  test("that a node left as all had ended is completed by the next who queues", async () => {
    const tenant = await here.tenant({ urls: [a] });
    await deliver(tenant, 2);
    const left = await here.startReplay(tenant, "all");
    await here.queueAll();
    // As a node that dies between the two: what it settled is counted, and nothing is completed.
    for (const delivery of await here.claim(tenant)) await here.settle(delivery, "delivered");
    await pool.write("update replay set phase = 'queued', completed_at = null, delivered = 0");
    await pool.write(
      `insert into replay_count (tenant_key, replay_key, slot, delivered, failed, superseded)
        select tenant_key, key, 1, 2, 0, 0 from replay`,
    );
    const next = await there.startReplay(tenant, "all");
    expect(await there.queueAll()).toMatchObject([{ id: next.id, queued: 2 }]);
    expect(await here.replay(tenant, left.id)).toMatchObject({ status: "completed", delivered: 2 });
    expect(await countsLeft()).toBe(0);
  });

  test("are queued once by two who do so at once", async () => {
    const tenants = [await here.tenant({ urls: [a] }), await here.tenant({ urls: [a] })];
    for (const tenant of tenants) await deliver(tenant, 60);
    const replays = [];
    for (const tenant of tenants) replays.push(await here.startReplay(tenant, "all"));
    const turns = await Promise.all([here.queueAll(7), there.queueAll(7), here.queueAll(7), there.queueAll(7)]);
    expect(turns.flat()).toHaveLength(2 * Math.ceil(61 / 7));
    for (const [i, tenant] of tenants.entries()) {
      expect(await here.replay(tenant, replays[i]?.id ?? "")).toMatchObject({ status: "running", queued: 60 });
      const runs = await pool.read<{ run: number; n: number }>(
        "select run, count(*)::int as n from pending where tenant_key = $1::bigint group by run",
        [tenant.key],
      );
      expect([...runs]).toEqual([{ run: 2, n: 60 }]);
      expect(await usageOf(tenant)).toEqual({ pending: 60, delivered: 0, failed: 0 });
    }
  });

  describe("a record claimed for a cancelled replay, and replayed again before it is put back", () => {
    /** @returns the replay that came in between */
    async function overtake(tenant: Tenant, id: string, by: World): Promise<string> {
      const [webhook] = await here.store.webhooks(tenant.key);
      const ref = { tenantKey: tenant.key, webhookKey: webhook?.key ?? 0 };
      const locked = Promise.withResolvers<void>();
      const mayGoOn = Promise.withResolvers<void>();
      const holdingBack = pool.transact(async (tx) => {
        await tx.run("select 1 from tenant where key = $1::bigint for update", [tenant.key]);
        locked.resolve();
        await mayGoOn.promise;
      });
      await locked.promise;
      const replayed = by.replayEvent(tenant, id);
      await whenWaiting(pool, 1);
      const claimed = here.store.claim(ref, here.clock.now(), 10);
      await whenWaiting(pool, 2);
      mayGoOn.resolve();
      await holdingBack;
      expect(await claimed).toEqual({ due: [], nextDueAt: here.clock.now() });
      return (await replayed).replay.id;
    }

    test.each(["here", "there"])("%s, is anybody's", async (by) => {
      const tenant = await here.tenant({ urls: [a] });
      const id = await here.event(tenant, "failed");
      const { replay } = await here.replayEvent(tenant, id);
      await here.store.cancelReplay(tenant.key, replay.id, here.clock.now());
      const later = await overtake(tenant, id, by === "here" ? here : there);
      await there.settle(firstOf(await there.claim(tenant)), "delivered");
      expect(await here.replay(tenant, later)).toMatchObject({ status: "completed", delivered: 1 });
    });

    test("is still the head of its line", async () => {
      const tenant = await here.tenant();
      await here.setUrls(tenant, { url: a, ordered: true });
      const event = { payload: new Uint8Array([0x7b, 0x7d]), type: null, orderingKey: "x" };
      const [id = "", next = ""] = (await here.accept(tenant, { events: [event, event] })).eventIds;
      const { replay } = await here.replayEvent(tenant, id);
      await here.store.cancelReplay(tenant.key, replay.id, here.clock.now());
      const later = await overtake(tenant, id, there);
      const head = await there.claim(tenant);
      expect(head.map(({ eventId }) => eventId)).toEqual([id]);
      await there.settle(firstOf(head), "delivered");
      expect(await here.replay(tenant, later)).toMatchObject({ status: "completed", delivered: 1 });
      expect((await there.claim(tenant)).map(({ eventId }) => eventId)).toEqual([next]);
    });
  });

  test("keep their counts while others settle what they queue", async () => {
    const tenant = await here.tenant({ urls: [a, b] });
    const payloads = Array.from({ length: 40 }, () => new Uint8Array([0x7b, 0x7d]));
    const apiKeyId = await latestKey(there.store, tenant.key);
    const { deliveries } = await there.acceptOwned(tenant, { payloads, apiKeyId });
    const { id } = await here.startReplay(tenant, "all");
    // In flight there, and replayed here, in the order in which both happen to come.
    await Promise.all([here.queueAll(9), ...deliveries.map((delivery) => there.settle(delivery, "failed"))]);
    for (const world of [here, there, here]) {
      await Promise.all((await world.claim(tenant)).map((delivery) => world.settle(delivery, "delivered")));
    }
    const replay = await here.replay(tenant, id);
    expect({ ...replay, ended: replay.delivered + replay.failed + replay.superseded }).toMatchObject({
      status: "completed",
      queued: 80,
      ended: 80,
    });
    expect(await usageOf(tenant)).toEqual({ pending: 0, delivered: 80, failed: 0 });
  });

  test("find a label with any character", async () => {
    const tenant = await here.tenant({ urls: [a] });
    const id = await here.event(tenant, "failed");
    for (const label of ['\u0000 "quoted" \\ é 🚀', `${"x".repeat(300)}\u0000`]) {
      const { replay } = await here.store.replayEvent(
        tenant.key,
        { id: `rpl_${label.length}`, kind: "single", label, eventId: id },
        here.clock.now(),
      );
      expect((await there.replay(tenant, replay.id)).replayGroupId).toBe(label);
      expect((await there.due(tenant))[0]?.replayGroupId).toBe(label);
      const listed = (await there.replaysOf(tenant.key, { offset: 0, limit: 1 })).replays;
      expect(listed.map(({ replayGroupId }) => replayGroupId)).toEqual([label]);
    }
  });
});

describeWithPostgres("statements of replays", () => {
  const postgres = usePostgres();

  const none = { byWebhook: false, byType: false, byCode: false, byStatus: false };
  const filters = [
    ["", none],
    [" by webhook", { ...none, byWebhook: true }],
    [" by type", { ...none, byType: true }],
    [" by code", { ...none, byCode: true }],
    [" by all", { byWebhook: true, byType: true, byCode: true, byStatus: true }],
  ] as const;

  test.each([
    ["whose turn it is", nextTurnText, ["replay_to_queue"]],
    ["what was left", leftText, ["replay_to_queue", "replay_count_tenant_key_replay_key_slot_pk"]],
    ["the next events", someEventsText, ["pending_by_tenant", "delivery_default_tenant_key_event_seq_key"]],
    ...filters.flatMap(([by, filter]): [string, string, string[]][] => {
      const ofFailed: Selecting = { isOfFailed: true, ...filter };
      const ofAll: Selecting = { isOfFailed: false, ...filter };
      const ended = filter.byCode
        ? "delivery_default_tenant_key_error_code_"
        : "delivery_default_tenant_key_event_seq_";
      const waiting = filter.byCode ? "pending_by_code" : "pending_by_tenant";
      return [
        [`the next events${by}`, nextEventsText(ofAll), [waiting, ended]],
        [`the next events with failed records${by}`, nextEventsText(ofFailed), [ended]],
        [`the number of events${by}`, countSelectedText(ofAll), [waiting, ended]],
        [`the number of failed ones${by}`, countSelectedText(ofFailed), [ended]],
        [`how many have no payload${by}`, countErasedText(ofAll), [waiting, ended, "event_default_pkey"]],
      ];
    }),
    [
      "what names webhooks",
      namedText,
      ["pending_by_tenant", "delivery_default_tenant_key_event_seq_key", "attempt_default_pkey"],
    ],
  ])("find %s by an index", async (_, text, indexes) => {
    const plan = await planOf(postgres.pool(await postgres.migrated(), { size: 1 }), text);
    for (const index of indexes) expect(plan).toContain(index);
    expect(plan).not.toMatch(/Seq Scan on (event|pending|delivery|attempt|replay)/);
  });
});
