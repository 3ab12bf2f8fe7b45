import { afterEach, beforeEach, expect, test } from "bun:test";
import { eraseEventsTexts, someRecordsText } from "../../../src/store/postgres/erasure.ts";
import { describeWithPostgres, usePostgres } from "../../support/postgres.ts";
import { planOf } from "../../support/postgres-plans.ts";
import { createPostgresWorlds, type PostgresWorlds } from "../../support/postgres-worlds.ts";
import type { World } from "../../support/store-factory.ts";

describeWithPostgres("what was still accepted for an account as it was deleted", () => {
  let nodes: PostgresWorlds;
  let world: World;
  beforeEach(async () => {
    nodes = await createPostgresWorlds(1);
    [world] = nodes.worlds as [World];
  });
  afterEach(() => nodes.end());

  const rows = async () => {
    const [counted] = await nodes.pool.read<Record<string, number>>(
      `select (select count(*) from event)::int as events, (select count(*) from pending)::int as pending,
         (select count(*) from idempotency)::int as idempotency, (select count(*) from usage)::int as usage,
         (select count(*) from erased_tenant)::int as erased`,
    );
    return counted;
  };

  test("goes a minute later", async () => {
    const tenant = await world.tenant();
    await world.store.deleteTenant(tenant.key, world.clock.now());
    while (await world.store.eraseDeleted(100));
    for (const text of [
      "insert into event (seq, tenant_key, id_tail, payload) select n, $1, '', '' from generate_series(1, 5) n",
      `insert into pending (tenant_key, event_seq, key, webhook_key, run, attempts_in_run, attempts, next_attempt_at)
        select $1, n, n, 1, 1, 0, 0, 0 from generate_series(1, 5) n`,
      "insert into idempotency (tenant_key, key, fingerprint, event_ids, created_at) values ($1, 'k', '', '', 0)",
      `insert into usage (tenant_key, slot, month, used, granted, events, pending, delivered, failed)
        values ($1, 0, 0, 0, 0, 5, 5, 0, 0)`,
    ]) {
      await nodes.pool.write(text.replaceAll("$1", "$1::bigint"), [tenant.key]);
    }
    expect(await world.store.eraseDeleted(100)).toBe(false);
    expect(await rows()).toEqual({ events: 5, pending: 5, idempotency: 1, usage: 1, erased: 1 });
    await nodes.pool.write("update erased_tenant set erased_at = clock_timestamp() - interval '1 minute'");
    while (await world.store.eraseDeleted(2));
    expect(await rows()).toEqual({ events: 0, pending: 0, idempotency: 0, usage: 0, erased: 0 });
  });
});

describeWithPostgres("a deleted account", () => {
  test("is in no table any more that names accounts", async () => {
    const { worlds, pool, end } = await createPostgresWorlds(1);
    const [world] = worlds as [World];
    const tenant = await world.tenant({ urls: ["https://a.example/hook", "https://b.example/hook"] });
    await world.replayEvent(tenant, await world.event(tenant, "failed", "delivered"));
    const [first, ...others] = await world.claim(tenant);
    if (first) await world.settle(first, "delivered");
    await world.store.release(others);
    const tables = await pool.read<{ name: string }>(
      `select relname as name from pg_class join pg_attribute on attrelid = pg_class.oid
        where attname = 'tenant_key' and relkind in ('r', 'p') and not relispartition and relname <> 'erased_tenant'`,
    );
    const found = async () => {
      const counts: Record<string, number> = {};
      for (const { name } of tables) {
        const rows = await pool.read(`select 1 from "${name}" where tenant_key = $1::bigint`, [tenant.key]);
        if (rows.length > 0) counts[name] = rows.length;
      }
      return counts;
    };
    expect(await found()).toMatchObject({ event: 1, pending: 1, delivery: 1, attempt: 3, replay: 1, replay_count: 1 });
    await world.store.deleteTenant(tenant.key, world.clock.now());
    while (await world.store.eraseDeleted(2));
    expect(await found()).toEqual({});
    await end();
  });
});

describeWithPostgres("statements that erase", () => {
  const postgres = usePostgres();

  test.each([
    [someRecordsText, ["pending_by_tenant", "delivery_default_tenant_key_event_seq_key"]],
    ...eraseEventsTexts.map((text): [string, string[]] => [
      text,
      text.includes("delete from pending") ? ["pending_by_tenant"] : ["Index Scan using"],
    ]),
  ])("find their rows by an index: %#", async (text, indexes) => {
    const plan = await planOf(postgres.pool(await postgres.migrated(), { size: 1 }), text);
    for (const index of indexes) expect(plan).toContain(index);
    expect(plan).not.toContain("Seq Scan");
  });
});
