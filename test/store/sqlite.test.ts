import { Database } from "bun:sqlite";
import { afterEach, describe, expect, spyOn, test } from "bun:test";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { generateSQLiteDrizzleJson, generateSQLiteMigration } from "drizzle-kit/api";
import { drizzle } from "drizzle-orm/bun-sqlite";
import type { DueDelivery } from "../../src/domain/delivery.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { latencyBucket } from "../../src/store/latency.ts";
import { openStore, type StoreOptions } from "../../src/store/open.ts";
import { createBillingRows } from "../../src/store/sqlite/billing-rows.ts";
import * as billingSchema from "../../src/store/sqlite/billing-schema.ts";
import type { Connection } from "../../src/store/sqlite/connection.ts";
import { isDamage } from "../../src/store/sqlite/damage.ts";
import { deliveryVerbs } from "../../src/store/sqlite/deliveries.ts";
import { eventVerbs } from "../../src/store/sqlite/events.ts";
import { inboxVerbs } from "../../src/store/sqlite/inbox.ts";
import * as inboxSchema from "../../src/store/sqlite/inbox-schema.ts";
import type { Lane } from "../../src/store/sqlite/lane.ts";
import { maintenanceVerbs } from "../../src/store/sqlite/maintenance.ts";
import { migrate, migrations } from "../../src/store/sqlite/migrations.ts";
import { databaseFile, openDatabase } from "../../src/store/sqlite/open.ts";
import { createBooksFile } from "../../src/store/sqlite/open-books.ts";
import { createQueries } from "../../src/store/sqlite/queries.ts";
import { createReader } from "../../src/store/sqlite/reader.ts";
import { createReplayLedger } from "../../src/store/sqlite/replay-ledger.ts";
import { replayVerbs } from "../../src/store/sqlite/replays.ts";
import { createRowKeys } from "../../src/store/sqlite/row-keys.ts";
import { createSandboxBooks } from "../../src/store/sqlite/sandbox-books.ts";
import * as sandboxSchema from "../../src/store/sqlite/sandbox-schema.ts";
import * as schema from "../../src/store/sqlite/schema.ts";
import { statVerbs } from "../../src/store/sqlite/stats.ts";
import { createTenantPages } from "../../src/store/sqlite/tenant-page.ts";
import { webhookVerbs } from "../../src/store/sqlite/webhooks.ts";
import type { Store } from "../../src/store/store.ts";
import { billingStoreContract } from "../contract/billing-store.ts";
import { inboxStoreContract } from "../contract/inbox-store.ts";
import { listsContract } from "../contract/lists.ts";
import { meteringContract } from "../contract/metering.ts";
import { sandboxStoreContract } from "../contract/sandbox-store.ts";
import { statStoreContract } from "../contract/stat-store.ts";
import { storeContract } from "../contract/store.ts";
import { webhookHealthContract } from "../contract/webhook-health.ts";
import { webhookRowsContract } from "../contract/webhook-rows.ts";
import { overwritePages, pagesOf } from "../support/damaged-database.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { readAll, readAttempts } from "../support/read-all.ts";
import { bytes, newApiKeyRow, newTenant, refusalOf, settlementOf, type TestBackend } from "../support/store-factory.ts";

function sqliteBackend(): TestBackend {
  const dataDir = mkdtempSync(join(tmpdir(), "postrider-store-"));
  return {
    open: (options) => openStore({ dataDir, ...options }),
    countRows() {
      const client = new Database(join(dataDir, databaseFile), { readonly: true });
      const tables = client
        .query<{ name: string }, []>("select name from sqlite_schema where type = 'table' and name not like 'sqlite%'")
        .all();
      const rows = tables.map(({ name }) => [name, client.query(`select 1 from ${name}`).all().length] as const);
      client.close();
      return Object.fromEntries(rows);
    },
    remove: () => rmSync(dataDir, { recursive: true }),
  };
}

storeContract("SQLite", sqliteBackend);
statStoreContract("SQLite", sqliteBackend);
webhookHealthContract("SQLite", sqliteBackend);
webhookRowsContract("SQLite", sqliteBackend);
meteringContract("SQLite", sqliteBackend);
billingStoreContract("SQLite", sqliteBackend);
sandboxStoreContract("SQLite", sqliteBackend);
inboxStoreContract("SQLite", sqliteBackend);
listsContract("SQLite", sqliteBackend);

