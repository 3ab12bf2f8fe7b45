import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { join } from "node:path";
import { systemClock as clock } from "../../../src/lib/clock.ts";
import { databaseFile } from "../../../src/store/sqlite/open.ts";
import { openSqliteStore } from "../../../src/store/sqlite/store.ts";
import { sqliteBackend } from "../../support/sqlite-backend.ts";
import { useSqlite } from "../../support/sqlite-store.ts";
import { createWorld } from "../../support/store-factory.ts";

const sqlite = useSqlite();

test("space is given back step by step", async () => {
  const world = await createWorld(sqliteBackend);
  const tenant = await world.tenant();
  const payloads = Array.from({ length: 100 }, () => new Uint8Array(10_000).fill(97));
  await world.accept(tenant, { payloads });
  await world.store.deleteTenant(tenant.key, 1);
  while (await world.store.eraseDeleted(1_000));
  expect(await world.store.reclaim(40_000)).toBe(true);
  while (await world.store.reclaim(400_000));
  expect(await world.store.reclaim(40_000)).toBe(false);
  await world.end();
});

test("a database that keeps its free pages is asked once", async () => {
  const dataDir = sqlite.emptyDir();
  const client = new Database(join(dataDir, databaseFile), { create: true, readwrite: true });
  // As another tool leaves it, or an early version: auto_vacuum can only be set before the first table.
  client.run("create table gone as select randomblob(400000) as bytes");
  client.run("drop table gone");
  const { store } = openSqliteStore({ dataDir, clock, secondThread: false });
  sqlite.cleanUpFirst(() => store.close());
  expect(client.query("pragma auto_vacuum").get()).toEqual({ auto_vacuum: 0 });
  client.run("create table gone as select randomblob(400000) as bytes");
  client.run("drop table gone");
  expect(await store.reclaim(40_000)).toBe(false);
  expect(client.query("select freelist_count > 90 as kept from pragma_freelist_count").get()).toEqual({ kept: 1 });
  client.close();
});
