import { describe, expect, test } from "bun:test";
import { firstSeqAt } from "../../../src/lib/id.ts";
import { dropPartitions, makePartitions, partitionAt } from "../../../src/store/postgres/partitions.ts";
import type { Pool } from "../../../src/store/postgres/pool.ts";
import { describeWithPostgres, usePostgres } from "../../support/postgres.ts";

const december = Date.UTC(2026, 11, 31, 23, 59, 59, 999);

describe("the partition of a time", () => {
  test.each([
    ["month", december, 0, "2026_12", Date.UTC(2026, 11), Date.UTC(2027, 0)],
    ["month", december, 1, "2027_01", Date.UTC(2027, 0), Date.UTC(2027, 1)],
    ["month", Date.UTC(2024, 1, 29), 0, "2024_02", Date.UTC(2024, 1), Date.UTC(2024, 2)],
    ["day", december, 0, "2026_12_31", Date.UTC(2026, 11, 31), Date.UTC(2027, 0)],
    ["day", december, 2, "2027_01_02", Date.UTC(2027, 0, 2), Date.UTC(2027, 0, 3)],
  ] as const)("by %s, at %i and %i later, is %s", (unit, atMs, later, name, from, to) => {
    expect(partitionAt(unit, atMs, later)).toEqual({ name, fromSeq: firstSeqAt(from), toSeq: firstSeqAt(to) });
  });
});

describeWithPostgres("partitions", () => {
  const postgres = usePostgres();

  const namesOf = async (pool: Pool) => {
    const rows = await pool.read<{ name: string }>(
      "select inhrelid::regclass::text as name from pg_inherits where inhparent = 'event'::regclass order by 1",
    );
    return rows.map(({ name }) => name);
  };
  const accept = (pool: Pool, atMs: number) =>
    pool.write("insert into event (seq, tenant_key, id_tail, payload) values ($1, 1, '\\x01', '\\x7b7d')", [
      firstSeqAt(atMs),
    ]);
  const whereEventsAre = async (pool: Pool) => {
    const rows = await pool.read<{ name: string }>("select tableoid::regclass::text as name from event order by seq");
    return rows.map(({ name }) => name);
  };

  test("are made for this month and two more, once, by however many nodes", async () => {
    const pool = postgres.pool(await postgres.migrated(), { size: 3 });
    const make = async () => {
      while (!(await makePartitions(pool, "month", december)));
    };
    await Promise.all([make(), make(), make()]);
    expect(await namesOf(pool)).toEqual(["event_2026_12", "event_2027_01", "event_2027_02", "event_default"]);
  });

  test("take what is of their time, and the default one what is of none", async () => {
    const pool = postgres.pool(await postgres.migrated());
    await makePartitions(pool, "month", december);
    for (const at of [december, december + 1, Date.UTC(2031, 0)]) await accept(pool, at);
    expect(await whereEventsAre(pool)).toEqual(["event_2026_12", "event_2027_01", "event_default"]);
  });

  test("take over what a clock that jumped has put into the default one", async () => {
    const pool = postgres.pool(await postgres.migrated());
    await accept(pool, december);
    await accept(pool, Date.UTC(2031, 0));
    expect(await makePartitions(pool, "month", december)).toBe(true);
    expect(await whereEventsAre(pool)).toEqual(["event_2026_12", "event_default"]);
  });

  test("leave there what takes longer to move than a statement may, and hold up no start for it", async () => {
    const url = await postgres.migrated();
    const pool = postgres.pool(url, { statementTimeoutMs: 100 });
    await accept(pool, december);
    await pool.write(`create function tarry() returns trigger language plpgsql as
      $$ begin perform pg_sleep(60); return old; end $$`);
    await pool.write("create trigger tarry before delete on event_default for each row execute function tarry()");
    expect(await makePartitions(pool, "month", december)).toBe(false);
    expect(await namesOf(pool)).toEqual(["event_2027_01", "event_2027_02", "event_default"]);
    expect(await whereEventsAre(pool)).toEqual(["event_default"]);
  });

  test("have every index and rule of their table", async () => {
    const pool = postgres.pool(await postgres.migrated());
    await makePartitions(pool, "month", december);
    const asked = (table: string) =>
      pool.read<{ count: number }>(
        `select (select count(*) from pg_index where indrelid = $1::regclass)::int as indexes,
                (select count(*) from pg_constraint where conrelid = $1::regclass and contype = 'c')::int as checks`,
        [table],
      );
    for (const table of ["event", "delivery", "attempt"]) {
      expect([...(await asked(`${table}_2026_12`))]).toEqual([...(await asked(table))]);
    }
  });

  test("go when all that is in them has had its time", async () => {
    const pool = postgres.pool(await postgres.migrated());
    await makePartitions(pool, "day", december);
    for (const at of [december, december + 1]) await accept(pool, at);
    expect(await dropPartitions(pool, firstSeqAt(december))).toBe(true);
    expect(await namesOf(pool)).toHaveLength(4);
    expect(await dropPartitions(pool, firstSeqAt(december + 1))).toBe(true);
    expect(await namesOf(pool)).toEqual(["event_2027_01_01", "event_2027_01_02", "event_default"]);
    expect(await whereEventsAre(pool)).toEqual(["event_2027_01_01"]);
  });

  test("do not wait for who reads, and hold up nobody", async () => {
    const pool = postgres.pool(await postgres.migrated(), { size: 3 });
    const reading = Promise.withResolvers<void>();
    const mayEnd = Promise.withResolvers<void>();
    const read = pool.transact(async (tx) => {
      await tx.run("select count(*) from event");
      reading.resolve();
      await mayEnd.promise;
    });
    await reading.promise;
    expect(await makePartitions(pool, "day", december)).toBe(false);
    await accept(pool, december);
    mayEnd.resolve();
    await read;
    expect(await makePartitions(pool, "day", december)).toBe(true);
    expect(await whereEventsAre(pool)).toEqual(["event_2026_12_31"]);
  });
});