/** An open database in a folder of its own, with the store on top of it when a test asks for one. */
async function sqliteStore(options: Partial<StoreOptions> = {}) {
  const dataDir = mkdtempSync(join(tmpdir(), "postrider-sqlite-"));
  const path = join(dataDir, databaseFile);
  const { store } = await openStore({ dataDir, clock: systemClock, ...options });
  cleanups.push(async () => {
    await store.close();
    rmSync(dataDir, { recursive: true });
  });
  return { store, path };
}

const cleanups: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0)) await cleanup();
});

function emptyDir() {
  const dataDir = mkdtempSync(join(tmpdir(), "postrider-sqlite-"));
  cleanups.push(() => rmSync(dataDir, { recursive: true }));
  return dataDir;
}

const folder = join(import.meta.dir, "../../drizzle/sqlite");

describe("opening", () => {
  const opened = (options: Partial<Parameters<typeof openDatabase>[0]> = {}) => {
    const client = openDatabase({ dataDir: emptyDir(), ...options });
    cleanups.unshift(() => client.close());
    return client;
  };
  const pragma = (client: Database, name: string) =>
    Object.values(client.query<Record<string, unknown>, []>(`pragma ${name}`).get() ?? {})[0];

  test.each([
    ["journal_mode", "wal"],
    ["synchronous", 2],
    ["foreign_keys", 1],
    ["busy_timeout", 5000],
    ["trusted_schema", 0],
    ["secure_delete", 1],
    ["auto_vacuum", 2],
    ["wal_autocheckpoint", 0],
    ["mmap_size", 0],
  ])("%s is %p", (name, value) => {
    expect(pragma(opened(), name)).toBe(value);
  });

  test("the file is for this user alone", () => {
    const dataDir = emptyDir();
    opened({ dataDir });
    for (const name of readdirSync(dataDir))
      expect([name, statSync(join(dataDir, name)).mode & 0o77]).toEqual([name, 0]);
  });

  test("a database of a newer program is refused with what to do", () => {
    const dataDir = emptyDir();
    const client = openDatabase({ dataDir });
    client.run(`pragma user_version = ${migrations.length + 1}`);
    client.close();
    expect(() => openDatabase({ dataDir })).toThrow(/newer Postrider.*Try: run that version or a later one/);
  });

  test("a folder that is not there is refused with what to do", () => {
    expect(() => openDatabase({ dataDir: join(emptyDir(), "none") })).toThrow(/cannot be opened.*Try: /);
  });

  test("what is no database is refused and left as it is", () => {
    const dataDir = emptyDir();
    writeFileSync(join(dataDir, databaseFile), "not a database, but long enough to be taken for one".repeat(100));
    expect(() => openDatabase({ dataDir })).toThrow();
    expect(readFileSync(join(dataDir, databaseFile), "utf8")).toStartWith("not a database");
  });
});

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
      { ...schema, ...billingSchema, ...sandboxSchema, ...inboxSchema },
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
    cleanups.push(() => client.close());
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
    cleanups.push(() => client.close());
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
    cleanups.push(() => client.close());
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
    expect(() => client.run("insert into attempt values (6, 1, 8, 3, 1, 5, 1, 204, null, null, null, null)")).toThrow(
      "FOREIGN KEY",
    );
    expect(() => client.run("update delivery set state = 1 where key = 2")).toThrow("delivery_waits_for_a_time");
  });
});

describe("a database from before webhooks were forgotten", () => {
  test("loses the rows of removed webhooks that nothing names, in steps, and keeps the others", async () => {
    const clock = createFakeClock();
    const { store, path } = await sqliteStore({ clock });
    const tenant = await store.createTenant(newTenant({ urls: ["https://a.example/kept"] }), clock.now());
    const accept = () => store.acceptEvents({ tenantKey: tenant.key, payloads: [bytes("{}")] });
    for (let event = 0; event < 2_100; event += 700) {
      await store.acceptEvents({ tenantKey: tenant.key, payloads: Array.from({ length: 700 }, () => bytes("{}")) });
    }
    await store.replaceWebhooks(tenant.key, [{ id: "wh_b", url: "https://b.example/kept", name: "" }], 1, clock.now());
    await accept();
    await store.replaceWebhooks(tenant.key, [{ id: "wh_c", url: "https://c.example/now", name: "" }], 1, clock.now());
    while (await store.failDeliveriesOfRemoved(1_000));
    const client = new Database(path, { strict: true });
    client.run("update webhook set used = null");
    client.run(
      `insert into webhook (id, tenant_key, url, name, position, created_at, removed_at, drained)
       select 'wh_' || value, ${tenant.key}, 'https://' || value || '.example/gone', '', 0, 1, 1, 1
       from json_each('[${Array.from({ length: 500 }, (_, n) => n)}]')`,
    );
    clock.advance(120_000);
    let steps = 0;
    while (await store.forgetWebhooks(clock.now(), 200)) steps += 1;
    expect(steps).toBeGreaterThan(5);
    const urls = client.query<{ url: string }, []>("select url from webhook order by key").all();
    expect(urls.map(({ url }) => url)).toEqual([
      "https://a.example/kept",
      "https://b.example/kept",
      "https://c.example/now",
    ]);
    // What is known now needs no other walk.
    expect(await store.forgetWebhooks(clock.now(), 200)).toBe(false);
    client.close();
  });
});

