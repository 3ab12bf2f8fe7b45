import { Database } from "bun:sqlite";
import { closeSync, fsyncSync, openSync, renameSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { keepOwner } from "../../lib/keep-owner.ts";
import { syncFolder } from "../../lib/sync-folder.ts";
import { waitForLocks } from "./pragma.ts";

/** Name of a copy that is still being written; if one is found later, it may be deleted. */
export const unfinished = (to: string) => `${to}.part`;

/**
 * Copies a database into a separate file, as it is at one moment; writers can carry on in the meantime. The copy gets its name
 * only once it is complete and on disk, only the source's user may read it, and it has no log. It includes what is committed but not
 * yet copied back from the log; it does not include free pages.
 *
 * It takes seconds per gigabyte, on the calling thread.
 * @param shrinks the copy will return free pages to the disk as they arise, whatever the source does
 * @throws what SQLite or the file system says; nothing is left behind
 */
export function copyDatabase(from: string, to: string, { shrinks = false } = {}): void {
  const part = unfinished(to);
  rmSync(part, { force: true });
  try {
    // SQLite accepts an empty file; if it created one itself, others could read it.
    const made = openSync(part, "wx", 0o600);
    keepOwner(made, from);
    closeSync(made);
    // A read-only connection can neither write nor copy the source's log back as it closes. To request a copy that shrinks, the
    // connection has to be writable.
    const client = new Database(from, {
      ...(shrinks ? { readwrite: true, create: false } : { readonly: true }),
      strict: true,
    });
    try {
      waitForLocks(client);
      // Applies to the copy; the source stays as it is.
      if (shrinks) client.run("pragma auto_vacuum = incremental");
      client.run("vacuum into ?1", [part]);
    } finally {
      client.close(true);
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
