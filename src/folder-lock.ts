import { Database } from "bun:sqlite";
import { chmodSync, closeSync, openSync } from "node:fs";
import { join, resolve } from "node:path";
import { codeOf } from "./lib/error-message.ts";
import { keepOwner } from "./lib/keep-owner.ts";

/**
 * The lock of a data directory: an exclusive transaction on a database of its own, which is a lock of the operating system. It
 * goes with the process, even on `kill -9`, and unlike a process id it holds in other containers of the machine, too.
 */
export const lockFile = "lock.db";

/** Held until it is closed. */
export interface FolderLock {
  close(): void;
}

/** @throws the error of SQLite or of the system; see `isLocked` */
export function lockFolder(path: string): FolderLock {
  makeLockFile(path);
  const lock = new Database(join(path, lockFile), { readwrite: true, create: false });
  try {
    chmodSync(join(path, lockFile), 0o600);
    lock.run("pragma busy_timeout = 0");
    // Nothing is ever written to it, and a journal next to it would not fit on a full disk.
    lock.run("pragma journal_mode = memory");
    lock.run("begin exclusive");
    return lock;
  } catch (error) {
    lock.close();
    throw error;
  }
}

/** Only if there is none: closing a file that SQLite has locked in this process would drop the lock. */
function makeLockFile(path: string): void {
  try {
    const made = openSync(join(path, lockFile), "wx", 0o600);
    keepOwner(made, path);
    closeSync(made);
  } catch (error) {
    if (codeOf(error) !== "EEXIST") throw error;
  }
}

/** Whether a server, or a command that must be alone, holds the folder. Nothing is created or changed. */
export function isInUse(folder: string): boolean {
  let lock: Database | null = null;
  try {
    lock = new Database(join(resolve(folder), lockFile), { readonly: true });
    lock.run("pragma busy_timeout = 0");
    lock.query("select 1 from sqlite_master").get();
    return false;
  } catch (error) {
    return isLocked(error);
  } finally {
    lock?.close();
  }
}

/** Whether somebody else has the lock. */
export const isLocked = (error: unknown): boolean => codeOf(error).startsWith("SQLITE_BUSY");
