import { describe, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { generateDrizzleJson, generateMigration } from "drizzle-kit/api";
import { is } from "drizzle-orm";
import { PgTable, getTableConfig as postgresTable } from "drizzle-orm/pg-core";
import { SQLiteTable, getTableConfig as sqliteTable } from "drizzle-orm/sqlite-core";
import { systemClock } from "../../../src/lib/clock.ts";
import * as audit from "../../../src/store/postgres/audit-schema.ts";
import * as billing from "../../../src/store/postgres/billing-schema.ts";
import * as events from "../../../src/store/postgres/event-schema.ts";
import * as inbox from "../../../src/store/postgres/inbox-schema.ts";
import * as mail from "../../../src/store/postgres/mail-schema.ts";
import { type Migration, migrate, migrations } from "../../../src/store/postgres/migrations.ts";
import * as nodes from "../../../src/store/postgres/node-schema.ts";
import * as sandbox from "../../../src/store/postgres/sandbox-schema.ts";
import * as rest from "../../../src/store/postgres/schema.ts";
import * as sqliteAudit from "../../../src/store/sqlite/audit-schema.ts";
import * as sqliteBilling from "../../../src/store/sqlite/billing-schema.ts";
import * as sqliteInbox from "../../../src/store/sqlite/inbox-schema.ts";
import * as sqliteMail from "../../../src/store/sqlite/mail-schema.ts";
import * as sqliteSandbox from "../../../src/store/sqlite/sandbox-schema.ts";
import * as sqliteRest from "../../../src/store/sqlite/schema.ts";
import { describeWithPostgres, usePostgres } from "../../support/postgres.ts";

const folder = join(import.meta.dir, "../../../drizzle/postgres/migrations");
const schema = { ...rest, ...events, ...nodes, ...billing, ...sandbox, ...inbox, ...audit, ...mail };

describe("migrations", () => {
  test("the list is the folder, in its order", async () => {
    const journal = await Bun.file(join(folder, "meta/_journal.json")).json();
    const tags = journal.entries.map(({ tag }: { tag: string }) => tag);
    expect(migrations.map(({ name }) => name)).toEqual(tags);
    const files = readdirSync(folder).filter((name) => name.endsWith(".sql"));
    expect(files.toSorted()).toEqual(tags.map((tag: string) => `${tag}.sql`));
    for (const { name, sql } of migrations) expect(sql).toBe(await Bun.file(join(folder, `${name}.sql`)).text());
  });

  test("the schema has no change that was not generated", async () => {
    const { entries } = await Bun.file(join(folder, "meta/_journal.json")).json();
    const last = String(entries.length - 1).padStart(4, "0");
    const generated = await Bun.file(join(folder, `meta/${last}_snapshot.json`)).json();
    expect(await generateMigration(generated, generateDrizzleJson(schema, generated.prevId))).toEqual([]);
  });
});

describe("the schema is that of SQLite, but for", () => {
  const columnsOf = (table: { name: string; columns: readonly { name: string }[] }) =>
    table.columns.map(({ name }) => `${table.name}.${name}`);
  const here = Object.values(schema).flatMap((one) => (is(one, PgTable) ? columnsOf(postgresTable(one)) : []));
  const there = Object.values({
    ...sqliteRest,
    ...sqliteBilling,
    ...sqliteInbox,
    ...sqliteSandbox,
    ...sqliteAudit,
    ...sqliteMail,
  }).flatMap((one) => (is(one, SQLiteTable) ? columnsOf(sqliteTable(one)) : []));

  test("what one node alone has", () => {
    const lacking = there.filter((name) => !here.includes(name) && !name.startsWith("tenant_usage."));
    expect(lacking.toSorted()).toEqual([
      "delivery.before",
      "delivery.filed",
      "delivery.next_attempt_at",
      "delivery.order_hash",
      "event.checksum",
      "lane.filed_to",
      "lane.id",
      "lane.last_event_seq",
    ]);
  });

  test("what several nodes need", () => {
    const whole = [
      ...["node", "usage", "pending", "replay_count", "change", "change_head", "job", "limit_window"],
      ...["stream_head", "stream_message", "erased_tenant"],
      ...["stream_head", "stream_message", "stream_watch"],
    ];
    const added = here.filter((name) => !there.includes(name));
    expect(added.filter((name) => !whole.includes(name.split(".")[0] ?? "")).toSorted()).toEqual([
      "billing_account.leased_by",
      "billing_account.leased_until",
      "failure_count.slot",
      "lane.incarnation",
      "lane.slot",
      "refused_events.slot",
      "stat.slot",
      "tenant.version",
      "webhook_stat.slot",
    ]);
  });
});

describeWithPostgres("a database", () => {
  const postgres = usePostgres();
  const first: Migration = {
    name: "0000_first",
    sql: "create table one (a int);\n--> statement-breakpoint\ncreate table two (a int)",
  };
  const second: Migration = { name: "0001_second", sql: "alter table one add column b int" };
  const bad: Migration = { name: "0001_bad", sql: "create table three (a int);--> statement-breakpoint\nselect 1/0" };
  const run = (url: string, list?: readonly Migration[]) => migrate({ url, clock: systemClock, ...(list && { list }) });

  test("gets what it lacks, once, and forward only", async () => {
    const url = await postgres.database();
    await run(url, [first]);
    await run(url, [first, second]);
    await run(url, [first, second]);
    const pool = postgres.pool(url);
    expect([...(await pool.read("select version, name from migration order by 1"))]).toEqual([
      { version: 1, name: "0000_first" },
      { version: 2, name: "0001_second" },
    ]);
    await pool.read("select a, b from one");
  });

  test("has everything in the schema that is the user's", async () => {
    const url = await postgres.database();
    const database = new URL(url).pathname.slice(1);
    const pool = postgres.pool(url, { size: 1 });
    await pool.write("create schema own");
    await pool.write(`alter database ${database} set search_path = own, public`);
    await run(url);
    const schemas = await pool.read(
      `select distinct relnamespace::regnamespace::text as name from pg_class
        where relkind in ('r', 'p', 'i', 'S') and relnamespace::regnamespace::text !~ '^(pg_|information_schema)'`,
    );
    expect([...schemas]).toEqual([{ name: "own" }]);
    // A schema that comes before it in the path later is empty.
    await pool.write("create schema later");
    await pool.write(`alter database ${database} set search_path = later, own`);
    await run(url);
    expect([...(await pool.read("select to_regclass('later.migration')::text as migration"))]).toEqual([
      { migration: null },
    ]);
  });

  test("of a newer program is refused, with what to do", async () => {
    const url = await postgres.database();
    await run(url, [first, second]);
    await expect(run(url, [first])).rejects.toThrow(/newer Postrider \(schema 2, this program knows 1\). Try: /);
  });

  test("in which one fails is as it was", async () => {
    const url = await postgres.database();
    await expect(run(url, [first, bad])).rejects.toThrow(/0001_bad: division by zero\); it is unchanged. Try: /);
    const pool = postgres.pool(url);
    expect([...(await pool.read("select to_regclass('three') as three, to_regclass('two')::text as two"))]).toEqual([
      { three: null, two: "two" },
    ]);
    await run(url, [first, second]);
  });

  /** Fails the first time; a sequence counts on whatever is rolled back. */
  const failsOnceWith = (sqlState: string): Migration => ({
    name: "0001_once",
    sql: `do $$ begin if nextval('tries') = 1 then raise exception 'not now' using errcode = '${sqlState}'; end if; end $$`,
  });
  const counting: Migration = { name: "0000_counting", sql: "create sequence tries" };

  test("is upgraded though a running server was in the way", async () => {
    const url = await postgres.database();
    await run(url, [counting, failsOnceWith("40P01")]);
    expect(await postgres.pool(url).read("select 1 from migration")).toHaveLength(2);
  });

  test.each([
    ["that was shut down", "57P01"],
    ["whose memory was short", "53200"],
  ])("%s during an upgrade is said to be unavailable, and upgraded at the next try", async (_, sqlState) => {
    const url = await postgres.database();
    const upgrade = () => run(url, [counting, failsOnceWith(sqlState)]);
    await expect(upgrade()).rejects.toMatchObject({ kind: "unavailable" });
    await upgrade();
  });

  /** Reads a table in a transaction that stays open until the test says so, as a report does, or a dump. */
  async function hold(url: string, table: string) {
    const isHeld = Promise.withResolvers<void>();
    const mayEnd = Promise.withResolvers<void>();
    const ended = postgres.pool(url).transact(async (tx) => {
      await tx.run(`lock table ${table} in access share mode`);
      isHeld.resolve();
      await mayEnd.promise;
    });
    await isHeld.promise;
    return async () => {
      mayEnd.resolve();
      await ended;
    };
  }

  test("that somebody copies is no reason to wait, where there is nothing to upgrade", async () => {
    const url = await postgres.database();
    await run(url, [first]);
    const release = await hold(url, "migration");
    await run(url, [first]);
    await release();
  });

  test("is not upgraded while a long transaction holds a table, and holds up nobody for it", async () => {
    const url = await postgres.database();
    await run(url, [first]);
    const release = await hold(url, "one");
    const upgrade = () => migrate({ url, clock: systemClock, list: [first, second], lockTimeoutMs: 50 });
    await expect(upgrade()).rejects.toMatchObject({ kind: "unavailable" });
    await postgres.pool(url).write("insert into one values (1)");
    await release();
    await upgrade();
  });

  test("that several nodes upgrade at once is upgraded once", async () => {
    const url = await postgres.database();
    await Promise.all(Array.from({ length: 6 }, () => run(url)));
    expect(await postgres.pool(url).read("select 1 from migration")).toHaveLength(migrations.length);
  });

  test("has partitions, and settings where rows come and go", async () => {
    const pool = postgres.pool(await postgres.migrated());
    const rows = await pool.read<{ name: string; kind: string; options: string | null }>(
      `select relname as name, relkind::text as kind, array_to_string(reloptions, ' ') as options from pg_class
        where relname in ('event', 'delivery', 'attempt', 'lane', 'usage', 'pending') order by 1`,
    );
    expect(rows.map(({ name, kind }) => `${name} ${kind}`)).toEqual([
      "attempt p",
      "delivery p",
      "event p",
      "lane r",
      "pending r",
      "usage r",
    ]);
    expect(rows.map(({ options }) => options).filter((options) => options !== null)).toEqual([
      "fillfactor=20",
      "fillfactor=70 autovacuum_vacuum_threshold=20000 autovacuum_vacuum_scale_factor=0 autovacuum_vacuum_cost_delay=0",
      "fillfactor=40",
    ]);
  });

  test("serves the newest records of a tenant from the index alone, in its order", async () => {
    const pool = postgres.pool(await postgres.migrated(), { size: 1 });
    // An empty table is read in any way; these leave the one that a full one is read in, if the index serves it.
    for (const way of ["seqscan", "bitmapscan", "sort"]) await pool.write(`set enable_${way} = off`);
    for (const table of ["pending", "delivery"]) {
      const plan = await pool.read<Record<string, string>>(
        `explain select event_seq, key from ${table} where tenant_key = 1 order by event_seq desc, key limit 10`,
      );
      const text = plan.map((row) => row["QUERY PLAN"]).join("\n");
      expect(text).toContain("Index Only Scan using");
      expect(text).not.toContain("Sort");
    }
  });
});