describe("a database from before failures had codes", () => {
  test("shows their sentence alone until the next attempt", async () => {
    const clock = createFakeClock();
    const { store, path } = await sqliteStore({ clock });
    const url = "https://a.example/hook";
    const tenant = await store.createTenant(newTenant({ urls: [url] }), clock.now());
    const accepted = await store.acceptEvents({ tenantKey: tenant.key, payloads: [bytes("{}")] });
    const [delivery] = accepted.deliveries as [DueDelivery];
    await store.settle(settlementOf(delivery, "retry", clock.now()));
    const client = new Database(path, { strict: true });
    // As `0009_reason_codes` leaves the rows that it finds.
    client.run("update delivery set error_code = null, status_code = null");
    client.run("update attempt set error_code = null");
    client.close();

    const read = async () => {
      const records = await store.records(tenant.key, delivery.eventId);
      const [record] = records ? await readAll(records) : [];
      const log = (await readAttempts(store, tenant.key, delivery.eventId)).map((each) => [each.error, each.errorCode]);
      const [health] = await store.webhookHealth(tenant.key, { records: 9, walked: 9 });
      const { errorReason, errorCode, statusCode } = record ?? {};
      return { errorReason, errorCode, statusCode, log, lastErrorCode: health?.lastErrorCode };
    };
    const errorReason = `HTTP 503 from ${url}`;
    const earlier = { errorReason, errorCode: null, statusCode: null, log: [[errorReason, null]], lastErrorCode: null };
    expect(await read()).toEqual(earlier);

    clock.advance(60_000);
    const [again] = (await store.dueDeliveries(delivery.webhookKey, clock.now(), 1)).due as [DueDelivery];
    await store.settle(settlementOf(again, "failed", clock.now()));
    expect(await read()).toEqual({
      ...{ errorReason, errorCode: "http_status", statusCode: 503, lastErrorCode: "http_status" },
      log: [...earlier.log, [errorReason, "http_status"]],
    });
  });
});

