import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { type Pausable, pausable } from "./domain/pauses.ts";
import { syncFolder } from "./lib/sync-folder.ts";
import { readPrivate, writePrivate } from "./private-files.ts";

/** In a data directory: what waits for `postrider resume`, whatever the settings say, because a restore asked for it. */
export const heldFile = "held.json";

/** A file that cannot be read holds back everything: somebody put it there for a reason. */
export function readHeld(path: string): readonly Pausable[] {
  if (!existsSync(join(path, heldFile))) return [];
  try {
    const held = JSON.parse(readPrivate(join(path, heldFile))) as string[];
    return pausable.filter((what) => held.includes(what));
  } catch {
    return pausable;
  }
}

/** @throws the system's error when it cannot be written */
export function writeHeld(path: string, held: readonly Pausable[]): void {
  if (held.length > 0) writePrivate(path, heldFile, `${JSON.stringify(held)}\n`, true, path);
  else rmSync(join(path, heldFile), { force: true });
}

/** Like `heldFile`: what is pending in the database fails before anything goes out. */
export const failPendingFile = "fail-pending";

export const failsPending = (path: string): boolean => existsSync(join(path, failPendingFile));

/**
 * What has come since must not fail, so a mark that was removed must not reappear after a power failure.
 * @throws the system's error when it cannot be written
 */
export function markPending(path: string, fails: boolean): void {
  if (fails) writePrivate(path, failPendingFile, "", true, path);
  else {
    rmSync(join(path, failPendingFile), { force: true });
    syncFolder(path);
  }
}
