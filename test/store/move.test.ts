import { Database } from "bun:sqlite";
import { afterEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Tenant } from "../../src/domain/tenant.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { createVault } from "../../src/lib/vault.ts";
import { moveToPostgres, moveToSqlite } from "../../src/store/move/move.ts";
import { tableNames } from "../../src/store/move/tables.ts";
import type { OpenedStore } from "../../src/store/opened.ts";
import { openPostgresStore } from "../../src/store/postgres/store.ts";
import { databaseFile } from "../../src/store/sqlite/open.ts";
import { openSqliteStore } from "../../src/store/sqlite/store.ts";
import { createFakeClock } from "../support/fake-clock.ts";
import { describeWithPostgres, usePostgres } from "../support/postgres.ts";
import { readAll } from "../support/read-all.ts";
import type { StoreBackend } from "../support/store-backend.ts";
import { bytes, createWorld, newInboxDelivery, newTenant, newWebhooks } from "../support/store-factory.ts";

const masterKey = new Uint8Array(32).fill(7);
const vault = createVault(masterKey);
const a = "https://a.example/hook";
const b = "https://b.example/hook";

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "postrider-move-"));
  folders.push(folder);
  return folder;
}

const backendIn = (dataDir: string): StoreBackend => ({
  name: "SQLite",
  async open(options) {
    const openAgain = async () => openSqliteStore({ dataDir, vault, ...options });
    return { ...(await openAgain()), reopen: openAgain, count: async () => ({}), remove: async () => {} };
  },
});

/** A store that has something of everything. */
async function fill(dataDir: string): Promise<{ tenant: Tenant; eventIds: string[] }> {
  const world = await createWorld(backendIn(dataDir));
  const { store, clock } = world;
  const tenant = await world.tenant({ urls: [a, b], name: 'Quoted "name", \\ and {braces}' });
  const other = await world.tenant({ urls: [a], tier: "pro", loginEmail: "other@example.com" });
  const gone = await world.tenant({ urls: [a] });
  await world.tenant({ tier: "free" });
  const eventIds = [
    await world.event(tenant, "delivered", "failed"),
    await world.event(tenant, "retry", "delivered"),
    await world.event(tenant, "failed"),
  ];
  clock.advance(40 * 86_400_000);
  eventIds.push(await world.event(tenant, "delivered", "delivered"), await world.event(other, "failed"));
  await world.event(gone, "delivered");
  await world.accept(tenant, { idempotency: { key: "k ' \\ \"", fingerprint: bytes("f") } });
  await world.acceptMany(other, 25);
  const long = `${"x".repeat(3_000)}\u0000 and 🚀`;
  await store.replayEvent(
    tenant.key,
    { id: "rpl_1", kind: "single", label: long, eventId: eventIds[0] ?? "" },
    clock.now(),
  );
  await world.startReplay(tenant, "failed", { label: "with \u0000 in it" });
  await world.startReplay(tenant, "all", { label: "plain" });
  await world.queueAll(3);
  await store.replaceWebhooks(tenant.key, newWebhooks(b), 10, clock.now());
  await store.suspend(other.key, "operator", clock.now());
  await store.rotateSigningSecret(tenant.key, new Uint8Array(60), clock.now() + 1_000, clock.now());
  await store.endSession("session", clock.now() + 1_000_000);
  await store.rememberLogin(tenant.key, "192.0.2.1", clock.now());
  await store.keepInboxDelivery(tenant.key, newInboxDelivery({ id: "in_1", answeredStatus: null }), 100);
  await store.keepInboxDelivery(tenant.key, newInboxDelivery({ id: "in_2", body: new Uint8Array() }), 100);
  await store.addStats([
    {
      tenantKey: tenant.key,
      minute: 5,
      accepted: 1,
      delivered: 2,
      failed: 3,
      attempts: 4,
      latency: new Map([
        [1, 3],
        [9, 2],
      ]),
    },
  ]);
  await store.deleteTenant(gone.key, clock.now());
  await store.eraseDeleted(1);
  await world.end();
  fillBooks(join(dataDir, databaseFile), tenant.key);
  return { tenant, eventIds };
}

