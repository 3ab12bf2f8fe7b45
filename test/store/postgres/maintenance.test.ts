import { afterEach, beforeEach, expect, test } from "bun:test";
import { systemClock } from "../../../src/lib/clock.ts";
import { parseEventId } from "../../../src/lib/id.ts";
import { createVault, type Vault } from "../../../src/lib/vault.ts";
import type { Pool } from "../../../src/store/postgres/pool.ts";
import { createQueueVacuum } from "../../../src/store/postgres/queue-vacuum.ts";
import { openPostgresStore } from "../../../src/store/postgres/store.ts";
import type { Store } from "../../../src/store/store.ts";
import { describeWithPostgres, usePostgres } from "../../support/postgres.ts";
import { createPostgresWorlds, type PostgresWorlds } from "../../support/postgres-worlds.ts";
import { newTenant, newWebhooks, refusalOf, type World } from "../../support/store-factory.ts";

describeWithPostgres("the master key", () => {
  const postgres = usePostgres();
  const vaultOf = (byte: number): Vault => createVault(new Uint8Array(32).fill(byte));

  async function open(url: string, byte: number): Promise<Store> {
    const { store } = await openPostgresStore({ url, clock: systemClock, durability: "waived", vault: vaultOf(byte) });
    postgres.cleanUpFirst(() => store.close());
    return store;
  }

  test("is that of the first node, on all of them and after a restart", async () => {
    const url = await postgres.migrated();
    await (await open(url, 1)).close();
    await Promise.all([open(url, 1), open(url, 1)]);
    await expect(open(url, 2)).rejects.toThrow(/^The master key is not the one that the database was written with/);
  });

  test("is one, also when two nodes begin a database at once", async () => {
    const url = await postgres.database();
    const opened = await Promise.allSettled([open(url, 1), open(url, 2)]);
    expect(opened.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
  });

  test("that does not open what is sealed is found by a probe", async () => {
    const url = await postgres.migrated();
    const store = await open(url, 1);
    await store.probe();
    await postgres.pool(url).write("update vault_check set sealed = $1::bytea", [vaultOf(2).seal("postrider", "x")]);
    expect(await refusalOf(store.probe())).toBe("unavailable storage_unavailable");
  });
});

describeWithPostgres("the size of the database", () => {
  const postgres = usePostgres();

  test("is looked up once a minute, however often it is asked for", async () => {
    const url = await postgres.migrated();
    const { store, sizes } = await openPostgresStore({
      ...{ url, clock: systemClock, durability: "waived", vault: createVault(new Uint8Array(32)) },
    });
    postgres.cleanUpFirst(() => store.close());
    while (sizes().databaseBytes === 0) await store.probe();
    const before = sizes().databaseBytes;
    await postgres
      .pool(url)
      .write("create table filler as select repeat(n::text, 100) from generate_series(1, 10000) n");
    expect(await store.usedBytes()).toBe(before);
    expect(sizes().databaseBytes).toBe(before);
  });
});

describeWithPostgres("maintenance, with several nodes", () => {
  let nodes: PostgresWorlds;
  let here: World;
  let pool: Pool;
  beforeEach(async () => {
    nodes = await createPostgresWorlds(2);
    [here] = nodes.worlds as [World];
    pool = nodes.pool;
  });
  afterEach(() => nodes.end());

  const count = async (table: string) => (await pool.read(`select 1 from ${table}`)).length;

  test("drops the months of which nothing is left", async () => {
    const partitions = async () =>
      (
        await pool.read<{ name: string }>(
          "select relname as name from pg_class where relname ~ '^event_\\d' and relkind = 'r'",
        )
      )
        .map(({ name }) => name)
        .toSorted();
    const tenant = await here.tenant({ urls: ["https://a.example/hook"] });
    const old = await here.event(tenant, "delivered");
    const [first = ""] = await partitions();
    here.clock.advance(70 * 24 * 3_600_000);
    await here.store.prune(here.clock.now(), 10);
    const young = await here.event(tenant, "delivered");
    await here.store.reclaim(1);
    expect((await partitions())[0]).toBe(first);
    await here.store.forgetEvents(tenant.key, [parseEventId(old)?.seq ?? 0], here.clock.now());
    await nodes.worlds[1]?.store.reclaim(1);
    expect((await partitions()).indexOf(first)).toBe(-1);
    expect(await here.records(tenant, young)).toHaveLength(1);
  });

  test("forgets changes that every node has heeded", async () => {
    const tenant = await here.tenant({ urls: ["https://a.example/hook"] });
    for (let i = 0; i < 3; i++) await here.store.setPassword(tenant.key, `${i}`);
    const last = await count("change");
    expect(last).toBeGreaterThan(0);
    await pool.write(
      `insert into node (slot, incarnation, lease_until, name, listener, schema, heeded, joined_at)
        values (31, 0, 'infinity', '', '', 1, 1, clock_timestamp())`,
    );
    while (await here.store.prune(here.clock.now(), 2));
    expect(await count("change")).toBe(last - 1);
    await pool.write("delete from node where slot = 31");
    while (await here.store.prune(here.clock.now(), 2));
    expect(await count("change")).toBe(0);
    await here.store.replaceWebhooks(tenant.key, { webhooks: newWebhooks(), limit: 10 }, here.clock.now());
    expect(await count("change")).toBe(1);
  });

  test("forgets messages that nobody can read on from, and the streams of accounts that are gone", async () => {
    const { id } = await here.store.createTenant(newTenant({ id: "ten_new" }), here.clock.now());
    for (const [tenantId, seconds] of [
      ["ten_old", 121],
      [id, 60],
    ] as const) {
      await pool.write(
        `insert into stream_message (tenant_id, id, body, at)
          select $1, n, '', clock_timestamp() - make_interval(secs => $2::int) from generate_series(1, 3) n`,
        [tenantId, seconds],
      );
      await pool.write("insert into stream_head (tenant_id, epoch, last_id) values ($1, 'e', 3)", [tenantId]);
    }
    expect(await here.store.prune(here.clock.now(), 2)).toBe(true);
    while (await here.store.prune(here.clock.now(), 2));
    expect([await count("stream_message"), await count("stream_head")]).toEqual([3, 1]);
  });

  test("makes the partitions of the months to come", async () => {
    here.clock.advance(40 * 86_400_000);
    const partitions = async () =>
      (
        await pool.read(
          "select 1 from pg_inherits where inhparent in ('event'::regclass, 'delivery'::regclass, 'attempt'::regclass)",
        )
      ).length;
    const before = await partitions();
    await here.store.prune(here.clock.now(), 10);
    expect(await partitions()).toBeGreaterThan(before);
  });
});

describeWithPostgres("the queue", () => {
  const postgres = usePostgres();

  const statsOf = async (pool: Pool) => {
    const [row] = await pool.read<{ dead: number; vacuums: number }>(
      `select n_dead_tup::int as dead, vacuum_count::int as vacuums from pg_stat_user_tables where relname = 'pending'`,
    );
    return row ?? { dead: 0, vacuums: 0 };
  };

  test("is vacuumed while rows come and go, and not more often than it has to be", async () => {
    const url = await postgres.migrated();
    let monotonicMs = 0;
    const machineClock = { ...systemClock, monotonicMs: () => monotonicMs };
    const { store } = await openPostgresStore({ url, clock: systemClock, machineClock, durability: "waived" });
    postgres.cleanUpFirst(() => store.close());
    const pool = postgres.pool(url, { size: 1 });
    expect(await store.reclaim(1)).toBe(false);
    expect((await statsOf(pool)).vacuums).toBe(0);
    await pool.write(
      `insert into pending (tenant_key, event_seq, key, webhook_key, run, attempts_in_run, attempts, next_attempt_at)
        select 1, n, n, 1, 1, 0, 0, 0 from generate_series(1, 2000) n`,
    );
    await pool.write("delete from pending");
    await pool.read("select pg_stat_force_next_flush()");
    for (;;) {
      if ((await statsOf(pool)).dead >= 2_000) break;
      await pool.read("select pg_stat_clear_snapshot()");
    }
    expect(await store.reclaim(1)).toBe(false);
    expect((await statsOf(pool)).vacuums).toBe(0);
    monotonicMs += 10_000;
    expect(await store.reclaim(1)).toBe(false);
    for (;;) {
      await pool.read("select pg_stat_clear_snapshot()");
      if ((await statsOf(pool)).vacuums === 1) break;
    }
  });

  test("is vacuumed however long that takes: nobody waits for it, only one does it, and an end breaks it off", async () => {
    let monotonicMs = 0;
    const { promise: isBrokenOff, reject: breakOff } = Promise.withResolvers<never>();
    let begun = 0;
    const vacuum = createQueueVacuum({
      pool: { read: async <Row>() => [{ dead: 2_000 }] as Row[] },
      openPool() {
        begun += 1;
        return { read: () => isBrokenOff, close: async () => breakOff(new Error("The connection was closed")) };
      },
      clock: { monotonicMs: () => monotonicMs },
      onFailure: (error) => expect(error).toBeUndefined(),
    });
    await vacuum.look();
    monotonicMs += 10_000;
    await vacuum.look();
    expect(begun).toBe(1);
    await vacuum.close();
  });
});
