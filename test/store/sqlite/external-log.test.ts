import { constants, Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { copyFileSync, existsSync, readFileSync, statSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../../src/lib/clock.ts";
import { openSnapshot } from "../../../src/store/backup/snapshot.ts";
import { createLogWatch } from "../../../src/store/sqlite/log-watch.ts";
import { migrations } from "../../../src/store/sqlite/migrations.ts";
import { databaseFile, databaseSizes, openDatabase } from "../../../src/store/sqlite/open.ts";
import type { Checkpoints } from "../../../src/store/sqlite/pragma.ts";
import { openSqliteStore } from "../../../src/store/sqlite/store.ts";
import { upgradeDatabase } from "../../../src/store/sqlite/upgrade.ts";
import { makeEarlierDatabase } from "../../support/earlier-database.ts";
import { useSqlite } from "../../support/sqlite-store.ts";
import { bytes, latestKey, newTenant, untyped } from "../../support/store-factory.ts";
import { commitUnpublished } from "../../support/unpublished-commit.ts";

const sqlite = useSqlite();
const external: { checkpoints: Checkpoints } = { checkpoints: "external" };

/** The log from its header to the end, as whoever replicates it reads it. */
const logIn = (dataDir: string): Buffer => {
  const path = join(dataDir, `${databaseFile}-wal`);
  return existsSync(path) ? readFileSync(path) : Buffer.alloc(0);
};

/** Nothing that somebody has read of a log, or has still to read, is gone. */
function expectToGoOn(before: Buffer, after: Buffer): void {
  expect(before.length).toBeGreaterThan(0);
  expect(after.length).toBeGreaterThanOrEqual(before.length);
  expect(after.subarray(0, before.length).equals(before)).toBe(true);
}

/** As much as SQLite and the checkpointer would have copied back several times. */
async function write(dataDir: string, batches = 30): Promise<{ databaseBytes: number; log: Buffer }> {
  const { store } = openSqliteStore({ dataDir, clock: systemClock, ...external });
  const tenant = await store.createTenant(newTenant({ urls: ["https://a.example"] }), 1);
  const apiKeyId = await latestKey(store, tenant.key);
  for (let i = 0; i < batches; i++) {
    const events = Array.from({ length: 100 }, () => untyped(bytes("x".repeat(4_000))));
    await store.acceptEvents({ tenantKey: tenant.key, apiKeyId, events });
  }
  const written = { databaseBytes: statSync(join(dataDir, databaseFile)).size, log: logIn(dataDir) };
  await store.close();
  return written;
}

describe("a log that is another program's to copy back", () => {
  test("is neither copied by the server nor cut short by its end, and goes on with the next start", async () => {
    const dataDir = sqlite.emptyDir();
    const { databaseBytes, log } = await write(dataDir);
    expect(log.length).toBeGreaterThan(3 * 4 * 2 ** 20);
    expect(databaseBytes).toBeLessThan(2 ** 20);
    expectToGoOn(log, logIn(dataDir));
    await write(dataDir, 1);
    expectToGoOn(log, logIn(dataDir));
    expect(logIn(dataDir).length).toBeGreaterThan(log.length);
  });

  test("is emptied by the end of a server that copies it itself", async () => {
    const dataDir = sqlite.emptyDir();
    await write(dataDir, 1);
    await openSqliteStore({ dataDir, clock: systemClock }).store.close();
    expect(logIn(dataDir).length).toBe(0);
  });

  test("goes on through an upgrade, beside the tables of that other program", async () => {
    const made = sqlite.emptyDir();
    makeEarlierDatabase(made, { schema: 5, events: 100 });
    // Whoever made it may close a connection late, and takes the log along.
    const dataDir = sqlite.emptyDir();
    copyFileSync(join(made, databaseFile), join(dataDir, databaseFile));
    const client = openedBy(dataDir);
    client.run("create table _litestream_seq (id integer primary key, seq integer)");
    client.run("create table _litestream_lock (id integer)");
    client.run("insert into _litestream_seq values (1, 7)");
    client.close();
    const before = logIn(dataDir);
    const options = { dataDir, clock: systemClock, onProgress() {}, ...external };
    expect(await upgradeDatabase(options)).toBe(true);
    expectToGoOn(before, logIn(dataDir));
    const upgraded = openDatabase({ dataDir, ...external });
    expect(upgraded.query("select * from _litestream_seq").all()).toEqual([{ id: 1, seq: 7 }]);
    expect(upgraded.query("pragma user_version").values()).toEqual([[migrations.length]]);
    upgraded.close();
    expectToGoOn(before, logIn(dataDir));
  });

  test("goes on through a backup while no server runs", async () => {
    const dataDir = sqlite.emptyDir();
    const { log } = await write(dataDir, 1);
    const snapshot = openSnapshot(dataDir);
    for (const _ of snapshot.chunks());
    snapshot.close();
    expectToGoOn(log, logIn(dataDir));
  });

  function openedBy(dataDir: string): Database {
    const client = new Database(join(dataDir, databaseFile), { strict: true });
    client.run("pragma wal_autocheckpoint = 0");
    client.fileControl(constants.SQLITE_FCNTL_PERSIST_WAL, 1);
    return client;
  }
});

describe("a commit that a killed process leaves behind in the log", () => {
  const logHeaderBytes = 32;
  const frameBytes = 24 + 4_096;

  /** How many frames in a row belong to the log by their salts, as whoever replicates it reads it. */
  function framesIn(log: Buffer): number {
    const salts = log.subarray(16, 24);
    for (let frames = 0; ; frames++) {
      const header = log.subarray(logHeaderBytes + frames * frameBytes);
      if (header.length < frameBytes || !header.subarray(8, 16).equals(salts)) return frames;
    }
  }

  const endOfLog = (client: Database) =>
    client.query<{ log: number }, []>("pragma wal_checkpoint(noop)").get()?.log ?? 0;

  /** Stays open as Litestream's connection does: with it the index outlives the killed process. */
  function openReplicator(dataDir: string): Database {
    const replicator = openDatabase({ dataDir, ...external });
    replicator.run("create table filling (bytes blob)");
    return replicator;
  }

  /** How many frames it has left behind the end, which is told too. */
  async function killInCommit(dataDir: string): Promise<{ end: number; frames: number }> {
    const killed = openDatabase({ dataDir, ...external });
    const end = endOfLog(killed);
    await commitUnpublished(dataDir, () => void killed.run("insert into filling values (zeroblob(100000))"));
    killed.close(true);
    const frames = framesIn(logIn(dataDir)) - end;
    expect(frames).toBeGreaterThan(20);
    return { end, frames };
  }

  test("is covered before the next one could end with the same frame, so that whoever has read it finds out", async () => {
    const dataDir = sqlite.emptyDir();
    const replicator = openReplicator(dataDir);
    replicator.run("create table _litestream_seq (id integer primary key, seq integer)");
    const { end, frames } = await killInCommit(dataDir);
    expect(endOfLog(replicator)).toBe(end);

    const next = openDatabase({ dataDir, ...external });
    expect(endOfLog(next)).toBe(end + frames);
    expect(framesIn(logIn(dataDir))).toBe(end + frames);
    expect(replicator.query("select seq from _litestream_seq").values()).toEqual([[frames]]);
    next.run("insert into filling values ('next')");
    expect(framesIn(logIn(dataDir))).toBe(endOfLog(next));
    expect(replicator.query("select bytes from filling").values()).toEqual([["next"]]);
    expect(replicator.query("pragma integrity_check").values()).toEqual([["ok"]]);
    next.close(true);
    replicator.close(true);
  });

  test("is warned of where Litestream has copied it and begun the log anew before the start", async () => {
    const dataDir = sqlite.emptyDir();
    const replicator = openReplicator(dataDir);
    const accept = async (count: number) => {
      const { store } = openSqliteStore({ dataDir, clock: systemClock, ...external });
      for (let i = 0; i < count; i++) await store.createTenant(newTenant(), 1);
      await store.close();
    };
    await accept(1);
    // Takes more bytes in its row than the first ones.
    replicator.run("update lane set batch = 70000");
    await commitUnpublished(dataDir, () => accept(1));
    // As Litestream does: its next commit begins the log anew.
    replicator.run("pragma wal_checkpoint(passive)");
    replicator.run("insert into filling values ('begun anew')");
    expect(warningsOf(dataDir)).toEqual([expect.stringMatching(/killed.*copied.*-force-snapshot/)]);
    await accept(1);
    expect(warningsOf(dataDir)).toEqual([]);
    // Without a kill the same is as it should be.
    replicator.run("pragma wal_checkpoint(passive)");
    replicator.run("insert into filling values ('begun anew')");
    expect(warningsOf(dataDir)).toEqual([]);
    replicator.close(true);
  });

  function warningsOf(dataDir: string): string[] {
    const warnings: string[] = [];
    openDatabase({ dataDir, ...external, warn: (message) => void warnings.push(message) }).close(true);
    return warnings;
  }

  test("is only cleared where Litestream has never been", async () => {
    const dataDir = sqlite.emptyDir();
    const replicator = openReplicator(dataDir);
    const { end } = await killInCommit(dataDir);
    const next = openDatabase({ dataDir, ...external });
    expect(framesIn(logIn(dataDir))).toBe(end);
    expect(endOfLog(next)).toBe(end);
    next.close(true);
    replicator.close(true);
  });

  test("is found where the database is a link to another disk", async () => {
    const [dataDir, linked] = [sqlite.emptyDir(), sqlite.emptyDir()];
    symlinkSync(join(dataDir, databaseFile), join(linked, databaseFile));
    const replicator = openReplicator(dataDir);
    const { end } = await killInCommit(dataDir);
    openDatabase({ dataDir: linked, ...external }).close(true);
    expect(framesIn(logIn(dataDir))).toBe(end);
    expect(databaseSizes(linked)).toEqual(databaseSizes(dataDir));
    replicator.close(true);
  });

  test("stays where nobody else has the database open: SQLite takes it for good", async () => {
    const dataDir = sqlite.emptyDir();
    const first = openDatabase({ dataDir, ...external });
    first.run("create table filling (bytes blob)");
    await commitUnpublished(dataDir, () => void first.run("insert into filling values ('kept')"));
    // Nobody has the index open: it is made anew from the log.
    first.close(true);
    const next = openDatabase({ dataDir, ...external });
    expect(next.query("select bytes from filling").values()).toEqual([["kept"]]);
    next.close(true);
  });
});

describe("a log that nobody copies back", () => {
  test("is warned of at a size, again at twice of it, and anew once somebody has copied it", () => {
    const dataDir = sqlite.emptyDir();
    const client = openDatabase({ dataDir, ...external });
    client.run("create table filling (bytes blob)");
    // What the schema has written.
    client.run("pragma wal_checkpoint(passive)");
    const warnings: string[] = [];
    const watch = createLogWatch(client, (message) => void warnings.push(message), 1_000);
    /** How often it has warned when so many pages more are in the log. */
    const after = (pages: number) => {
      for (let written = 0; written < pages; written += 100) {
        client.run(`insert into filling values (zeroblob(${100 * 4_096}))`);
        watch.look();
      }
      return warnings.length;
    };
    expect(after(500)).toBe(0);
    expect(after(800)).toBe(1);
    expect(after(500)).toBe(1);
    expect(after(700)).toBe(2);
    client.run("pragma wal_checkpoint(passive)");
    expect(after(500)).toBe(2);
    expect(after(800)).toBe(3);
    expect(warnings[0]).toMatch(
      /grown by 4 MiB that nobody has copied back.*litestream replicate runs on .*postrider\.db/,
    );
    client.close();
  });
});