/** What payments leave, past the store. */
function fillBooks(path: string, tenantKey: number): void {
  const client = new Database(path, { readwrite: true, strict: true });
  client.run("pragma foreign_keys = on");
  const account = `insert into billing_account (key, id, tenant_key, state, credit_kobo, due_at)`;
  client.run(`${account} values (3, 'bil_1', null, 'closed', 12, null), (4, 'bil_2', ${tenantKey}, 'active', 0, 99)
    on conflict do nothing`);
  const key = client.query<{ key: number }, []>("select max(key) as key from billing_account").get()?.key ?? 0;
  client.run(`insert into saved_card (account_key, processor, sealed, brand, last4, exp_month, exp_year, refused, created_at)
    values (${key}, 'sandbox', x'0102', 'visa', '4081', '12', '2030', 1, 5)`);
  client.run(`insert into plan_period (account_key, tier, started_at, ended_at) values (${key}, 'free', 5, 6)`);
  client.run(`insert into invoice (key, id, account_key, kind, state, lines, total_kobo, credit_used_kobo, amount_kobo, created_at)
    values (9, 'inv_1', ${key}, 'upgrade', 'open', '[{"a":"\\"b\\""}]', 5, 0, 5, 7)`);
  client.run(`insert into invoice_day values (${key}, 20000, 9, 'pro')`);
  client.run(`insert into charge (account_key, reference, processor, kind, state, amount_kobo, invoice_key, created_at)
    values (${key}, 'ref', 'sandbox', 'upgrade', 'failed', 5, 9, 1)`);
  client.run(
    `insert into card_verification (account_key, token, state, created_at) values (${key}, 'tok', 'given_up', 1)`,
  );
  client.run(`insert into sandbox_card values ('t', 'e', 's', 'b', '1', '2', '3', 1, 'pays', 0)`);
  client.run(`insert into sandbox_transaction (reference, access_code, state, email, amount_kobo, return_url, cancel_url, created_at)
    values ('r', 'c', 'paid', 'e', 5, 'u', 'v', 3)`);
  client.run(`insert into inbox_setting values (${tenantKey}, 204, 10, 0)`);
  client.close();
}

/** All rows of all tables. */
function rowsOf(dataDir: string): Record<string, unknown[]> {
  const client = new Database(join(dataDir, databaseFile), { readonly: true });
  const tables = [...tableNames, "sqlite_sequence"];
  const rows = tables.map((name) => {
    const all = client.query(`select * from ${name}`).values();
    return [name, all.map((row) => JSON.stringify(row)).sort()] as const;
  });
  client.close();
  return Object.fromEntries(rows);
}

const tablesIn = (dataDir: string): string[] => {
  const client = new Database(join(dataDir, databaseFile), { readonly: true });
  const rows = client
    .query<{ name: string }, []>("select name from sqlite_schema where type = 'table' order by 1")
    .all();
  client.close();
  return rows.map(({ name }) => name).filter((name) => !name.startsWith("sqlite_"));
};

describe("the tables of a move", () => {
  test("are all that SQLite has, but for its own", async () => {
    const dataDir = newFolder();
    await openSqliteStore({ dataDir, clock: systemClock }).store.close();
    expect(tablesIn(dataDir).filter((name) => !tableNames.includes(name as never))).toEqual(["lane", "vault_check"]);
  });
});

