import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { statSync } from "node:fs";
import { join } from "node:path";
import { createCheckpointer } from "../../../src/store/sqlite/checkpointer.ts";
import type { Store } from "../../../src/store/store.ts";
import { useSqlite } from "../../support/sqlite-store.ts";
import { latestKey, newTenant, untyped } from "../../support/store-factory.ts";

const sqlite = useSqlite();

describe("the log", () => {
  /** Commits until `pages` pages have been written, one batch after the other. */
  async function write(store: Store, batches: number) {
    const tenant = await store.createTenant(newTenant({ urls: ["https://a.example"] }), 1);
    const apiKeyId = await latestKey(store, tenant.key);
    for (let i = 0; i < batches; i++) {
      const events = Array.from({ length: 100 }, () => untyped(new Uint8Array(4_000).fill(97)));
      await store.acceptEvents({ tenantKey: tenant.key, apiKeyId, events });
    }
  }

  test("stays short while it is written, and is empty at the end", async () => {
    const { store, path } = await sqlite.store();
    await write(store, 200);
    expect(statSync(`${path}-wal`).size).toBeLessThan(70 * 1024 * 1024);
    const reading = new Database(path, { readonly: true });
    reading.query("select 1 from lane").get();
    await store.close();
    expect(statSync(`${path}-wal`).size).toBe(0);
    reading.close();
  });

  test("grows while a reader from outside holds it, and is copied when that has gone", async () => {
    const { store, path } = await sqlite.store();
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
  }, 120_000);

  /** A log of so many MiB, 80 by default, in which nothing has been copied, and a checkpointer whose Worker does this. */
  function uncopiedLog(worker: (client: Database) => Promise<void>, mebibytes = 80) {
    const client = new Database(join(sqlite.emptyDir(), "log.db"), { create: true, strict: true });
    client.run("pragma journal_mode = wal");
    client.run("pragma wal_autocheckpoint = 0");
    client.run("create table page (content)");
    const write = (more: number) =>
      client.run("insert into page select zeroblob(1048576) from json_each(?1)", [JSON.stringify(Array(more).fill(0))]);
    write(mebibytes);
    const asked = Promise.withResolvers<void>();
    const reader = {
      run: () => Promise.reject(new Error("not of this test")),
      checkpoint: async () => {
        await worker(client);
        asked.resolve();
      },
      close: async () => {},
    };
    let now = 0;
    const { look } = createCheckpointer(client, reader, undefined, { monotonicMs: () => now });
    const pass = (ms: number) => {
      now += ms;
    };
    const copied = () => client.query<{ checkpointed: number }, []>("pragma wal_checkpoint(noop)").get()?.checkpointed;
    return { client, write, look, pass, asked: asked.promise, copied };
  }

  test("is left to the Worker when a reader that has gone leaves much to copy", async () => {
    const { client, look, asked, copied } = uncopiedLog(async () => {});
    look();
    expect(copied()).toBe(0);
    await asked;
    client.close();
  });

  test.each([
    ["just begun", 0, 39],
    ["half as long as it may be", 8, 19],
    ["nearly due", 15, 10],
  ])("is looked at again the sooner the longer it is: %s", (_, mebibytes, restMs) => {
    let asked = 0;
    const { client, write, look, pass } = uncopiedLog(async () => {
      asked += 1;
    }, mebibytes);
    look();
    write(20);
    pass(restMs - 1);
    look();
    expect(asked).toBe(0);
    pass(2);
    look();
    expect(asked).toBe(1);
    client.close();
  });

  test("is copied by the writer when the Worker cannot", async () => {
    const { client, look, pass, copied } = uncopiedLog(() => Promise.reject(new Error("The reader stopped")));
    look();
    await Bun.sleep(0);
    pass(10);
    look();
    expect(copied()).toBeGreaterThan(20_000);
    client.close();
  });
});
