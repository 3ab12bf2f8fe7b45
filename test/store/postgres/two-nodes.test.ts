import { expect, test } from "bun:test";
import type { DueDelivery } from "../../../src/domain/delivery.ts";
import { DomainError } from "../../../src/domain/errors.ts";
import { systemClock } from "../../../src/lib/clock.ts";
import type { NodeLease } from "../../../src/store/node-lease.ts";
import type { OpenedStore } from "../../../src/store/opened.ts";
import { OutcomeUnknown } from "../../../src/store/postgres/faults.ts";
import { rescueExpired } from "../../../src/store/postgres/nodes.ts";
import type { Pool } from "../../../src/store/postgres/pool.ts";
import { openPostgresStore } from "../../../src/store/postgres/store.ts";
import { describeWithPostgres, usePostgres } from "../../support/postgres.ts";
import { createCuttingProxy } from "../../support/postgres-proxy.ts";
import { bytes, newTenant, refusalOf, settlementOf, untyped } from "../../support/store-factory.ts";

const a = "https://a.example/hook";
const everything = { roomFor: () => Number.POSITIVE_INFINITY };

describeWithPostgres("two nodes on one database", () => {
  const postgres = usePostgres();

  test.each([
    ["owned is free as it starts again", "its own", 2],
    ["goes on when the mark is another's", "another's", 0],
  ])("what a node that was killed %s", async (_, whose, free) => {
    const url = await postgres.migrated();
    const marks: string[] = [];
    const open = async (lastNode: string | null) => {
      const { store } = await openPostgresStore({
        url,
        clock: systemClock,
        durability: "waived",
        lastNode,
        noteNode: (mark) => void marks.push(mark),
      });
      postgres.cleanUpFirst(() => store.close());
      return store;
    };
    const first = await open(null);
    const made = newTenant({ urls: [a] });
    const { key: tenantKey } = await first.createTenant(made, systemClock.now());
    const events = [bytes("1"), bytes("2")].map(untyped);
    await first.acceptEvents({ tenantKey, apiKeyId: made.apiKey.id, events, ...everything });
    const [mark = ""] = marks;
    const again = await open(whose === "its own" ? mark : mark.replace(/@.*/, "@0"));
    expect(new Set(marks).size).toBe(2);
    const claims = await Promise.all(
      (await again.discover()).map((lane) => again.claim(lane, systemClock.now(), 1_000)),
    );
    expect(claims.flatMap(({ due }) => due)).toHaveLength(free);
  });

  async function twoNodes(given: Parameters<typeof newTenant>[0] = {}) {
    const url = await postgres.migrated();
    const proxy = await createCuttingProxy(url);
    postgres.cleanUpFirst(proxy.close);
    const open = async (url: string) => {
      const opened = await openPostgresStore({ url, clock: systemClock, durability: "waived" });
      postgres.cleanUpFirst(() => opened.store.close());
      return opened;
    };
    const opened = [await open(proxy.url), await open(url)] as const;
    const stores = [opened[0].store, opened[1].store] as const;
    const leases = [opened[0].lease, opened[1].lease] as const;
    const made = newTenant({ urls: [a], ...given });
    const tenant = await stores[0].createTenant(made, systemClock.now());
    const accept = (store: OpenedStore["store"], count = 1) =>
      store.acceptEvents({
        tenantKey: tenant.key,
        apiKeyId: made.apiKey.id,
        events: Array.from({ length: count }, () => untyped(bytes("{}"))),
        ...everything,
      });
    const claim = async (store: OpenedStore["store"]) => {
      const lanes = await store.discover();
      const claims = await Promise.all(lanes.map((lane) => store.claim(lane, systemClock.now(), 1_000)));
      return claims.flatMap(({ due }) => due);
    };
    const pool = postgres.pool(url);
    return { stores, leases, tenant, accept, claim, pool, proxy };
  }

  /** As when a node was not heard of for a lease: another one declares it dead. */
  async function declareDead(pool: Pool, slot: number): Promise<void> {
    await pool.write(
      "update node set lease_until = clock_timestamp() - interval '1 second' where slot = $1::smallint",
      [slot],
    );
    expect(await rescueExpired(pool)).toHaveLength(1);
  }

  /** Resolves when it knows that it was dead, and lives again. */
  async function whenJoinedAnew(lease: NodeLease): Promise<void> {
    const isBack = async () => (await lease.nodes()).length === 2 && lease.mayStart();
    while (!(await isBack())) await Bun.sleep(50);
  }

  const settle = (store: OpenedStore["store"], delivery: DueDelivery, outcome: "delivered" | "failed" | "retry") =>
    store.settle(settlementOf(delivery, outcome, systemClock.now()));

  test("accept a quota exactly, with six writers", async () => {
    const { stores, tenant, accept } = await twoNodes({ tier: "free" });
    await accept(stores[0], 9_800);
    const writers = Array.from({ length: 6 }, async (_, i) => {
      let accepted = 0;
      for (let left = 60; left > 0; left--) {
        const count = 1 + (left % 2);
        const outcome = await refusalOf(accept(stores[i % 2 === 0 ? 0 : 1], count));
        if (outcome === "fulfilled") accepted += count;
        else expect(outcome).toBe("rate_limited quota_exceeded");
      }
      return accepted;
    });
    const accepted = (await Promise.all(writers)).reduce((sum, one) => sum + one, 0);
    expect(accepted).toBe(200);
    for (const store of stores) {
      expect(await store.usage(tenant.key, systemClock.now())).toEqual({ eventsThisMonth: 10_000 });
    }
  });

  test("own what they have accepted or claimed, and nobody else claims it", async () => {
    const { stores, accept, claim } = await twoNodes();
    const [one, two] = stores;
    const { deliveries } = await accept(one, 3);
    await accept(one, 2);
    expect(await claim(two)).toEqual([]);
    await one.release(deliveries.slice(0, 2));
    const [first, second] = [await claim(two), await claim(one)];
    expect(first.map(({ eventId }) => eventId)).toEqual(deliveries.slice(0, 2).map(({ eventId }) => eventId));
    expect(second).toEqual([]);
    // It is no longer his to release.
    await one.release(deliveries);
    expect((await claim(two)).map(({ eventId }) => eventId)).toEqual(deliveries.slice(2).map(({ eventId }) => eventId));
  });

  test("accept and claim nothing any more once they were declared dead, and what they owned is anybody's", async () => {
    const { stores, accept, claim, pool } = await twoNodes();
    const [one, two] = stores;
    const before = [await accept(one), await accept(one)];
    await accept(two);
    await declareDead(pool, 0);
    const refused = await accept(one).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(DomainError);
    expect(refused).toMatchObject({ kind: "unavailable" });
    expect((await claim(two)).map(({ eventId }) => eventId)).toEqual(before.flatMap(({ eventIds }) => eventIds));
    expect(await claim(one)).toEqual([]);
  });

  test("own nothing of what was accepted, when they hear of it only after they were declared dead", async () => {
    const { stores, tenant, accept, claim, pool, proxy } = await twoNodes();
    const [one, two] = stores;
    await one.release((await accept(one)).deliveries);
    expect(await claim(two)).toHaveLength(1);
    const isCut = proxy.cutNext("answer", `{${tenant.key}}`);
    const accepting = accept(one);
    await isCut;
    let isDead = false;
    // It asks what became of the batch until it hears it.
    const keptApart = (async () => {
      while (!isDead) await proxy.cutNext("request", "update lane set batch = case");
    })();
    await declareDead(pool, 0);
    isDead = true;
    const { eventIds, deliveries, unowned } = await accepting;
    await keptApart;
    expect(eventIds).toHaveLength(1);
    expect(deliveries).toEqual([]);
    expect(unowned).toMatchObject([{ tenantKey: tenant.key }]);
    expect((await claim(two)).map(({ eventId }) => eventId)).toEqual([...eventIds]);
  });

  test("are told when one has left, as what it gave back may have been due for long", async () => {
    const url = await postgres.migrated();
    const open = async () => {
      const opened = await openPostgresStore({ url, clock: systemClock, durability: "waived" });
      postgres.cleanUpFirst(() => opened.store.close());
      return opened;
    };
    const [one, other] = [await open(), await open()];
    const { promise: told, resolve: tell } = Promise.withResolvers<void>();
    await one.lease.announce("127.0.0.1:8080");
    expect(one.lease.living()).toHaveLength(2);
    one.lease.onChange({ lost() {}, rejoined() {}, confirmed() {}, rescued() {}, unowned: tell });
    await other.store.close();
    await told;
    expect(one.lease.living()).toHaveLength(1);
  });

  test("answer no accept that names a webhook after its removal was told", async () => {
    const { stores, tenant, accept } = await twoNodes();
    const [one, two] = stores;
    await accept(one);
    let isRemoved = false;
    one.onChange(({ kind }) => {
      if (kind === "webhooks_removed") isRemoved = true;
    });
    const { promise: first, resolve: isAccepting } = Promise.withResolvers<void>();
    const late: DueDelivery[] = [];
    const writers = Array.from({ length: 8 }, async () => {
      for (let after = 0; after < 3; ) {
        const isLate = isRemoved;
        const { deliveries } = await accept(one);
        if (isRemoved) late.push(...deliveries);
        else if (deliveries.length > 0) isAccepting();
        if (isLate) after += 1;
      }
    });
    await first;
    await two.replaceWebhooks(tenant.key, { webhooks: [], limit: 10 }, systemClock.now());
    await Promise.all(writers);
    expect(late).toEqual([]);
  });

  test("hear that a webhook is disabled, and deliver nothing to it; that it is enabled, and do", async () => {
    const { stores, tenant, accept, claim } = await twoNodes();
    const [one, two] = stores;
    const told: string[] = [];
    one.onChange((change) => {
      if (change.kind === "webhook_stands") told.push(change.as);
    });
    const [webhook] = await two.webhooks(tenant.key);
    const [ref, id] = [{ tenantKey: tenant.key, webhookKey: webhook?.key ?? 0 }, webhook?.id ?? ""];
    const [mine] = (await accept(one)).deliveries;
    await two.noteFailures(ref, { since: 0, at: 1, gone: [1, 1, 1], excusedMs: 0 }, { disableAfterMs: 1 });
    expect(await accept(one)).toMatchObject({ deliveries: [], unowned: [], failed: [ref.webhookKey] });
    // Of the attempt that was under way on the other node.
    if (mine) expect((await one.settle(settlementOf(mine, "retry", systemClock.now()))).kind).toBe("settled");
    expect(await claim(one)).toEqual([]);
    const { total } = await one.page({ tenantKey: tenant.key, page: 0, size: 9, state: "FAILED" });
    expect(total).toBe(2);
    await two.enableWebhook(tenant.key, id);
    expect((await accept(one)).deliveries).toHaveLength(1);
    expect(told).toEqual(["disabled", "well"]);
  });

  test.each(["delivered", "retry"] as const)(
    "take no webhook for gone to which another node had something %s since the first 410",
    async (outcome) => {
      const { stores, tenant, accept } = await twoNodes();
      const [one, two] = stores;
      const [webhook] = await one.webhooks(tenant.key);
      const ref = { tenantKey: tenant.key, webhookKey: webhook?.key ?? 0 };
      const note = (...gone: number[]) =>
        one.noteFailures(ref, { since: row[0] ?? 0, at: gone.at(-1) ?? 0, gone, excusedMs: 0 }, { disableAfterMs: 1 });
      const [theirs] = (await accept(two)).deliveries;
      if (!theirs) throw new Error("it was not accepted");
      const attempt = settlementOf(theirs, outcome, systemClock.now());
      await two.settle(attempt);
      const endedAt = attempt.attempt.startedAt + attempt.attempt.durationMs;
      const row = [endedAt - 1, endedAt, endedAt + 1];
      expect(await note(...row)).toMatchObject({ disabled: null, failing: { goneInARow: 1 } });
      expect(await note(...row.map((at) => at + 1))).toMatchObject({ disabled: null, failing: { goneInARow: 2 } });
      expect(await note(...row.map((at) => at + 2))).toMatchObject({ disabled: { reason: "gone" } });
    },
  );

  test.each([
    ["another", 1],
    ["the same, in its next life,", 0],
  ] as const)("settle late what %s has by now: logged only, but for an acknowledgement", async (_, by) => {
    const { stores, leases, accept, claim, pool } = await twoNodes();
    const one = stores[0];
    const mine = (await Promise.all(Array.from({ length: 3 }, () => accept(one)))).flatMap(
      ({ deliveries }) => deliveries,
    );
    const [retried, failed, delivered] = mine as [DueDelivery, DueDelivery, DueDelivery];
    await declareDead(pool, 0);
    // It comes back as another node, with the outcomes of attempts that it had begun as the one before.
    await whenJoinedAnew(leases[0]);
    const theirs = await claim(stores[by]);
    expect(theirs).toHaveLength(3);
    expect(await settle(one, retried, "retry")).toMatchObject({ kind: "superseded", attempt: expect.anything() });
    expect(await settle(one, failed, "failed")).toMatchObject({ kind: "superseded", attempt: expect.anything() });
    expect(await settle(one, delivered, "delivered")).toMatchObject({ kind: "settled" });
    expect(await claim(one)).toEqual([]);
    const outcomes = [];
    for (const delivery of theirs) outcomes.push((await settle(stores[by], delivery, "delivered")).kind);
    expect(outcomes.sort()).toEqual(["settled", "settled", "superseded"]);
  });

  test("go on owning what they have claimed again, when an outcome from before comes and an answer is lost", async () => {
    const { stores, leases, tenant, accept, claim, pool, proxy } = await twoNodes();
    const [one, two] = stores;
    const [delivery] = (await accept(one)).deliveries;
    if (!delivery) throw new Error("It has a webhook");
    await declareDead(pool, 0);
    await whenJoinedAnew(leases[0]);
    expect(await claim(one)).toHaveLength(1);
    await settle(one, delivery, "retry");
    await two.release((await accept(two)).deliveries);
    const { promise: isUnowned, resolve: unowned } = Promise.withResolvers<void>();
    leases[0].onChange({ lost() {}, rejoined() {}, confirmed() {}, rescued() {}, unowned });
    void proxy.cutNext("answer", a);
    const { webhookKey } = delivery;
    const claimed = one.claim({ tenantKey: tenant.key, webhookKey }, systemClock.now(), 10);
    await expect(claimed).rejects.toBeInstanceOf(OutcomeUnknown);
    await isUnowned;
    expect((await claim(two)).map(({ eventId }) => eventId)).not.toContain(delivery.eventId);
  });
});