describe("query plans", () => {
  /** A tenant with a record that has been delivered. */
  function openWithOneRecord(): Database {
    const client = openEmpty();
    client.run(
      "insert into tenant (key, id, name, email, tier, password_hash, created_at) values (1, 't', '', '', 'free', '', 0)",
    );
    client.run("insert into event (seq, tenant_key, id_tail, payload) values (1, 1, x'00', x'00')");
    client.run("insert into delivery values (1, 1, 1, 1, 1, 1, 1, 1, null, 5, 6, null, null, 0, null, null)");
    return client;
  }

  function openEmpty(): Database {
    const client = openDatabase({ dataDir: emptyDir() });
    cleanups.unshift(() => client.close());
    return client;
  }

  /** The plans of every statement that `run` sends, with the statement. */
  function plansOf(run: (client: Database) => void, client = openEmpty()): string[] {
    const statements: string[] = [];
    const recording = new Proxy(client, {
      get(target, name) {
        const value = Reflect.get(target, name, target);
        if (typeof value !== "function") return value;
        if (name !== "prepare" && name !== "query") return value.bind(target);
        return (sql: string, ...rest: unknown[]) => {
          statements.push(sql);
          return value.call(target, sql, ...rest);
        };
      },
    });
    run(recording);
    return statements.map((sql) => {
      const numbered = [...sql.matchAll(/\?(\d+)/g)].map(([, number]) => Number(number));
      const length = Math.max(0, ...numbered) || [...sql.matchAll(/\?/g)].length;
      const steps = client
        .prepare<{ detail: string }, null[]>(`explain query plan ${sql}`)
        .all(...Array(length).fill(null));
      return steps.map(({ detail }) => detail).join("; ");
    });
  }

  const filter = { tenantKey: 1 };
  const inRange = { ...filter, fromSeq: 1, toSeq: 2 };
  const ofWebhooks = { ...inRange, webhookKeys: [1] };
  const byTenant = "USING COVERING INDEX delivery_by_tenant (tenant_key=?";
  const byState = "USING COVERING INDEX delivery_by_state (tenant_key=? AND state=?";

  test.each([
    ["list", filter, byTenant],
    ["list in a range", inRange, byTenant],
    ["list of a webhook", ofWebhooks, byTenant],
    ["state list", { ...filter, state: 2 }, byState],
    ["state list in a range", { ...inRange, state: 2 }, byState],
  ])("the %s walks its covering index, without sorting", (_, filter, index) => {
    const [keys, ...joined] = plansOf((client) => {
      const queries = createQueries(drizzle({ client }));
      queries.pagePlaces({ filter, offset: 0, limit: 10 });
    });
    expect(keys).toContain(index);
    expect(keys).not.toContain("TEMP B-TREE");
    expect(joined).toEqual([]);
  });

  test.each([
    ["the list of webhooks", (connection: Connection) => void webhookVerbs(connection)],
    ["what a transaction knows of a tenant", ({ client }: Connection) => void createTenantPages(client)],
  ])("%s is read without a look at those that were removed", (_, prepare) => {
    const plans = plansOf((client) => prepare(connectionTo(client))).filter((plan) => plan.includes(" webhook "));
    expect(new Set(plans)).toEqual(new Set(["SEARCH webhook USING INDEX webhook_registered (tenant_key=?)"]));
  });

  test("the webhooks of a filter are found without a walk through all that the account ever had", () => {
    const plans = plansOf((client) => {
      createQueries(drizzle({ client })).webhookKeys({ tenantKey: 1, idOrUrl: "https://a.example" });
    });
    expect(plans).toEqual([
      "SEARCH webhook USING COVERING INDEX webhook_by_id (tenant_key=? AND id=?)",
      "SEARCH webhook USING COVERING INDEX webhook_by_url (tenant_key=? AND url=?)",
    ]);
  });

  test.each([
    ["list", filter, byTenant],
    ["state list", { ...filter, state: 2 }, byState],
  ])("the %s is walked from the end that is nearer, in the same index", (_, filter, index) => {
    const walk = (offset: number, total?: number) => {
      const sent: unknown[][] = [];
      const plans = plansOf((client) => {
        const logger = { logQuery: (_sql: string, params: unknown[]) => void sent.push(params) };
        const queries = createQueries(drizzle({ client, logger }));
        queries.pagePlaces({ filter, offset, limit: 10, ...(total !== undefined && { total }) });
      });
      expect(plans.join()).toContain(index);
      expect(plans.join()).not.toContain("TEMP B-TREE");
      const [limit, rows = 0] = sent[0]?.slice(Object.keys(filter).length) ?? [];
      return { limit, rows };
    };
    expect(walk(700)).toEqual({ limit: 10, rows: 700 });
    expect(walk(450, 1_000)).toEqual({ limit: 10, rows: 450 });
    expect(walk(700, 1_000)).toEqual({ limit: 10, rows: 290 });
    expect(walk(995, 1_000)).toEqual({ limit: 5, rows: 0 });
  });

  test("a list without payloads does not ask for them", () => {
    const client = openWithOneRecord();
    const queries = createQueries(drizzle({ client }));
    const columnsOf = (withPayload: boolean) =>
      queries
        .records({ keys: [{ key: 1, eventSeq: 1 }], tenantKey: 1, bytes: 1, withPayload, state: null })
        .rows.map(({ payload }) => payload !== null);
    expect([columnsOf(true), columnsOf(false)]).toEqual([[true], [false]]);
  });

  test.each([
    [
      "countEvents",
      { tenantKey: 1, fromSeq: 1, toSeq: 2 },
      "COVERING INDEX delivery_by_tenant (tenant_key=? AND event_seq>? AND event_seq<?)",
    ],
    [
      "countFailedEvents",
      { tenantKey: 1, toSeq: 2 },
      "COVERING INDEX delivery_by_state (tenant_key=? AND state=? AND event_seq<?)",
    ],
    ["countUpTo", { filter, limit: 5 }, "COVERING INDEX delivery_by"],
  ] as const)("%s stays inside an index", (name, params, index) => {
    const [plan] = plansOf((client) => {
      const queries = createQueries(drizzle({ client }));
      (queries[name] as (params: unknown) => unknown)(params);
    });
    expect(plan).toContain(index);
    expect(plan).not.toContain("TEMP B-TREE");
  });

  test("no statement that is prepared for the queue, replays, erasure, charts, inbox or sandbox scans or sorts a table that grows", () => {
    const plans = plansOf((client) => {
      const connection = connectionTo(client);
      const ledger = createReplayLedger(client);
      deliveryVerbs(connection, ledger, { mayGrow: () => true });
      replayVerbs(connection, ledger, { mayGrow: () => true });
      eventVerbs(connection, { mayGrow: () => true });
      maintenanceVerbs(connection);
      createSandboxBooks(connection);
      inboxVerbs(connection);
      statVerbs(connection);
    });
    expect(plans.length).toBeGreaterThan(50);
    for (const step of [
      "SEARCH d USING INDEX delivery_due (webhook_key=? AND next_attempt_at<?)",
      "SEARCH delivery USING COVERING INDEX delivery_due (webhook_key=? AND next_attempt_at>?)",
      "SEARCH delivery USING COVERING INDEX delivery_due (webhook_key>?)",
      "SEARCH delivery USING COVERING INDEX delivery_due (webhook_key=?)",
      "SEARCH delivery USING COVERING INDEX delivery_by_tenant (tenant_key=? AND event_seq>? AND event_seq<?)",
      "SEARCH delivery USING COVERING INDEX delivery_by_tenant (tenant_key=?)",
      "SEARCH delivery USING INDEX delivery_by_state (tenant_key=? AND state=? AND event_seq>? AND event_seq<?)",
      "SEARCH delivery USING INDEX delivery_by_tenant (tenant_key=? AND event_seq=?)",
      // What has waited longest: in the order of the index, so that the first entry is the answer.
      "SEARCH delivery USING COVERING INDEX delivery_by_state (tenant_key=? AND state=?)",
    ]) {
      expect(plans.filter((plan) => plan.includes(step))).not.toEqual([]);
    }
    const growing =
      /SCAN (event|d|delivery|attempt|replay|idempotency|stat|webhook|tenant|signing_\w+|login_address|sandbox_\w+|inbox_\w+)\b(?! USING (COVERING )?INDEX \w+_(to|due))/;
    expect(plans.filter((plan) => growing.test(plan))).toEqual([]);
    expect(plans.filter((plan) => plan.includes("TEMP B-TREE") && !plan.includes("replay_to_queue"))).toEqual([]);
  });

  test("a chart reads the minutes of its tenant and range, and sorts nothing", () => {
    const [plan] = plansOf((client) => {
      const range = { tenantKey: 1, from: 1, to: 2, bucketMinutes: 1 };
      createQueries(drizzle({ client })).stats(range);
    });
    expect(plan).toBe("SEARCH stat USING INDEX sqlite_autoindex_stat_1 (tenant_key=? AND minute>? AND minute<?)");
  });

  test("the health of webhooks is walked in the covering index, and its attempts are found by their event", () => {
    const client = openWithOneRecord();
    // A statement is only sent when the one before it has found something.
    const plans = plansOf((recording) => {
      const query = { tenantKey: 1, webhookKeys: [1], records: 100, walked: 5000 };
      createQueries(drizzle({ client: recording })).webhookHealth(query);
    }, client);
    expect(plans).toEqual([
      expect.stringContaining("SEARCH delivery USING COVERING INDEX delivery_by_tenant (tenant_key=?)"),
      expect.stringContaining("SEARCH delivery USING INTEGER PRIMARY KEY (rowid=?)"),
      "SEARCH attempt USING INDEX attempt_by_event (event_seq=?)",
    ]);
    expect(plans.join()).not.toContain("TEMP B-TREE FOR ORDER");
  });

  test("removing the rows of a tenant looks for children by index only", () => {
    const client = openDatabase({ dataDir: emptyDir() });
    cleanups.unshift(() => client.close());
    const tables = client.query<{ name: string }, []>("select name from sqlite_schema where type = 'table'").all();
    for (const { name } of tables) {
      const keys = client
        .query<{ id: number; from: string }, []>(
          `select id, "from" from pragma_foreign_key_list('${name}') order by id, seq`,
        )
        .all();
      for (const columns of Map.groupBy(keys, ({ id }) => id).values()) {
        const where = columns.map(({ from }) => `${from} = 1`).join(" and ");
        const plan = client
          .query<{ detail: string }, []>(`explain query plan select 1 from ${name} where ${where}`)
          .get();
        expect([name, plan?.detail]).toEqual([name, expect.stringContaining("SEARCH")]);
      }
    }
  });

  /** Enough to prepare statements: nothing is run. */
  function connectionTo(client: Database): Connection {
    const db = drizzle({ client });
    const lane: Lane = { submit: () => Promise.reject(), lagMs: () => 0, close: async () => {} };
    const reader = createReader("");
    const pages = createTenantPages(client);
    const billing = createBillingRows(client);
    const books = createBooksFile(client, pages, billing);
    const rows = { pages, rowKeys: createRowKeys(client), billing, books, queries: createQueries(db) };
    return { client, db, lane, ...rows, reader, reportDamage: () => {} };
  }
});

