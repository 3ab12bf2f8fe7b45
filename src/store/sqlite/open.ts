import { Database } from "bun:sqlite";
import { closeSync, openSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { StartupError } from "../../domain/errors.ts";
import { isDiskFull } from "../../lib/disk-full.ts";
import { messageOf } from "../../lib/error-message.ts";
import type { Vault } from "../../lib/vault.ts";
import type { StorageSizes } from "../opened.ts";
import { isDamage, sqliteCodeOf } from "./damage.ts";
import { hasCopiedInVain } from "./log-remains.ts";
import { clearLogTail } from "./log-tail.ts";
import { createMasterKeyCheck } from "./master-key.ts";
import type { MigrationWatch } from "./migration-steps.ts";
import { isEarlier, migrate, migrations, type Standing, standingOf } from "./migrations.ts";
import { addMissingCounters } from "./missing-counters.ts";
import { begunByEarlier, heedMoveMark, readMoveMark } from "./move-mark.ts";
import { applyPragma, type Checkpoints, leaveLogAlone, type Pragma, usesLog, waitForLocks } from "./pragma.ts";
import { findDamage } from "./start-check.ts";
import { noteProgram, realPath } from "./written-by.ts";

/** Before 3.51.3 two connections that checkpoint and commit at the same time could lose commits ("WAL-reset" defect). */
const oldestSafeSqlite = "3.51.3";

/** Whether another connection may copy the log back while this one commits; false only with the library of an old macOS. */
export function canCheckpointElsewhere(client: Database): boolean {
  return Bun.semver.order(sqliteVersion(client), oldestSafeSqlite) >= 0;
}

/** 8 MiB. With 64 MiB the resident memory under load peaked at 339 MB, with 8 at 259 MB, at the same rate. */
const pageCacheKib = 8 * 1024;

const journalSizeLimitBytes = 64 * 1024 * 1024;

/** What every connection must apply, read back after it was set: SQLite ignores a pragma that it cannot apply. */
const pragmas: readonly Pragma[] = [
  usesLog,
  { name: "synchronous", set: "full", reads: 2 },
  { name: "foreign_keys", set: "on", reads: 1 },
  { name: "trusted_schema", set: "off", reads: 0 },
  { name: "temp_store", set: "memory", reads: 2 },
  { name: "secure_delete", set: "on", reads: 1 },
  { name: "cache_size", set: `-${pageCacheKib}`, reads: -pageCacheKib },
  { name: "journal_size_limit", set: String(journalSizeLimitBytes), reads: journalSizeLimitBytes },
];

/** `checkpointer.ts` copies the log back, outside of commits. */
const noCheckpointInCommits = { name: "wal_autocheckpoint", set: "0", reads: 0 };

export interface OpenOptions {
  /** Folder of the database. */
  dataDir: string;
  /** Warnings for the operator. */
  warn?(message: string): void;
  /** Maximum number of pages in the database; tests use it to fill a "disk". */
  maxPageCount?: number;
  /** Has to open what is sealed in the database; without one, that is not checked. */
  vault?: Vault;
  /** Watches an upgrade, which then takes little memory. It may leave the database halfway. */
  watch?: MigrationWatch;
  /** Called before an upgrade begins or continues, once everything else was found in order. */
  beforeUpgrade?(client: Database, standing: Standing): void;
  /** @default "own" */
  checkpoints?: Checkpoints;
  /** Opened by a move, which may open it whatever the move mark says. */
  forMove?: boolean;
}

export const databaseFile = "postrider.db";

/** The file itself: in the data directory there may be a link to it. */
const filePath = (dataDir: string): string => realPath(join(dataDir, databaseFile));

/** Where the database and its log really are, perhaps on another disk than the rest of the data directory. */
export const databaseFolder = (dataDir: string): string => dirname(filePath(dataDir));

/** A missing file counts as 0 bytes. */
export function databaseSizes(dataDir: string): StorageSizes {
  const path = filePath(dataDir);
  const sizeOf = (file: string) => statSync(file, { throwIfNoEntry: false })?.size ?? 0;
  return { databaseBytes: sizeOf(path), logBytes: sizeOf(`${path}-wal`) };
}

/**
 * Opens the database, or creates it, and brings its schema up to date.
 * @throws StartupError when the file is damaged, belongs to a newer program or to another master key, the folder cannot be
 * written, or SQLite is too old.
 */
export function openDatabase({
  dataDir,
  warn,
  maxPageCount,
  vault,
  watch,
  beforeUpgrade,
  checkpoints = "own",
  forMove = false,
}: OpenOptions): Database {
  const path = join(dataDir, databaseFile);
  let client: Database;
  try {
    // Only this user may read it; the log next to it gets the same mode.
    closeSync(openSync(path, "a", 0o600));
    client = new Database(path, { create: true, readwrite: true, strict: true });
  } catch (error) {
    if (isDiskFull(error)) throw fullDisk(path, noneLost);
    throw new StartupError(
      `The database ${path} cannot be opened (${messageOf(error)}). ` +
        "Try: check that the folder exists and belongs to this user, or set POSTRIDER_DATA_DIR to another one.",
    );
  }
  try {
    waitForLocks(client);
    checkVersion(client, warn);
    // Lets the space of erased tenants go back to the disk. Takes effect only before the first table is created.
    if (isEmpty(client)) client.run("pragma auto_vacuum = incremental");
    applyPragmas(client);
    if (checkpoints === "external") {
      leaveLogAlone(client);
      const itself = realPath(path);
      if (hasCopiedInVain(client, itself)) warn?.(copiedInVain);
      clearLogTail(client, itself);
    }
    if (process.platform === "darwin") client.run("pragma fullfsync = on");
    if (maxPageCount !== undefined) client.run(`pragma max_page_count = ${maxPageCount}`);
    const damage = findDamage(client, warn ?? (() => {}));
    if (damage !== null) throw damaged(path, damage);
    const mark = forMove ? readMoveMark(client) : null;
    if (!forMove) heedMoveMark(client, path);
    else if (mark?.role === "arriving" && standingOf(client).schema < migrations.length) throw begunByEarlier(path);
    const masterKey = vault && createMasterKeyCheck(client, vault);
    masterKey?.verify();
    if (watch) keepTemporaryFilesIn(client, dataDir);
    const standing = standingOf(client);
    if (isEarlier(standing)) beforeUpgrade?.(client, standing);
    if (migrate(client, migrations, watch)) {
      masterKey?.remember();
      noteProgram(client);
      // A move compares what it has copied with its source, so neither changes until it has ended.
      if (mark === null) addMissingCounters(client);
    }
  } catch (error) {
    client.close(true);
    throw inWords(path, error, noneLost);
  }
  return client;
}

/** To sort an index or undo a statement, SQLite needs as much space as the table takes: on disk, next to the database. */
export function keepTemporaryFilesIn(client: Database, dataDir: string): void {
  client.run("pragma temp_store = file");
  // The files have no name: whatever happens to the process, none is left behind.
  client.run(`pragma temp_store_directory = '${databaseFolder(dataDir).replaceAll("'", "''")}'`);
}

const noneLost = "no accepted event is lost";

/** Even to start, the log needs a few pages. */
const fullDisk = (path: string, assurance: string) =>
  new StartupError(`The disk of ${path} is full. Try: free some space; ${assurance}.`);

/** @param what as SQLite says it */
export const damaged = (path: string, what: string) =>
  new StartupError(
    `The database ${path} is damaged (${what}). Try: restore it from a backup; ` +
      `without one, what can be read is saved by: sqlite3 ${databaseFile} .recover | sqlite3 recovered.db`,
  );

/** Whether SQLite may not write: to the file, or to the log that it keeps beside it even for whoever only reads. */
const mayNotWrite = (error: unknown) => /^SQLITE_(READONLY|CANTOPEN)/.test(sqliteCodeOf(error));

const unwritable = (path: string, error: unknown) =>
  new StartupError(
    `The database ${path} cannot be written (${messageOf(error)}). Try: check the owner and permissions of the file and its ` +
      "folder, and that the disk is not mounted read-only.",
  );

/**
 * An error that was met in the database, in words and with what to do; one that is a defect, as it is.
 * @param assurance what holds even though the disk is full
 */
export function inWords(path: string, error: unknown, assurance = "nothing was changed"): unknown {
  if (isDiskFull(error)) return fullDisk(path, assurance);
  if (mayNotWrite(error)) return unwritable(path, error);
  return isDamage(error) ? damaged(path, messageOf(error)) : error;
}

/**
 * What `work` on a database returns, which it leaves as it was if it fails.
 * @throws StartupError when it runs into damage, a full disk or one that is read only, and otherwise as it does
 */
export function orInWords<T>(dataDir: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw inWords(join(dataDir, databaseFile), error);
  }
}

const copiedInVain =
  "The server before this one was killed in the middle of a commit, which Litestream has copied although it never came about: " +
  "until its next snapshot the replica may differ from the database, or fail to be restored. Try: stop Litestream, run litestream replicate -once " +
  "-force-snapshot with its configuration, and start it again.";

function isEmpty(client: Database): boolean {
  return client.query<{ page_count: number }, []>("pragma page_count").get()?.page_count === 0;
}

function checkVersion(client: Database, warn?: (message: string) => void): void {
  if (canCheckpointElsewhere(client)) return;
  const message = `SQLite ${sqliteVersion(client)} is older than ${oldestSafeSqlite}, which fixed a loss of commits`;
  // On macOS the system's library is used, which the program cannot replace; one process owns the file, so a warning will do.
  if (process.platform !== "darwin") throw new StartupError(`${message}. Try: run the released executable.`);
  warn?.(message);
}

export const sqliteVersion = (client: Database): string =>
  client.query<{ version: string }, []>("select sqlite_version() as version").get()?.version ?? "0";

function applyPragmas(client: Database): void {
  for (const pragma of canCheckpointElsewhere(client) ? [...pragmas, noCheckpointInCommits] : pragmas) {
    applyPragma(client, pragma);
  }
}
