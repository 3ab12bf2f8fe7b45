import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { systemClock as clock } from "../../../src/lib/clock.ts";
import { compactDatabase } from "../../../src/store/sqlite/compact.ts";
import { databaseFile } from "../../../src/store/sqlite/open.ts";
import { openSqliteStore } from "../../../src/store/sqlite/store.ts";
import { overwritePages, pagesOf } from "../../support/damaged-database.ts";
import { readAll } from "../../support/read-all.ts";
import { useSqlite } from "../../support/sqlite-store.ts";
import { bytes, latestKey, newTenant, untyped } from "../../support/store-factory.ts";

const sqlite = useSqlite();

/** Half of whose events have gone; made by a version whose databases did not shrink by themselves. */
async function early(): Promise<{ dataDir: string; left: number }> {
  const dataDir = sqlite.emptyDir();
  const client = new Database(join(dataDir, databaseFile), { create: true, readwrite: true });
  client.run("create table old (a)");
  client.run("drop table old");
  client.close();
  const { store } = openSqliteStore({ dataDir, clock, secondThread: false });
  const tenants = [];
  for (let i = 0; i < 2; i++) {
    const tenant = await store.createTenant(newTenant(), clock.now());
    const apiKeyId = await latestKey(store, tenant.key);
    const events = Array.from({ length: 40 }, (_, n) => untyped(bytes(`{"n":${n},"a":"${"x".repeat(20_000)}"}`)));
    await store.acceptEvents({ tenantKey: tenant.key, apiKeyId, events });
    tenants.push(tenant);
  }
  const [gone, stays] = tenants;
  await store.deleteTenant(gone?.key ?? 0, 1);
  while (await store.eraseDeleted(1_000));
  await store.close();
  return { dataDir, left: stays?.key ?? 0 };
}

const compact = (dataDir: string, signal = new AbortController().signal) =>
  compactDatabase({ dataDir, clock, signal, onProgress() {} });

test("a database is written anew without what nothing uses, and shrinks by itself from then on", async () => {
  const { dataDir, left } = await early();
  const compacted = await compact(dataDir);
  expect(compacted?.shrinksNow).toBe(true);
  expect(compacted?.bytesAfter).toBeLessThan(0.7 * (compacted?.bytesBefore ?? 0));
  expect(readdirSync(dataDir)).toEqual([databaseFile]);
  const client = new Database(join(dataDir, databaseFile), { readonly: true });
  expect(client.query("pragma auto_vacuum").get()).toEqual({ auto_vacuum: 2 });
  client.close();
  const { store } = openSqliteStore({ dataDir, clock, secondThread: false });
  const page = await store.page({ tenantKey: left, page: 0, size: 100 });
  expect((await readAll(page.records)).map(({ payload }) => payload?.length)).toHaveLength(40);
  await store.close();
  expect((await compact(dataDir))?.shrinksNow).toBe(false);
});

test("what is stopped leaves the database as it was", async () => {
  const { dataDir } = await early();
  const before = readFileSync(join(dataDir, databaseFile));
  expect(await compact(dataDir, AbortSignal.abort())).toBeNull();
  expect(readdirSync(dataDir).filter((name) => name.includes("compacted"))).toEqual([]);
  expect(readFileSync(join(dataDir, databaseFile)).equals(before)).toBe(true);
});

test("a damaged database is left as it was, with what to do", async () => {
  const { dataDir } = await early();
  overwritePages(dataDir, pagesOf(dataDir, "event", "leaf").slice(-1));
  const before = readFileSync(join(dataDir, databaseFile));
  await expect(compact(dataDir)).rejects.toThrow(/ is damaged \(.*\)\. Try: restore it from a backup; /);
  expect(readdirSync(dataDir)).toEqual([databaseFile]);
  expect(readFileSync(join(dataDir, databaseFile)).equals(before)).toBe(true);
});

test("a database that somebody else reads is left alone", async () => {
  const { dataDir } = await early();
  const { store } = openSqliteStore({ dataDir, clock, secondThread: false });
  const client = new Database(join(dataDir, databaseFile), { readonly: true });
  client.run("begin");
  client.query("select count(*) from event").get();
  await store.probe();
  expect(compact(dataDir)).rejects.toThrow("Another program has");
  client.close();
  await store.close();
});

test("where there is no database, none is made", async () => {
  const dataDir = sqlite.emptyDir();
  expect(compact(dataDir)).rejects.toThrow(/There is no database in .* Try: /);
  expect(readdirSync(dataDir)).toEqual([]);
});
