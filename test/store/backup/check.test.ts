import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { copyFileSync, existsSync } from "node:fs";
import { join } from "node:path";
import { readBooks } from "../../../src/store/backup/books.ts";
import { checkCopy } from "../../../src/store/backup/check.ts";
import { migrations } from "../../../src/store/sqlite/migrations.ts";
import { databaseFile } from "../../../src/store/sqlite/open.ts";
import { fill, masterKey, useFolders } from "../../support/filled-folder.ts";

const newFolder = useFolders();

describe("the check of a restored database", () => {
  test("leaves a file that is complete by itself, to which nothing is still to be written", async () => {
    const dataDir = newFolder();
    await fill(dataDir);
    const path = join(dataDir, databaseFile);
    // As a kill leaves it: some records are in no list, and the check files them.
    const client = new Database(path, { readwrite: true });
    client.run("update lane set filed_to = 0");
    client.run("update delivery set filed = 0 where key % 2 = 0");
    const books = readBooks(client);
    client.close(true);
    const { faults } = checkCopy(dataDir, { books, schema: migrations.length, masterKeys: [masterKey] });
    expect(faults).toEqual([]);
    expect(existsSync(`${path}-wal`)).toBe(false);
    const alone = join(newFolder(), databaseFile);
    copyFileSync(path, alone);
    const looking = new Database(alone, { readwrite: true });
    expect(looking.query("select count(*) as unfiled from delivery where filed = 0").get()).toEqual({ unfiled: 0 });
    expect(looking.query("pragma integrity_check").values()).toEqual([["ok"]]);
    looking.close(true);
  });
});
