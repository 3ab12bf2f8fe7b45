import { Database } from "bun:sqlite";
import { afterEach } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Tenant } from "../../src/domain/tenant.ts";
import { createVault } from "../../src/lib/vault.ts";
import { tableNames } from "../../src/store/move/tables.ts";
import { databaseFile } from "../../src/store/sqlite/open.ts";
import { openSqliteStore } from "../../src/store/sqlite/store.ts";
import type { StoreBackend } from "./store-backend.ts";
import { bytes, createWorld, newAct, newInboxDelivery, newWebhooks } from "./store-factory.ts";

/** The master key of every folder that is filled here. */
export const masterKey = new Uint8Array(32).fill(7);
export const vault = createVault(masterKey);
const a = "https://a.example/hook";
const b = "https://b.example/hook";

/** Folders that are removed after each test. */
export function useFolders(): () => string {
  const folders: string[] = [];
  afterEach(() => {
    for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
  });
  return () => {
    const folder = mkdtempSync(join(tmpdir(), "postrider-move-"));
    folders.push(folder);
    return folder;
  };
}

const backendIn = (dataDir: string): StoreBackend => ({
  name: "SQLite",
  async open(options) {
    const openAgain = async () => openSqliteStore({ dataDir, vault, ...options });
    return {
      ...(await openAgain()),
      reopen: openAgain,
      count: async () => ({}),
      edit: async () => {},
      remove: async () => {},
    };
  },
});

/** A store that has some of everything. */
export async function fill(dataDir: string): Promise<{ tenant: Tenant; eventIds: string[] }> {
  const world = await createWorld(backendIn(dataDir));
  const { store, clock } = world;
  const tenant = await world.tenant({ urls: [a, b], name: 'Quoted "name", \\ and {braces}' });
  const inLine = await world.tenant({
    webhooks: newWebhooks({ url: a, ordered: true, rateLimit: 5, sealedHeaders: bytes("sealed") }),
  });
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
  const events = ["x", "x", "y", "x"].map((orderingKey) => ({ payload: bytes("{}"), type: null, orderingKey }));
  await world.accept(inLine, { events });
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
  await store.replaceWebhooks(tenant.key, { webhooks: newWebhooks(b), limit: 10 }, clock.now());
  await store.suspend(other.key, "operator", clock.now());
  await store.rotateSigningSecret(tenant.key, new Uint8Array(60), clock.now() + 1_000, clock.now());
  await store.endSession("session", clock.now() + 1_000_000);
  await store.rememberLogin(tenant.key, "192.0.2.1", clock.now(), newAct({ detail: { of: ["\u0000 🚀"] } }));
  const order = {
    kind: "password.reset",
    recipient: tenant.email.toLowerCase(),
    fact: { of: "\u0000 🚀", n: 1 },
  } as const;
  await store.orderPasswordReset(tenant.key, new Uint8Array(32), order, clock.now());
  await store.keepInboxDelivery(tenant.key, newInboxDelivery({ id: "in_1", answeredStatus: null }), 100);
  await store.keepInboxDelivery(tenant.key, newInboxDelivery({ id: "in_2", body: new Uint8Array() }), 100);
  const counts = { minute: 5, accepted: 1, delivered: 2, failed: 3, attempts: 4 };
  const latency = new Map([
    [1, 3],
    [9, 2],
  ]);
  const minute = { tenantKey: tenant.key, ...counts, latency };
  await store.addStats([minute, { ...minute, webhookKey: 1 }, { ...minute, webhookKey: 2, latency: new Map() }]);
  const refused = { tenantKey: tenant.key, month: 202611, events: 7 };
  await store.addRefused([
    { ...refused, reason: "quota" },
    { ...refused, reason: "invalid" },
  ]);
  await store.deleteTenant(gone.key, clock.now());
  await store.eraseDeleted(1);
  await world.end();
  fillBooks(join(dataDir, databaseFile), tenant.key);
  return { tenant, eventIds };
}

/** What payments leave behind, written around the store. */
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
export function rowsOf(dataDir: string): Record<string, unknown[]> {
  const client = new Database(join(dataDir, databaseFile), { readonly: true });
  const tables = [...tableNames, "sqlite_sequence"];
  const rows = tables.map((name) => {
    const all = client.query(`select * from ${name}`).values();
    return [name, all.map((row) => JSON.stringify(row)).sort()] as const;
  });
  client.close();
  return Object.fromEntries(rows);
}