describeWithPostgres("a move", () => {
  const postgres = usePostgres();
  const options = (dataDir: string, url: string) => ({
    ...{ dataDir, url, masterKey, clock: systemClock, durability: "waived" as const },
  });
  const schemaOf = async (url: string) => [
    ...(await postgres.pool(url).read(
      `select tablename, indexname, indexdef from pg_indexes where schemaname = 'public'
        and tablename !~ '_(default|[0-9]{4}_[0-9]{2})$' order by 1, 2`,
    )),
  ];
  const openThere = (url: string) => openPostgresStore({ url, clock: systemClock, vault, durability: "waived" });

  test("there and back leaves every row as it was", async () => {
    const dataDir = newFolder();
    await fill(dataDir);
    const before = rowsOf(dataDir);
    expect(
      Object.entries(before)
        .filter(([, rows]) => rows.length === 0)
        .map(([name]) => name),
    ).toEqual([]);
    const url = await postgres.database();
    const there = await moveToPostgres(options(dataDir, url));
    expect(there).toMatchObject({ miscounted: [] });
    expect(there?.compared).toBe(there?.rows ?? -1);
    expect(await schemaOf(url)).toEqual(await schemaOf(await postgres.migrated()));
    const second = newFolder();
    await moveToSqlite(options(second, url));
    expect(rowsOf(second)).toEqual(before);
    expect(rowsOf(dataDir)).toEqual(before);
    expect(tablesIn(second)).not.toContain("move_mark");
  });

  /** Lets so many batches through, and then fails as a lost connection does. */
  const failing = (dataDir: string, url: string, after: number) => {
    let batches = 0;
    const onProgress = ({ step }: { step: string }) => {
      batches += 1;
      if (batches > after || step === "checking") throw new Error("killed");
    };
    return { ...options(dataDir, url), onProgress };
  };

  test("that ends in the middle goes on where it was, in both directions", async () => {
    const dataDir = newFolder();
    await fill(dataDir);
    const before = rowsOf(dataDir);
    const url = await postgres.database();
    for (const after of [1, 5, 9, 22])
      await expect(moveToPostgres(failing(dataDir, url, after))).rejects.toThrow("killed");
    await expect(openThere(url)).rejects.toThrow(/has not ended. Try: run postrider move again/);
    const done: number[] = [];
    await moveToPostgres({ ...options(dataDir, url), onProgress: ({ done: rows }) => done.push(rows) });
    expect(done[0]).toBeGreaterThan(10);
    const second = newFolder();
    for (const after of [1, 7, 30]) await expect(moveToSqlite(failing(second, url, after))).rejects.toThrow("killed");
    expect(() => openSqliteStore({ dataDir: second, clock: systemClock })).toThrow(/has not ended/);
    await moveToSqlite(options(second, url));
    expect(rowsOf(second)).toEqual(before);
  });

  test("ends with a mark: no server starts on what was left, and there is no second one", async () => {
    const dataDir = newFolder();
    await fill(dataDir);
    const url = await postgres.database();
    await moveToPostgres(options(dataDir, url));
    const open = () => openSqliteStore({ dataDir, clock: systemClock });
    expect(open).toThrow(/was moved to PostgreSQL .*Try: set POSTRIDER_DATABASE_URL/);
    await expect(moveToPostgres(options(dataDir, url))).rejects.toThrow(/was moved to PostgreSQL .* already/);
    const second = newFolder();
    await moveToSqlite(options(second, url));
    await expect(openThere(url)).rejects.toThrow(/was moved to \/.*POSTRIDER_DATA_DIR=/);
    await openSqliteStore({ dataDir: second, clock: systemClock, vault }).store.close();
  });

  test("is given up by a server that starts on the source", async () => {
    const dataDir = newFolder();
    await fill(dataDir);
    const url = await postgres.database();
    await expect(moveToPostgres(failing(dataDir, url, 3))).rejects.toThrow("killed");
    await openSqliteStore({ dataDir, clock: systemClock, vault }).store.close();
    await expect(moveToPostgres(options(dataDir, url))).rejects.toThrow(/not of this move. Try: name an empty place/);
  });

  test("wants a place of its own, and no server beside it", async () => {
    const dataDir = newFolder();
    await fill(dataDir);
    const url = await postgres.database();
    const pool = postgres.pool(url);
    await pool.write("create table theirs (a int)");
    await expect(moveToPostgres(options(dataDir, url))).rejects.toThrow(/tables of another program \(theirs\). Try: /);
    await pool.write("drop table theirs");
    const { store } = await openThere(url);
    await expect(moveToPostgres(options(dataDir, url))).rejects.toThrow(/Servers are using .* Try: stop them all/);
    await expect(moveToSqlite(options(newFolder(), url))).rejects.toThrow(/Servers are using .* Try: stop them all/);
    await store.createTenant(newTenant(), 1);
    await store.close();
    await expect(moveToPostgres(options(dataDir, url))).rejects.toThrow(/not of this move. Try: name an empty place/);
    await expect(moveToPostgres(options(newFolder(), url))).rejects.toThrow(/There is no database in/);
    const other = new Uint8Array(32).fill(8);
    await expect(moveToPostgres({ ...options(dataDir, url), masterKey: other })).rejects.toThrow(
      /master key is not the one/,
    );
  });

  test("shows an account there as it was here", async () => {
    const dataDir = newFolder();
    const { tenant, eventIds } = await fill(dataDir);
    const view = async ({ store }: OpenedStore) => ({
      page: await readAll((await store.page({ tenantKey: tenant.key, page: 0, size: 1000 })).records),
      attempts: await Promise.all(
        eventIds.map(async (id) => {
          const found = await store.attempts(tenant.key, id, { offset: 0, limit: 100 });
          return found && readAll(found.attempts);
        }),
      ),
      replays: await readAll((await store.replays(tenant.key, { offset: 0, limit: 100 })).replays),
      health: await store.webhookHealth(tenant.key, { records: 100, walked: 1000 }),
      usage: await store.usage(tenant.key, 40 * 86_400_000),
      webhooks: await store.webhooks(tenant.key),
      secrets: await store.signingSecrets(tenant.key, 1),
    });
    const clock = createFakeClock();
    const here = openSqliteStore({ dataDir, clock, vault });
    const before = await view(here);
    await here.store.close();
    const url = await postgres.database();
    await moveToPostgres(options(dataDir, url));
    const there = await openPostgresStore({ url, clock, vault, durability: "waived" });
    postgres.cleanUpFirst(() => there.store.close());
    expect(await view(there)).toEqual(before);
    // What comes next takes keys that nobody has.
    const made = await there.store.createTenant(newTenant(), 1);
    expect(made.key).toBeGreaterThan(tenant.key + 3);
  });
});
