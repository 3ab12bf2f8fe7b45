import type { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { migrations } from "../../../src/store/sqlite/migrations.ts";
import { databaseFile, openDatabase } from "../../../src/store/sqlite/open.ts";
import { useSqlite } from "../../support/sqlite-store.ts";

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

  test("what is no database is refused and left as it is", () => {
    const dataDir = sqlite.emptyDir();
    writeFileSync(join(dataDir, databaseFile), "not a database, but long enough to be taken for one".repeat(100));
    expect(() => openDatabase({ dataDir })).toThrow();
    expect(readFileSync(join(dataDir, databaseFile), "utf8")).toStartWith("not a database");
  });
});
