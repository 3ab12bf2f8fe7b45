import { expect, test } from "bun:test";
import { SQL } from "bun";
import type { DueDelivery } from "../../../src/domain/delivery.ts";
import { systemClock } from "../../../src/lib/clock.ts";
import { orderHashFor } from "../../../src/store/order-hash.ts";
import { headsText, releaseNextText } from "../../../src/store/postgres/lines.ts";
import { rescueExpired } from "../../../src/store/postgres/nodes.ts";
import { byIndexes, byKeys } from "../../../src/store/postgres/planner.ts";
import { openPostgresStore } from "../../../src/store/postgres/store.ts";
import type { Store } from "../../../src/store/store.ts";
import { describeWithPostgres, usePostgres } from "../../support/postgres.ts";
import { bytes, newReplay, newTenant, newWebhooks, settlementOf } from "../../support/store-factory.ts";
import { whenWaiting } from "./event-lane.ts";

const a = "https://a.example/hook";

describeWithPostgres("lines of an ordered webhook, on two nodes", () => {
  const postgres = usePostgres();

  async function twoNodes({ ordered = true } = {}) {
    const url = await postgres.migrated();
    const open = async () => {
      const { store } = await openPostgresStore({ url, clock: systemClock, durability: "waived" });
      postgres.cleanUpFirst(() => store.close());
      return store;
    };
    const stores = [await open(), await open()] as const;
    const made = newTenant({ webhooks: newWebhooks({ url: a, ordered }) });
    const { key: tenantKey } = await stores[0].createTenant(made, systemClock.now());
    const accept = (store: Store, ...orderingKeys: readonly (string | null)[]) =>
      store.acceptEvents({
        tenantKey,
        apiKeyId: made.apiKey.id,
        events: orderingKeys.map((orderingKey) => ({ payload: bytes("{}"), type: null, orderingKey })),
      });
    const claim = async (store: Store) => {
      const lanes = await store.discover();
      const claims = await Promise.all(lanes.map((lane) => store.claim(lane, systemClock.now(), 1_000)));
      return claims.flatMap(({ due }) => due);
    };
    const settle = (store: Store, delivery: DueDelivery, outcome: "delivered" | "failed") =>
      store.settle(settlementOf(delivery, outcome, systemClock.now()));
    return { url, stores, tenantKey, accept, claim, settle, pool: postgres.pool(url) };
  }

  test("nobody is forgotten, and nobody goes beside another, whoever accepts, settles and replays at once", async () => {
    const { stores, tenantKey, accept, claim, settle, pool } = await twoNodes();
    const keys = ["x", "y", "z", null];
    const keyOf = new Map<string, string | null>();
    const underWay = new Set<string>();
    let settled = 0;
    let left = 25;

    async function take(store: Store): Promise<void> {
      for (const delivery of await claim(store)) {
        const key = keyOf.get(delivery.eventId) ?? null;
        if (key !== null) {
          expect(underWay.has(key)).toBe(false);
          underWay.add(key);
        }
        await new Promise<void>((resolve) => setImmediate(resolve));
        // From here on the next one may go.
        if (key !== null) underWay.delete(key);
        await settle(store, delivery, settled % 3 === 0 ? "failed" : "delivered");
        settled += 1;
      }
    }

    async function post(store: Store): Promise<void> {
      for (; left > 0; left -= 1) {
        const { eventIds } = await accept(store, ...keys, ...keys);
        eventIds.forEach((id, i) => {
          keyOf.set(id, keys[i % keys.length] ?? null);
        });
      }
    }

    async function deliver(store: Store): Promise<void> {
      while (left > 0) await take(store);
    }

    async function replay(store: Store): Promise<void> {
      while (left > 0) {
        const [id] = keyOf.keys();
        if (id) await store.replayEvent(tenantKey, newReplay("single", { eventId: id }), systemClock.now());
        await new Promise<void>((resolve) => setImmediate(resolve));
      }
    }

    await Promise.all([...stores.flatMap((store) => [post(store), post(store), deliver(store)]), replay(stores[1])]);
    const waiting = async () => (await pool.read("select 1 from pending")).length;
    while ((await waiting()) > 0) {
      const before = settled;
      await Promise.all(stores.map(take));
      expect(settled).toBeGreaterThan(before);
    }
    expect(settled).toBeGreaterThanOrEqual(keyOf.size);
  });

  test("whoever changes a line waits for whoever does so", async () => {
    const { stores, tenantKey, accept, claim, settle, pool } = await twoNodes();
    const [id = ""] = (await accept(stores[0], "x", "x")).eventIds;
    const [head] = await claim(stores[1]);
    const [webhook] = await stores[0].webhooks(tenantKey);
    if (!head || !webhook) throw new Error("Nothing is due");
    const begun = await pool.transact(async ({ run }) => {
      await run("select pg_advisory_xact_lock($1::bigint)", [webhook.key]);
      const all = [
        settle(stores[1], head, "delivered"),
        accept(stores[0], "x"),
        stores[0].replayEvent(tenantKey, newReplay("single", { eventId: id }), systemClock.now()),
      ];
      await whenWaiting(pool, all.length, "select pg_advisory_xact_lock");
      return { all };
    });
    await Promise.all(begun.all);
    const heads = "select 1 from pending where owner is distinct from 0";
    for (let left = (await pool.read("select 1 from pending")).length; left > 0; left -= 1) {
      expect(await pool.read(heads)).toHaveLength(1);
      for (const delivery of await claim(stores[0])) await settle(stores[0], delivery, "delivered");
    }
    expect(await pool.read("select 1 from pending")).toEqual([]);
  });

  test("whoever accepts alone has counted nothing yet while it waits for a line, as lanes count while they have it", async () => {
    const { stores, tenantKey, accept, pool } = await twoNodes({ ordered: false });
    await accept(stores[0], "x");
    await accept(stores[0], "x");
    const [webhook] = await stores[0].webhooks(tenantKey);
    if (!webhook) throw new Error("There is no webhook");
    // What the lane keeps is now outdated, so it leaves the next event out without waiting for the line.
    await pool.write("update webhook set ordered = true where key = $1::bigint", [webhook.key]);
    await pool.write("update tenant set version = version + 1 where key = $1::bigint", [tenantKey]);
    const { accepting, counted } = await pool.transact(async ({ run }) => {
      await run("select pg_advisory_xact_lock($1::bigint)", [webhook.key]);
      const accepting = accept(stores[0], "x");
      await whenWaiting(pool, 1, "select pg_advisory_xact_lock");
      const counted = await run("select 1 from usage where tenant_key = $1::bigint for update nowait", [tenantKey]);
      return { accepting, counted };
    });
    expect(counted).not.toEqual([]);
    expect((await accepting).eventIds).toHaveLength(1);
  });

  test.each([
    ["the head", headsText, "", 12],
    ["the next one", releaseNextText, ", 1", 45],
  ])("%s of a line is found without a walk through the others", async (_, text, more, most) => {
    const { url, stores, tenantKey, accept } = await twoNodes();
    const [webhook] = await stores[0].webhooks(tenantKey);
    if (!webhook) throw new Error("There is no webhook");
    const keys = Array.from({ length: 10_000 }, (_key, i) => `key ${i}`);
    for (let n = 0; n < keys.length; n += 1_000) await accept(stores[0], ...keys.slice(n, n + 1_000));
    const lines = keys.map((key) => ({ key, line: orderHashFor(webhook, key) ?? 0 }));
    const { key, line } = lines.reduce((least, one) => (one.line < least.line ? one : least));
    await accept(stores[0], key);
    const sql = new SQL(url, { max: 1, connection: { ...byIndexes, ...byKeys } });
    postgres.cleanUpFirst(() => sql.close());
    // Whoever looks for a head, where there is none, would walk on.
    await sql.unsafe("delete from pending where order_hash = $1::bigint and owner is null", [line]);
    await sql.unsafe(`prepare of_line as ${text}`);
    const [row] = await sql.unsafe(
      `explain (analyze, buffers, format json) execute of_line ('{${webhook.key}}', '{${line}}'${more})`,
    );
    const plan = row["QUERY PLAN"][0].Plan;
    expect(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]).toBeLessThan(most);
  });

  test("the head of a node that has died is anybody's, and those behind it wait", async () => {
    const { stores, accept, claim, settle, pool } = await twoNodes();
    await accept(stores[0], "x", "x");
    const [lost] = await claim(stores[0]);
    expect(await claim(stores[1])).toEqual([]);
    await pool.write(
      "update node set lease_until = clock_timestamp() - interval '1 second' where slot = (select min(slot) from node)",
    );
    expect(await rescueExpired(pool)).toHaveLength(1);
    const [again, ...others] = await claim(stores[1]);
    expect([again?.eventId, others]).toEqual([lost?.eventId ?? "", []]);
    if (again) expect(await settle(stores[1], again, "delivered")).toMatchObject({ hasReleased: true });
    expect(await claim(stores[1])).toHaveLength(1);
  });
});