describe("group commit", () => {
  const payloads = [bytes("{}")];

  test("jobs that arrive together share a commit", async () => {
    const commits: number[] = [];
    const { store } = await sqliteStore({ onCommit: ({ jobs }) => commits.push(jobs) });
    const tenant = await store.createTenant(newTenant({ urls: ["https://a.example"] }), 1);
    commits.length = 0;
    await Promise.all(Array.from({ length: 2_000 }, () => store.acceptEvents({ tenantKey: tenant.key, payloads })));
    expect(commits.reduce((sum, jobs) => sum + jobs, 0)).toBe(2_000);
    expect(commits.length).toBeLessThanOrEqual(4);
  });

  test("what arrives during a commit goes into the next one", async () => {
    const commits: number[] = [];
    const { store } = await sqliteStore({ onCommit: ({ jobs }) => commits.push(jobs) });
    const tenant = await store.createTenant(newTenant(), 1);
    commits.length = 0;
    const accept = () => store.acceptEvents({ tenantKey: tenant.key, payloads });
    await Promise.all([accept().then(accept), accept().then(accept)]);
    expect(commits).toEqual([2, 2]);
  });

  test("a rest after a commit ends as soon as 64 wait", async () => {
    const { store } = await sqliteStore();
    const tenant = await store.createTenant(newTenant(), 1);
    const accept = () => store.acceptEvents({ tenantKey: tenant.key, payloads });
    await accept();
    // A rest that does not end by itself.
    const timers = spyOn(globalThis, "setTimeout").mockReturnValue(setTimeout(() => {}) as never);
    try {
      await Promise.all(Array.from({ length: 64 }, accept));
    } finally {
      timers.mockRestore();
    }
  });

  test("a failing job fails alone", async () => {
    const { store } = await sqliteStore();
    const tenant = await store.createTenant(newTenant({ urls: ["https://a.example"] }), 1);
    const broken = newTenant({ apiKey: newApiKeyRow() });
    await store.createTenant(broken, 1);
    const results = await Promise.allSettled([
      store.acceptEvents({ tenantKey: tenant.key, payloads }),
      // The same id once more: the unique index refuses it.
      store.createTenant(broken, 2),
      store.acceptEvents({ tenantKey: tenant.key, payloads }),
    ]);
    expect(results.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect((await store.page({ tenantKey: tenant.key, page: 0, size: 10 })).total).toBe(2);
    expect(await store.usage(tenant.key, Date.now())).toEqual({ eventsThisMonth: 2 });
  });

  test("two changes of one tenant that cannot both be fail only the second", async () => {
    const { store } = await sqliteStore();
    const [one, two] = [newTenant({ loginEmail: "me@x.io" }), newTenant({ loginEmail: "me@x.io" })];
    const outcomes = await Promise.all([one, two].map((tenant) => refusalOf(store.createTenant(tenant, 1))));
    expect(outcomes).toEqual(["fulfilled", "invalid email_taken"]);
  });
});

test("a batch gets a commit of its own, and what others send goes between two of them", async () => {
  const commits: number[] = [];
  const { store } = await sqliteStore({ onCommit: ({ jobs }) => void commits.push(jobs) });
  const [greedy, small] = [await store.createTenant(newTenant(), 1), await store.createTenant(newTenant(), 1)];
  commits.length = 0;
  const answers: string[] = [];
  const send = async (name: string, tenantKey: number, events: number) => {
    await store.acceptEvents({ tenantKey, payloads: Array.from({ length: events }, () => bytes("{}")) });
    answers.push(name);
  };
  const batches = ["batch", "batch", "batch"].map((name) => send(name, greedy.key, 1000));
  await Promise.all([...batches, send("small", small.key, 1), send("small", small.key, 1)]);
  expect(answers).toEqual(["batch", "small", "small", "batch", "batch"]);
  expect(commits).toEqual([1, 2, 1, 1]);
});

describe("a full disk", () => {
  test("is said, leaves nothing half written, and ends when there is room again", async () => {
    const run = spyOn(Database.prototype, "run");
    const { store, path } = await sqliteStore({ maxPageCount: 150 });
    const [client] = run.mock.contexts as unknown as Database[];
    run.mockRestore();
    const tenant = await store.createTenant(newTenant({ urls: ["https://a.example", "https://b.example"] }), 1);
    const big = () => store.acceptEvents({ tenantKey: tenant.key, payloads: [new Uint8Array(20_000).fill(97)] });
    let accepted = 0;
    let outcomes: string[] = [];
    do {
      outcomes = await Promise.all(Array.from({ length: 8 }, () => refusalOf(big())));
      accepted += outcomes.filter((outcome) => outcome === "fulfilled").length;
    } while (outcomes.every((outcome) => outcome === "fulfilled"));
    expect(new Set(outcomes)).toContain("unavailable storage_full");
    for (const outcome of outcomes) expect(["fulfilled", "unavailable storage_full"]).toContain(outcome);
    const page = await store.page({ tenantKey: tenant.key, page: 0, size: 1000 });
    expect([(await readAll(page.records)).length, page.total]).toEqual([accepted * 2, accepted * 2]);
    const reading = new Database(path, { readonly: true });
    expect(reading.query("select count(*) as events from event").get()).toEqual({ events: accepted });
    expect(reading.query("select events, pending from tenant_usage").get()).toEqual({
      events: accepted,
      pending: accepted * 2,
    });
    expect(reading.query("pragma quick_check").get()).toEqual({ quick_check: "ok" });
    reading.close();
    client?.run("pragma max_page_count = 100000");
    expect(await refusalOf(big())).toBe("fulfilled");
  });
});

describe("an I/O error in a commit", () => {
  const ioError = () => Object.assign(new Error("disk I/O error"), { code: "SQLITE_IOERR_FSYNC" });

  /** A store whose commits fail while `failing` says so, before or after they have happened. */
  async function failingStore() {
    const control: { failing: "before" | "after" | null } = { failing: null };
    const clock = createFakeClock();
    const opened = await sqliteStore({
      clock,
      commit(commit) {
        if (control.failing === "before") throw ioError();
        commit();
        if (control.failing === "after") throw ioError();
      },
    });
    const tenant = await opened.store.createTenant(newTenant({ urls: ["https://a.example"] }), clock.now());
    const accept = () => opened.store.acceptEvents({ tenantKey: tenant.key, payloads: [bytes("{}")] });
    const stored = async () => {
      const { records } = await opened.store.page({ tenantKey: tenant.key, page: 0, size: 100 });
      return (await readAll(records)).length;
    };
    /** Lets the lane run into its next pause. */
    const settle = () => new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
    return { ...opened, control, clock, accept, stored, settle };
  }

  test.each([
    ["had happened", "after", "fulfilled", 3],
    ["had not happened", "before", "unavailable storage_unavailable", 1],
  ] as const)("that %s: the lane stands, and the waiters get the true answer", async (_, failing, answer, kept) => {
    const { store, control, clock, accept, stored, settle } = await failingStore();
    await accept();
    control.failing = failing;
    const waiting = [refusalOf(accept()), refusalOf(accept())];
    await settle();
    // Nobody knows yet, so nobody is told, and new work is turned away.
    expect(await refusalOf(accept())).toBe("unavailable storage_unavailable");
    clock.advance(300);
    expect(store.oldestWaitingWriteMs()).toBe(300);
    expect(await Promise.race([Promise.all(waiting), settle().then(() => "still waiting")])).toBe("still waiting");
    // Every pause ends in another attempt, which may fail as well.
    clock.advance(1_000);
    await settle();
    expect(await refusalOf(accept())).toBe("unavailable storage_unavailable");
    control.failing = null;
    clock.advance(1_000);
    expect(await Promise.all(waiting)).toEqual([answer, answer]);
    expect(await stored()).toBe(kept);
    expect(store.oldestWaitingWriteMs()).toBe(0);
    const { eventIds } = await accept();
    expect(await stored()).toBe(kept + 1);
    const records = await store.records(1, eventIds[0] ?? "");
    expect(records && (await readAll(records))).toHaveLength(1);
  });

  test("is waited for by a store that closes", async () => {
    const { store, path, control, clock, accept, settle } = await failingStore();
    control.failing = "after";
    const waiting = refusalOf(accept());
    await settle();
    const closed = store.close().then(() => "closed");
    expect(await Promise.race([closed, settle().then(() => "waiting")])).toBe("waiting");
    control.failing = null;
    clock.advance(1_000);
    expect(await waiting).toBe("fulfilled");
    expect(await closed).toBe("closed");
    const reading = new Database(path, { readonly: true });
    expect(reading.query("select count(*) as events from event").get()).toEqual({ events: 1 });
    reading.close();
  });
});

describe("the log", () => {
  /** Commits until `pages` pages have been written, one batch after the other. */
  async function write(store: Store, batches: number) {
    const tenant = await store.createTenant(newTenant({ urls: ["https://a.example"] }), 1);
    for (let i = 0; i < batches; i++) {
      const payloads = Array.from({ length: 100 }, () => new Uint8Array(4_000).fill(97));
      await store.acceptEvents({ tenantKey: tenant.key, payloads });
    }
  }

  test("stays short while it is written, and is empty at the end", async () => {
    const { store, path } = await sqliteStore();
    await write(store, 200);
    expect(statSync(`${path}-wal`).size).toBeLessThan(70 * 1024 * 1024);
    const reading = new Database(path, { readonly: true });
    reading.query("select 1 from lane").get();
    await store.close();
    expect(statSync(`${path}-wal`).size).toBe(0);
    reading.close();
  });

  test("grows while a reader from outside holds it, and is copied when that has gone", async () => {
    const { store, path } = await sqliteStore();
    const holding = new Database(path, { readonly: true });
    holding.run("begin");
    holding.query("select 1 from event").get();
    await write(store, 250);
    expect(statSync(`${path}-wal`).size).toBeGreaterThan(64 * 1024 * 1024);
    holding.run("commit");
    holding.close();
    const before = statSync(path).size;
    await write(store, 50);
    expect(statSync(path).size).toBeGreaterThan(before);
    await store.close();
  });
});

describe("the reader", () => {
  const ask = (reader: ReturnType<typeof createReader>) =>
    reader.run("countEvents", { tenantKey: 1, fromSeq: 0, toSeq: 1 });

  test("answers, and says what went wrong", async () => {
    const { path } = await sqliteStore();
    const reader = createReader(path);
    cleanups.unshift(() => reader.close());
    expect(await Promise.all([ask(reader), ask(reader)])).toEqual([0, 0]);
    const nonsense = reader.run("nonsense" as "countEvents", { tenantKey: 1, fromSeq: 0, toSeq: 1 });
    expect(await nonsense.catch((error: Error) => error.message)).toContain("not a function");
    expect(await ask(reader)).toBe(0);
  });

  test("tells damage from other failures", async () => {
    const dataDir = emptyDir();
    openDatabase({ dataDir }).close();
    overwritePages(dataDir, pagesOf(dataDir, "delivery_by_tenant", "leaf"));
    const reader = createReader(join(dataDir, databaseFile));
    cleanups.unshift(() => reader.close());
    const error = await ask(reader).catch((error: unknown) => error);
    expect([isDamage(error), error]).toEqual([true, expect.objectContaining({ code: "SQLITE_CORRUPT" })]);
    const nonsense = reader.run("nonsense" as "countEvents", { tenantKey: 1, fromSeq: 0, toSeq: 1 });
    expect(isDamage(await nonsense.catch((error: unknown) => error))).toBe(false);
  });

  test("ends with the store; what it is asked from then on is unavailable", async () => {
    const { path } = await sqliteStore();
    const reader = createReader(path);
    const last = ask(reader);
    await Promise.all([reader.close(), reader.close()]);
    expect(await last).toBe(0);
    expect(await refusalOf(ask(reader))).toBe("unavailable shutting_down");
  });
});
