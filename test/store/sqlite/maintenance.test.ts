import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { dirname } from "node:path";
import type { Store } from "../../../src/store/store.ts";
import { overwritePages, pagesOf } from "../../support/damaged-database.ts";
import { useSqlite } from "../../support/sqlite-store.ts";
import { latestKey, newTenant, refusalOf, untyped } from "../../support/store-factory.ts";

const sqlite = useSqlite();

test("maintenance with nothing to do writes nothing, so the disk of a server at rest can rest too", async () => {
  let commits = 0;
  const { store } = await sqlite.store({
    commit(commit) {
      commits += 1;
      commit();
    },
  });
  await store.createTenant(newTenant({ urls: ["https://a.example"] }), 1);
  const before = commits;
  expect(await store.returnCancelled(100, Date.now())).toBeNull();
  expect(await store.queueReplayBatch(100, Date.now())).toBeNull();
  expect(await store.failUndeliverable(100)).toBe(false);
  expect(await store.endOrder(100)).toBeNull();
  expect(await store.eraseDeleted(100)).toBe(false);
  expect(await store.prune(Date.now(), 100)).toBe(false);
  expect(commits).toBe(before);
});

describe("what an erased account has sent", () => {
  const text = "walrus-marzipan-11";

  /** Erases the only account, which has sent one event. */
  async function erase() {
    const { store, path } = await sqlite.store();
    const tenant = await store.createTenant(newTenant({ urls: ["https://a.example"] }), 1);
    const events = [untyped(new TextEncoder().encode(JSON.stringify({ text })))];
    await store.acceptEvents({ tenantKey: tenant.key, apiKeyId: await latestKey(store, tenant.key), events });
    await store.deleteTenant(tenant.key, 1);
    while (await store.eraseDeleted(100));
    while (await store.reclaim(100_000));
    const isLeft = () => [path, `${path}-wal`].some((file) => readFileSync(file).includes(text));
    expect(isLeft()).toBe(true);
    return { store, path, isLeft };
  }

  test("is gone from the database and its log after the next clean-up", async () => {
    const { store, isLeft } = await erase();
    await store.prune(Date.now(), 100);
    expect(isLeft()).toBe(false);
  });

  test("stays in the log while a reader from outside holds that, and no longer", async () => {
    const { store, path, isLeft } = await erase();
    const holding = new Database(path, { readonly: true });
    holding.run("begin");
    holding.query("select 1 from event").get();
    await store.prune(Date.now(), 100);
    expect(isLeft()).toBe(true);
    holding.run("commit");
    holding.close();
    await store.prune(Date.now(), 100);
    expect(isLeft()).toBe(false);
  });
});

/** Damages a table and its indexes beneath an open store, which then reads them anew: another connection has written. */
function damageTable(path: string, table: string): void {
  const client = new Database(path);
  const names = client
    .query<{ name: string }, [string]>("select name from sqlite_schema where tbl_name = ?1 and rootpage > 0")
    .all(table)
    .map(({ name }) => name);
  const pages = names.flatMap((name) => pagesOf(dirname(path), name, "leaf"));
  overwritePages(dirname(path), pages);
  client.run("create table filler (text)");
  client.close();
}

test.each<[string, string, (store: Store) => Promise<unknown>]>([
  ["what waits for removed webhooks", "webhook", (store) => store.failUndeliverable(100)],
  ["what is held back", "webhook", (store) => store.endOrder(100)],
  ["removed webhooks", "webhook", (store) => store.forgetWebhooks(Date.now(), 100)],
  ["deleted accounts", "tenant", (store) => store.eraseDeleted(100)],
  ["old statistics", "stat", (store) => store.thinStats(Date.now())],
  ["accounts with a retention of their own", "tenant", (store) => store.accountsKeptOtherwise()],
  ["an account's size", "tenant_usage", (store) => store.storageOf(1)],
  ["cancelled replays", "replay", (store) => store.returnCancelled(100, Date.now())],
  ["replays to be queued", "replay", (store) => store.queueReplayBatch(100, Date.now())],
])("maintenance that looks for %s in a damaged table says so, and warns of it once", async (_, table, look) => {
  const warnings: string[] = [];
  const { store, path } = await sqlite.store({ warn: (message) => void warnings.push(message) });
  await store.createTenant(newTenant({ urls: ["https://a.example"] }), 1);
  damageTable(path, table);
  expect(await refusalOf(look(store))).toBe("unavailable storage_damaged");
  expect(await refusalOf(look(store))).toBe("unavailable storage_damaged");
  expect(warnings).toEqual([
    expect.stringMatching(/cannot be read: its page in the database is damaged. Try: restore/),
  ]);
});
