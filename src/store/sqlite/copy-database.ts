import { Database } from "bun:sqlite";
import { closeSync, fsyncSync, openSync, renameSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { waitForLocks } from "./pragma.ts";

/** Of a copy that is being written; whoever meets it later may delete it. */
export const unfinished = (to: string) => `${to}.part`;

/**
 * Copies a database into a file of its own, as it is at one moment: whoever writes to it meanwhile goes on. The copy has its
 * name only once it is whole and on disk, this user alone may read it, and it has no log. What is committed and not yet
 * copied back from the log is in it; free pages are not.
 *
 * It takes seconds for each gigabyte, on the thread that asks.
 * @param shrinks the copy gives free pages back as they come, whatever the source does
 * @throws what SQLite or the file system says; nothing is left behind
 */
export function copyDatabase(from: string, to: string, { shrinks = false } = {}): void {
  const part = unfinished(to);
  rmSync(part, { force: true });
  try {
    // SQLite takes a file that is empty, and would make one that others can read.
    closeSync(openSync(part, "wx", 0o600));
    // Without the right to write, it can neither do so nor copy the log of the source back as it closes. What a copy is to be
    // that shrinks has to be said to one that has it.
    const client = new Database(from, {
      ...(shrinks ? { readwrite: true, create: false } : { readonly: true }),
      strict: true,
    });
    try {
      waitForLocks(client);
      // Of the copy; the source stays as it is.
      if (shrinks) client.run("pragma auto_vacuum = incremental");
      client.run("vacuum into ?1", [part]);
    } finally {
      client.close();
    }
    syncFile(part);
    renameSync(part, to);
    syncFolder(dirname(to));
  } catch (error) {
    rmSync(part, { force: true });
    throw error;
  }
}

function syncFile(path: string): void {
  const file = openSync(path, "r+");
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

/** Windows makes names durable by itself, and cannot open a folder. */
export function syncFolder(path: string): void {
  if (process.platform === "win32") return;
  const folder = openSync(path, "r");
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}
