import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { cpSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { migrations } from "../../../src/store/sqlite/migrations.ts";
import { databaseFile, keepTemporaryFilesIn, openDatabase, orInWords } from "../../../src/store/sqlite/open.ts";
import { openSqliteStore } from "../../../src/store/sqlite/store.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { useSqlite } from "../../support/sqlite-store.ts";
import { bytes, newTenant, settlementOf, untyped } from "../../support/store-factory.ts";

const sqlite = useSqlite();

describe("opening", () => {
  const opened = (options: Partial<Parameters<typeof openDatabase>[0]> = {}) => {
    const client = openDatabase({ dataDir: sqlite.emptyDir(), ...options });
    sqlite.cleanUpFirst(() => client.close());
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
    const dataDir = sqlite.emptyDir();
    opened({ dataDir });
    for (const name of readdirSync(dataDir))
      expect([name, statSync(join(dataDir, name)).mode & 0o77]).toEqual([name, 0]);
  });

  test("what needs room for a while has it where the database is, even behind a link", () => {
    const [dataDir, disk] = [sqlite.emptyDir(), sqlite.emptyDir()];
    symlinkSync(join(disk, databaseFile), join(dataDir, databaseFile));
    const client = opened({ dataDir });
    keepTemporaryFilesIn(client, dataDir);
    expect(pragma(client, "temp_store_directory")).toBe(disk);
  });

  test("a database of a newer program is refused with what to do", () => {
    const dataDir = sqlite.emptyDir();
    const client = openDatabase({ dataDir });
    client.run(`pragma user_version = ${migrations.length + 1}`);
    client.close();
    expect(() => openDatabase({ dataDir })).toThrow(
      /newer Postrider.*Try: run .* or a later one; or point POSTRIDER_DATA_DIR at a backup/,
    );
  });

  test("a folder that is not there is refused with what to do", () => {
    expect(() => openDatabase({ dataDir: join(sqlite.emptyDir(), "none") })).toThrow(/cannot be opened.*Try: /);
  });

  describe("where nothing can be written", () => {
    const whatToDo = /cannot be written.*Try: check the owner and permissions/;

    test("a log that cannot be made is refused with what to do", () => {
      const dataDir = sqlite.emptyDir();
      openDatabase({ dataDir }).close();
      mkdirSync(join(dataDir, `${databaseFile}-wal`));
      expect(() => openDatabase({ dataDir })).toThrow(whatToDo);
    });

    test("so is a commit to a file that is read only", () => {
      const dataDir = sqlite.emptyDir();
      openDatabase({ dataDir }).close();
      const client = new Database(join(dataDir, databaseFile), { readonly: true });
      sqlite.cleanUpFirst(() => client.close());
      expect(() => orInWords(dataDir, () => client.run("create table more (n)"))).toThrow(whatToDo);
    });
  });

  test("counts the records of an account that came without counters, and leaves those of others alone", async () => {
    const clock = createFakeClock();
    const dataDir = sqlite.emptyDir();
    const open = () => openSqliteStore({ dataDir, clock }).store;
    const store = open();
    const made = newTenant({ urls: ["https://a.example/hook", "https://b.example/hook"] });
    const { key: tenantKey } = await store.createTenant(made, clock.now());
    const accept = (events: number) =>
      store.acceptEvents({
        ...{ tenantKey, apiKeyId: made.apiKey.id, roomFor: () => 100 },
        events: Array.from({ length: events }, () => untyped(bytes("{}"))),
      });
    await accept(3);
    clock.advance(40 * 86_400_000);
    const { deliveries } = await accept(2);
    for (const [i, outcome] of (["delivered", "failed", "delivered"] as const).entries()) {
      const delivery = deliveries[i];
      if (delivery) await store.settle(settlementOf(delivery, outcome, clock.now()));
    }
    const other = newTenant();
    await store.createTenant(other, clock.now());
    const gone = await store.createTenant(newTenant(), clock.now());
    await store.deleteTenant(gone.key, clock.now());
    // As a kill leaves it: its latest records are in no list yet.
    const left = sqlite.emptyDir();
    cpSync(dataDir, left, { recursive: true });
    await store.close();

    const path = join(left, databaseFile);
    const edited = new Database(path, { readwrite: true });
    const usage = (client: Database) => client.query("select * from tenant_usage order by tenant_key").all();
    const before = usage(edited);
    edited.run(`delete from tenant_usage where tenant_key in (${tenantKey}, ${gone.key})`);
    edited.run("update tenant_usage set skipped = 7");
    edited.close(true);
    openDatabase({ dataDir: left }).close(true);
    const looking = new Database(path, { readonly: true });
    const [counted, ...others] = before;
    expect(before).toHaveLength(3);
    expect(counted).toMatchObject({ events_in_month: 2, events: 5, pending: 7, delivered: 2, failed: 1, skipped: 0 });
    expect(usage(looking)).toEqual([counted, { ...(others[0] as object), skipped: 7 }]);
    looking.close(true);
  });

  test("what is no database is refused and left as it is", () => {
    const dataDir = sqlite.emptyDir();
    writeFileSync(join(dataDir, databaseFile), "not a database, but long enough to be taken for one".repeat(100));
    expect(() => openDatabase({ dataDir })).toThrow();
    expect(readFileSync(join(dataDir, databaseFile), "utf8")).toStartWith("not a database");
  });
});
