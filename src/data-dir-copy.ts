import { existsSync, mkdirSync, readdirSync, renameSync, rmdirSync, rmSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { restoringFolder, takeLock } from "./data-dir.ts";
import { StartupError } from "./domain/errors.ts";
import type { Pausable } from "./domain/pauses.ts";
import { lockFile } from "./folder-lock.ts";
import { markPending, writeHeld } from "./held-file.ts";
import { messageOf } from "./lib/error-message.ts";
import { keepOwnerOfFolder } from "./lib/keep-owner.ts";
import { syncFolder } from "./lib/sync-folder.ts";
import { isThere, readIfThere } from "./private-files.ts";
import { masterKeyFile, nextMasterKeyFile, secretFiles } from "./secrets.ts";
import { databaseFile } from "./store/sqlite/open.ts";

/** What a backup takes from a data directory, and how a restore makes one. */

const keyFiles: readonly string[] = [masterKeyFile, nextMasterKeyFile];

export interface SecretFile {
  readonly name: string;
  readonly contents: Uint8Array;
}

/**
 * The secrets that belong to a database as it was at some moment between two looks at them. The master key may have been
 * replaced in between; then the backup has both keys, as a data directory does, and a start finds out which one is the
 * database's.
 */
export function secretsBetween(before: readonly SecretFile[], after: readonly SecretFile[]): SecretFile[] {
  const contentsOf = (files: readonly SecretFile[], wanted: string) =>
    files.find(({ name }) => name === wanted)?.contents;
  const [key, later] = [contentsOf(before, masterKeyFile), contentsOf(after, masterKeyFile)];
  const isReplaced = key !== undefined && later !== undefined && Buffer.compare(key, later) !== 0;
  const next = contentsOf(after, nextMasterKeyFile) ?? (isReplaced ? later : undefined);
  const others = before.filter(({ name }) => name !== nextMasterKeyFile);
  return next === undefined ? others : [...others, { name: nextMasterKeyFile, contents: next }];
}

/**
 * The secrets that belong to the database of a folder.
 * @param isKeyElsewhere the folder's own master key, if there is one, belongs to something else
 * @throws StartupError when one of them cannot be read, or there is no master key
 */
export function secretsIn(folder: string, isKeyElsewhere: boolean): SecretFile[] {
  const path = resolve(folder);
  // Another user is told of the file that is always there.
  if (!isKeyElsewhere) isThere(join(path, masterKeyFile));
  // The next key comes first: when it takes the other one's place in the middle of this, it is read under its own name or that.
  const inOrder = [nextMasterKeyFile, ...secretFiles.filter((name) => name !== nextMasterKeyFile)];
  const wanted = inOrder.filter((name) => !(isKeyElsewhere && keyFiles.includes(name)));
  return wanted.flatMap((name) => {
    const text = readIfThere(join(path, name));
    if (text !== null) return [{ name, contents: Buffer.from(text) }];
    if (name !== masterKeyFile) return [];
    throw new StartupError(
      `There is no ${masterKeyFile} in ${path}, and no backup without it is of use. ` +
        "Try: name the server's folder with --data-dir, or POSTRIDER_MASTER_KEY_FILE if the key is kept elsewhere.",
    );
  });
}

/** What the server does with what it finds when it first starts on the folder. */
export interface FirstStart {
  /** Waits for `postrider resume`. */
  readonly held: readonly Pausable[];
  /** What is pending fails, and is not delivered. */
  readonly failsPending: boolean;
}

/** A data directory being created; its lock is held. */
export interface NewDataDir {
  readonly path: string;
  /** A folder inside it, empty. */
  readonly workshop: string;
  /**
   * Moves what is in the workshop into place, the database last: whatever happens, no database is there without its secrets,
   * and no server starts before it is.
   */
  finish(names: readonly string[], first: FirstStart): void;
  /** Leaves everything as it was, unless it has been finished. */
  release(): void;
}

/** @throws StartupError when a server uses the folder, or it is not empty */
export function enterEmptyDir(folder: string): NewDataDir {
  const path = resolve(folder);
  let made: string | undefined;
  try {
    made = mkdirSync(path, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw new StartupError(`The folder ${path} cannot be created (${messageOf(error)}). Try: another --data-dir.`);
  }
  const hadLock = existsSync(join(path, lockFile));
  const lock = takeLock(path);
  const workshop = join(path, restoringFolder);
  let isOwnWorkshop = false;
  let isFinished = false;
  function release(): void {
    // One that was found stays with what is around it: it is what keeps a server from starting there.
    if (isOwnWorkshop) rmSync(workshop, { recursive: true, force: true });
    lock.close();
    if (isFinished) return;
    if (!hadLock) rmSync(join(path, lockFile), { force: true });
    if (made !== undefined) removeEmpty(path);
  }
  try {
    // Leftovers of a restore that was killed belong to nobody: this one has the lock.
    const found = readdirSync(path).filter((name) => ![lockFile, restoringFolder, "lost+found"].includes(name));
    if (found.length > 0) {
      throw new StartupError(
        `${path} is not empty (${found.slice(0, 3).join(", ")}${found.length > 3 ? ", …" : ""}), and nothing is overwritten. ` +
          "Try: another --data-dir, or move away what is there.",
      );
    }
    isOwnWorkshop = true;
    rmSync(workshop, { recursive: true, force: true });
    mkdirSync(workshop, { mode: 0o700 });
    keepOwnerOfFolder(workshop, path);
  } catch (error) {
    release();
    throw error;
  }
  return {
    path,
    workshop,
    release,
    finish(names, { held, failsPending }) {
      writeHeld(path, held);
      if (failsPending) markPending(path, true);
      const inOrder = [...names.filter((name) => name !== databaseFile), databaseFile];
      for (const name of inOrder) {
        renameSync(join(workshop, name), join(path, name));
        syncFolder(path);
      }
      isFinished = true;
      syncFolder(dirname(path));
    },
  };
}

function removeEmpty(path: string): void {
  try {
    rmdirSync(path);
  } catch {
    // Somebody has put something there in the meantime.
  }
}
