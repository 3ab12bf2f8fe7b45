import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { generateSQLiteDrizzleJson, generateSQLiteMigration } from "drizzle-kit/api";
import { drizzle } from "drizzle-orm/bun-sqlite";
import { latencyBucket } from "../../../src/store/latency.ts";
import * as auditSchema from "../../../src/store/sqlite/audit-schema.ts";
import * as billingSchema from "../../../src/store/sqlite/billing-schema.ts";
import * as inboxSchema from "../../../src/store/sqlite/inbox-schema.ts";
import * as mailSchema from "../../../src/store/sqlite/mail-schema.ts";
import { migrate, migrations } from "../../../src/store/sqlite/migrations.ts";
import { createQueries } from "../../../src/store/sqlite/queries.ts";
import * as sandboxSchema from "../../../src/store/sqlite/sandbox-schema.ts";
import * as schema from "../../../src/store/sqlite/schema.ts";
import { useSqlite } from "../../support/sqlite-store.ts";

const sqlite = useSqlite();

const folder = join(import.meta.dir, "../../../drizzle/sqlite");

describe("migrations", () => {
  test("the list is the folder, in its order", async () => {
    const journal = await Bun.file(join(folder, "migrations/meta/_journal.json")).json();
    const tags = journal.entries.map(({ tag }: { tag: string }) => tag);
    expect(migrations.map(({ name }) => name)).toEqual(tags);
    const files = readdirSync(join(folder, "migrations")).filter((name) => name.endsWith(".sql"));
    expect(files.toSorted()).toEqual(tags.map((tag: string) => `${tag}.sql`));
    for (const { name, sql } of migrations) {
      expect(sql).toBe(await Bun.file(join(folder, "migrations", `${name}.sql`)).text());
    }
  });

  test("the schema has no change that was not generated", async () => {
    const { entries } = await Bun.file(join(folder, "migrations/meta/_journal.json")).json();
    const last = String(entries.length - 1).padStart(4, "0");
    const generated = await Bun.file(join(folder, `migrations/meta/${last}_snapshot.json`)).json();
    const today = await generateSQLiteDrizzleJson(
      { ...schema, ...billingSchema, ...sandboxSchema, ...inboxSchema, ...auditSchema, ...mailSchema },
      generated.prevId,
    );
    expect(await generateSQLiteMigration(generated, today)).toEqual([]);
  });

  const parentAndChild = {
    name: "0000_family",
    sql: `create table parent (id integer primary key, name text);
--> statement-breakpoint
create table child (id integer primary key, parent_id integer not null references parent(id) on delete cascade);
--> statement-breakpoint
insert into parent values (1, 'a'), (2, 'b');
--> statement-breakpoint
insert into child values (10, 1), (11, 1), (20, 2);`,
  };
  /** As drizzle-kit writes it. */
  const rebuild = (rows: string) => ({
    name: "0001_rebuild",
    sql: `PRAGMA foreign_keys=OFF;--> statement-breakpoint
CREATE TABLE __new_parent (id integer primary key, name text not null);
--> statement-breakpoint
INSERT INTO __new_parent(id, name) SELECT id, name FROM parent ${rows};--> statement-breakpoint
DROP TABLE parent;--> statement-breakpoint
ALTER TABLE __new_parent RENAME TO parent;--> statement-breakpoint
PRAGMA foreign_keys=ON;`,
  });
  const family = () => {
    const client = new Database(":memory:", { strict: true });
    sqlite.cleanUp(() => client.close());
    client.run("pragma foreign_keys = on");
    migrate(client, [parentAndChild]);
    return client;
  };
  const count = (client: Database, table: string) => client.query(`select 1 from ${table}`).all().length;

  test("a rebuilt parent keeps the children that would go with it", () => {
    const client = family();
    migrate(client, [parentAndChild, rebuild("")]);
    expect([count(client, "parent"), count(client, "child")]).toEqual([2, 3]);
    expect(client.query("pragma foreign_keys").get()).toEqual({ foreign_keys: 1 });
    expect(client.query("pragma user_version").get()).toEqual({ user_version: 2 });
  });

  test("one that loses the row of a child is rolled back whole, with what to do", () => {
    const client = family();
    expect(() => migrate(client, [parentAndChild, rebuild("where id = 1")])).toThrow(
      /0001_rebuild: 1 rows would lose.*unchanged. Try: /,
    );
    expect([count(client, "parent"), count(client, "child")]).toEqual([2, 3]);
    expect(client.query("pragma foreign_keys").get()).toEqual({ foreign_keys: 1 });
    expect(client.query("pragma user_version").get()).toEqual({ user_version: 1 });
  });
});

describe("the migration that packs latency", () => {
  test("carries over what was measured", () => {
    const client = new Database(":memory:", { strict: true });
    sqlite.cleanUp(() => client.close());
    migrate(client, migrations.slice(0, 2));
    client.run(
      "insert into tenant (key, id, name, email, tier, password_hash, created_at) values (1, 't1', '', '', 'free', '', 0)",
    );
    client.run("insert into stat values (1, 7, 3, 2, 1, 4), (1, 8, 0, 0, 1, 1), (1, 9, 1, 0, 0, 0)");
    client.run("insert into stat_latency values (1, 7, 20, 3), (1, 7, 31, 1), (1, 8, 20, 1)");
    migrate(client);
    const carried = client.query<{ latency: string }, []>("select latency from stat order by minute").all();
    expect(carried.map(({ latency }) => JSON.parse(latency))).toEqual([[20, 3, 31, 1], [20, 1], []]);
    const queries = createQueries(drizzle({ client }));
    const { total } = queries.stats({ tenantKey: 1, from: 0, to: 9, bucketMinutes: 10 });
    expect(total).toMatchObject({ accepted: 4, delivered: 2, failed: 2, attempts: 5 });
    expect(latencyBucket(total.p50Ms ?? 0)).toBe(20);
    expect(latencyBucket(total.p95Ms ?? 0)).toBe(31);
  });
});

describe("the migration that makes events lean", () => {
  test("carries over every event, record and attempt", () => {
    const client = new Database(":memory:", { strict: true });
    sqlite.cleanUp(() => client.close());
    migrate(client, migrations.slice(0, 5));
    client.run(
      "insert into tenant (key, id, name, email, tier, password_hash, created_at) values (1, 't1', '', '', 'free', '', 0)",
    );
    client.run("insert into event values (7, 1, x'01', x'7b7d'), (9, 1, x'02', x'5b5d')");
    client.run(
      "insert into delivery values (1, 1, 7, 3, 1, 1, 1, 1, null, 5, 6, null, null), (2, 1, 9, 3, 0, 2, 0, 1, 8, 5, null, 'no', 4)",
    );
    client.run("insert into attempt values (5, 1, 7, 3, 1, 5, 1, 204, null, x'6f6b', null)");
    const rows = () =>
      ["event", "delivery", "attempt"].map((table) => client.query(`select * from ${table} order by 1`).all());
    const before = rows();
    migrate(client, migrations.slice(0, 6));
    expect(rows()).toEqual(before);
    migrate(client);
    expect(() =>
      client.run("insert into attempt values (6, 1, 8, 3, 1, 5, 1, 204, null, null, null, null, null)"),
    ).toThrow("FOREIGN KEY");
    const isDelivered = "update delivery set state = 1, finished_at = 5 where key = 2";
    expect(() => client.run(isDelivered)).toThrow("delivery_waits_for_a_time");
  });
});
