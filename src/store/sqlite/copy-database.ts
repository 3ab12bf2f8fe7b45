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
 * @throws what SQLite or the file system says; nothing is left behind
 */
export function copyDatabase(from: string, to: string): void {
  const part = unfinished(to);
  rmSync(part, { force: true });
  try {
    // SQLite takes a file that is empty, and would make one that others can read.
    closeSync(openSync(part, "wx", 0o600));
    // It can neither write to the source nor copy its log back as it closes.
    const client = new Database(from, { readonly: true, strict: true });
    try {
      waitForLocks(client);
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
function syncFolder(path: string): void {
  if (process.platform === "win32") return;
  const folder = openSync(path, "r");
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}
