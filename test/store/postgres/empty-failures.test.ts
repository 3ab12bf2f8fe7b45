import { expect, test } from "bun:test";
import { createFailureSweep } from "../../../src/store/postgres/empty-failures.ts";
import type { Pool } from "../../../src/store/postgres/pool.ts";
import { describeWithPostgres, usePostgres } from "../../support/postgres.ts";

const minuteMs = 60_000;

describeWithPostgres("what groups of failures no longer count", () => {
  const postgres = usePostgres();

  async function open() {
    const pool = postgres.pool(await postgres.migrated());
    let now = 0;
    const sweep = createFailureSweep(() => now);
    return {
      pool,
      sweep: () => pool.transact(sweep),
      pass(ms: number) {
        now += ms;
      },
    };
  }

  const addGroup = (pool: Pool, tenantKey: number, key: number) =>
    pool.write("insert into failure_group values ($1::bigint, $2::bigint, 1, 'timeout', null, '')", [tenantKey, key]);
  const add = (pool: Pool, ...[group, hour, slot, waiting, failed]: number[]) =>
    pool.write(
      "insert into failure_count values (1, $1::bigint, $2::int, $3::smallint, $4::bigint, $5::bigint, 0)",
      [group, hour, slot, waiting, failed].map((value) => value ?? 0),
    );
  const left = async (pool: Pool) => ({
    counts: (
      await pool.read<{ n: string }>(
        "select failure_key || ' ' || hour || ' ' || slot as n from failure_count order by failure_key, hour, slot",
      )
    ).map(({ n }) => n),
    groups: (await pool.read<{ key: number }>("select key::int as key from failure_group order by 1")).map(
      ({ key }) => key,
    ),
  });

  test("goes, the parts of an hour that come to nothing together, and a group once it has long been empty", async () => {
    const { pool, sweep, pass } = await open();
    for (const key of [7, 8]) await addGroup(pool, 1, key);
    // What one lane counted in, another one counted out.
    await add(pool, 7, 1, 0, 3, 0);
    await add(pool, 7, 1, 4, -3, 0);
    await add(pool, 8, 1, 0, 3, -1);
    await add(pool, 8, 1, 4, -3, 1);
    await add(pool, 8, 2, 0, 1, -1);
    const counted = { counts: ["8 2 0"], groups: [7, 8] };
    await sweep();
    expect(await left(pool)).toEqual(counted);
    pass(9 * minuteMs);
    await sweep();
    expect(await left(pool)).toEqual(counted);
    pass(minuteMs);
    await sweep();
    expect(await left(pool)).toEqual({ ...counted, groups: [8] });
  });

  test("stays, a group that has counted again meanwhile", async () => {
    const { pool, sweep, pass } = await open();
    await addGroup(pool, 1, 7);
    await sweep();
    await add(pool, 7, 1, 0, 1, 0);
    pass(10 * minuteMs);
    await sweep();
    await pool.write("delete from failure_count");
    await sweep();
    expect((await left(pool)).groups).toEqual([7]);
  });

  test("is looked for in some hundred groups at a time, and in the others after that", async () => {
    const { pool, sweep } = await open();
    await pool.write("insert into failure_group select 1, i, 1, 'timeout', null, '' from generate_series(2, 301) i");
    await pool.write("insert into failure_count select 1, i, 1, 0, 0, 0, 0 from generate_series(2, 301) i");
    await sweep();
    expect((await left(pool)).counts).toHaveLength(100);
    await sweep();
    expect((await left(pool)).counts).toEqual([]);
  });
});
