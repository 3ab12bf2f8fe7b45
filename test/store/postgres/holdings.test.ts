import { expect, test } from "bun:test";
import { OutcomeUnknown } from "../../../src/store/postgres/faults.ts";
import { createHoldings } from "../../../src/store/postgres/holdings.ts";
import type { Node } from "../../../src/store/postgres/nodes.ts";
import { openPostgresStore } from "../../../src/store/postgres/store.ts";
import { createUnderWay } from "../../../src/store/postgres/under-way.ts";
import { until } from "../../support/api-server.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { describeWithPostgres, usePostgres } from "../../support/postgres.ts";
import { createCuttingProxy } from "../../support/postgres-proxy.ts";
import { createWorld } from "../../support/store-factory.ts";
import { whenWaiting } from "./event-lane.ts";

const a = "https://a.example/hook";

describeWithPostgres("what a node owns and does not know of", () => {
  const postgres = usePostgres();

  /** A store behind a proxy that can cut its connections. */
  async function setUp() {
    const url = await postgres.migrated();
    const proxy = await createCuttingProxy(url);
    postgres.cleanUpFirst(proxy.close);
    const { promise: isUnowned, resolve: tell } = Promise.withResolvers<void>();
    const open = () => openPostgresStore({ url: proxy.url, durability: "waived", clock: world.clock });
    const world = await createWorld({
      name: "PostgreSQL",
      async open({ clock }) {
        const opened = await openPostgresStore({ url: proxy.url, durability: "waived", clock });
        opened.lease.onChange({ lost() {}, rejoined() {}, confirmed() {}, rescued() {}, unowned: tell });
        return { ...opened, reopen: open, count: async () => ({}), edit: async () => {}, remove: async () => {} };
      },
    });
    postgres.cleanUpFirst(world.end);
    const tenant = await world.tenant({ urls: [a] });
    return { url, proxy, world, tenant, isUnowned };
  }

  test("is nobody's again, and looked for: a claim whose answer was lost", async () => {
    const { proxy, world, tenant, isUnowned } = await setUp();
    await world.accept(tenant);
    const held = await world.delivery(tenant);
    const [webhook] = await world.store.webhooks(tenant.key);
    const ref = { tenantKey: tenant.key, webhookKey: webhook?.key ?? 0 };
    void proxy.cutNext("answer", a);
    await expect(world.store.claim(ref, world.clock.now(), 10)).rejects.toBeInstanceOf(OutcomeUnknown);
    // It may have been due for long, and then nobody looks for it by himself.
    await isUnowned;
    expect(await world.claim(tenant)).toHaveLength(1);
    // What it does hold stays its own.
    expect(await world.claim(tenant)).toEqual([]);
    expect(await world.settle(held, "delivered")).toMatchObject({ kind: "settled" });
  });

  test("is nobody's again, also when a replay elsewhere is just writing it", async () => {
    const { url, proxy, world, tenant, isUnowned } = await setUp();
    await world.accept(tenant);
    const [webhook] = await world.store.webhooks(tenant.key);
    const others = postgres.pool(url);
    const written = Promise.withResolvers<void>();
    const isHeldBack = Promise.withResolvers<void>();
    const compared = Promise.withResolvers<void>();
    const holdingBack = others.transact(async (tx) => {
      await tx.run("select 1 from lane for share");
      isHeldBack.resolve();
      await written.promise;
    });
    await isHeldBack.promise;
    void proxy.cutNext("answer", a);
    const ref = { tenantKey: tenant.key, webhookKey: webhook?.key ?? 0 };
    await expect(world.store.claim(ref, world.clock.now(), 10)).rejects.toBeInstanceOf(OutcomeUnknown);
    const replay = others.transact(async (tx) => {
      await tx.run("update pending set run = run + 1");
      written.resolve();
      await compared.promise;
    });
    await holdingBack;
    await whenWaiting(postgres.pool(url, { size: 1 }), 1, "update pending set owner = null");
    compared.resolve();
    await replay;
    await isUnowned;
    expect(await world.claim(tenant)).toHaveLength(1);
  });

  test("is nobody's again: what it gives back while a replay is just writing it", async () => {
    const { url, world, tenant } = await setUp();
    const delivery = await world.delivery(tenant);
    const written = Promise.withResolvers<void>();
    const mayEnd = Promise.withResolvers<void>();
    const replay = postgres.pool(url).transact(async (tx) => {
      await tx.run("update pending set run = run + 1");
      written.resolve();
      await mayEnd.promise;
    });
    await written.promise;
    const released = world.store.release([delivery]);
    await whenWaiting(postgres.pool(url, { size: 1 }), 1, "update pending set owner = null");
    mayEnd.resolve();
    await Promise.all([replay, released]);
    expect(await world.claim(tenant)).toHaveLength(1);
  });

  test("is nobody's again: what it could not give back", async () => {
    const { proxy, world, tenant } = await setUp();
    const delivery = await world.delivery(tenant);
    void proxy.cutNext("request");
    await world.store.release([delivery]);
    await until(
      () => world.claim(tenant).catch(() => []),
      (claimed) => claimed.length === 1,
    );
  });

  test("is nobody's again: what was accepted alone, with the answer lost", async () => {
    const { proxy, world, tenant } = await setUp();
    // The first event for a webhook goes alone, in a transaction: COMMIT is what it ends with.
    void proxy.cutNext("answer", "COMMIT\0");
    const accepted = world.acceptOwned(tenant).catch((error) => error);
    expect(await accepted).toBeInstanceOf(OutcomeUnknown);
    await until(
      () => world.claim(tenant).catch(() => []),
      (claimed) => claimed.length === 1,
    );
  });

  test("is looked for again once this is a node, for an account that was doubted while it was none", async () => {
    const { url, world, tenant } = await setUp();
    const delivery = await world.delivery(tenant);
    const pool = postgres.pool(url);
    const owned = await pool.read<Pick<Node, "slot" | "incarnation">>("select slot, incarnation from node");
    const place: { node: Node | null } = { node: null };
    const { promise: isUnowned, resolve: onUnowned, reject: onFailure } = Promise.withResolvers<void>();
    const holdings = createHoldings({
      pool,
      clock: createFakeClock(),
      node: () => place.node,
      underWay: createUnderWay(),
      lanes: { underWay: async () => {} },
      onUnowned,
      onFailure,
    });
    holdings.doubt(tenant.key);
    const [node] = owned;
    if (!node) throw new Error("It is a node");
    place.node = { ...node, mark: "", lanes: [] };
    holdings.doubt(tenant.key);
    await isUnowned;
    await holdings.close();
    expect(await world.claim(tenant)).toMatchObject([{ deliveryKey: delivery.deliveryKey }]);
  });
});
