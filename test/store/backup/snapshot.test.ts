import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { appendFileSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { StartupError } from "../../../src/domain/errors.ts";
import { openSnapshot, type Snapshot } from "../../../src/store/backup/snapshot.ts";
import { databaseFile } from "../../../src/store/sqlite/open.ts";
import { useFolders } from "../../support/filled-folder.ts";

const newFolder = useFolders();

function write(snapshot: Snapshot, folder: string): string {
  const path = join(folder, `copy-${Bun.randomUUIDv7()}.db`);
  writeFileSync(path, "");
  for (const chunk of snapshot.chunks()) appendFileSync(path, chunk);
  return path;
}

function read<Row>(path: string, sql: string): Row[] {
  const client = new Database(path, { readwrite: true });
  try {
    return client.query<Row, []>(sql).all();
  } finally {
    client.close();
  }
}

/** A database of which the last commits are only in the log. */
function makeDatabase(folder: string, commits: number, inLog: number): Database {
  const client = new Database(join(folder, databaseFile), { create: true });
  client.run("pragma journal_mode = wal");
  client.run("pragma wal_autocheckpoint = 0");
  client.run("create table line (n integer primary key, filler blob)");
  for (let n = 0; n < commits; n++) {
    if (n === commits - inLog) client.run("pragma wal_checkpoint(truncate)");
    client.run("insert into line values (?1, zeroblob(3000))", [n]);
  }
  return client;
}

describe("a snapshot", () => {
  // A process has one connection to the file, so this one lets go of it first. Closed without its log being copied back,
  // as by a kill, is what the busy writer below is for.
  test.each([0, 1, 40])("has what was committed, of a database that was left with %d rows", (rows) => {
    const folder = newFolder();
    makeDatabase(folder, rows, 0).close();
    const snapshot = openSnapshot(folder);
    const copy = write(snapshot, folder);
    expect(snapshot.books().tables).toEqual({ line: rows });
    snapshot.close();
    expect(read(copy, "pragma integrity_check")).toEqual([{ integrity_check: "ok" }]);
    expect(read(copy, "select count(*) as n from line")).toEqual([{ n: rows }]);
  });

  test("is of one moment, and whole, while another process writes without a pause", async () => {
    const folder = newFolder();
    const program = join(import.meta.dir, "../../support/busy-writer.ts");
    const writer = Bun.spawn([process.execPath, program, join(folder, databaseFile)], { stdout: "pipe" });
    try {
      await writer.stdout.getReader().read();
      for (let n = 0; n < 25; n++) {
        const snapshot = openSnapshot(folder);
        const { tables } = snapshot.books();
        const copy = write(snapshot, folder);
        snapshot.close();
        expect(read(copy, "pragma integrity_check")).toEqual([{ integrity_check: "ok" }]);
        const sums = "select (select sum(amount) from one) + (select sum(amount) from other) as sum";
        expect(read(copy, sums)).toEqual([{ sum: 1_000_000 }]);
        expect(read(copy, "select count(*) as n from passing")).toEqual([{ n: tables.passing }]);
      }
    } finally {
      writer.kill("SIGKILL");
      await writer.exited;
    }
    // What a kill left in the log is in the next one.
    const left = openSnapshot(folder);
    const copy = write(left, folder);
    left.close();
    expect(read(copy, "pragma integrity_check")).toEqual([{ integrity_check: "ok" }]);
  });

  test("is of a database that was compacted or recovered, and has no log", () => {
    const folder = newFolder();
    const client = makeDatabase(folder, 3, 0);
    client.run("pragma journal_mode = delete");
    client.close();
    for (let again = 0; again < 2; again++) {
      const snapshot = openSnapshot(folder);
      const copy = write(snapshot, folder);
      snapshot.close();
      expect(read(copy, "select count(*) as n from line")).toEqual([{ n: 3 }]);
    }
  });

  test("is of a database that is a link to another disk", () => {
    const [folder, disk] = [newFolder(), newFolder()];
    makeDatabase(disk, 3, 0).close();
    symlinkSync(join(disk, databaseFile), join(folder, databaseFile));
    const snapshot = openSnapshot(folder);
    const copy = write(snapshot, folder);
    snapshot.close();
    expect(read(copy, "select count(*) as n from line")).toEqual([{ n: 3 }]);
  });

  test("takes nothing along that another database has put in its place", () => {
    const folder = newFolder();
    makeDatabase(folder, 1, 0).close();
    const snapshot = openSnapshot(folder);
    const log = join(folder, `${databaseFile}-wal`);
    rmSync(log);
    writeFileSync(log, "of another one");
    snapshot.close();
    expect(readFileSync(log, "utf8")).toBe("of another one");
  });

  test("is of a database that is there, and is one", () => {
    const folder = newFolder();
    expect(() => openSnapshot(folder)).toThrow(StartupError);
    writeFileSync(join(folder, databaseFile), "no database at all, but longer than the head of one".repeat(20));
    expect(() => openSnapshot(folder)).toThrow("is damaged");
  });

  test("needs the log beside the database, and says what to do where it cannot be made", () => {
    const folder = newFolder();
    makeDatabase(folder, 1, 0).close();
    mkdirSync(join(folder, `${databaseFile}-wal`));
    expect(() => openSnapshot(folder)).toThrow(/cannot be written.*Try: check the owner and permissions/);
  });
});
