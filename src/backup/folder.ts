import { closeSync, createReadStream, lstatSync, openSync, readdirSync, readSync, statSync } from "node:fs";
import { mkdir, open, rename, rm } from "node:fs/promises";
import { basename, dirname, extname, join, resolve } from "node:path";
import { StartupError } from "../domain/errors.ts";
import { isDiskFull } from "../lib/disk-full.ts";
import { codeOf, messageOf } from "../lib/error-message.ts";
import { syncFolder } from "../lib/sync-folder.ts";
import { isCompressed } from "./compression.ts";
import { isEncrypted } from "./encryption.ts";
import { removeStale, unfinishedFile, unfinishedFiles } from "./leftovers.ts";
import { type Location, newestFirst, type Place, type StoredBackup, timeInName } from "./place.ts";
import { checkRoom } from "./room.ts";

/** How much is written between syncs: syncing gigabytes in one go would hold up the server's own syncs. */
const syncEveryBytes = 16 * 2 ** 20;
const readBytes = 2 ** 18;
/** Enough to know a backup by. */
const startBytes = 64;
/** A backup that was given a name of its own, or has one by its time. */
const archive = /^[^.].*\.tar\.zst(?:\.age)?$/;

/** A folder to write in, and how much of its disk must stay free. */
export interface Staging {
  readonly folder: string;
  readonly leaveFreeBytes: number;
}

/**
 * A folder on this machine, or a file in one. A path that does not exist yet is taken for a file if its name has an extension:
 * a file at `/var/backups/postrider` would be in the way of every later backup to that folder.
 */
export function locateFolder(path: string, leaveFreeBytes: number): Location {
  const isFolder = path.endsWith("/") || isFolderByName(path);
  return isFolder
    ? { place: createFolder({ folder: resolve(path), leaveFreeBytes }), name: null }
    : { place: createFolder({ folder: dirname(resolve(path)), leaveFreeBytes }), name: basename(path) };
}

function isFolderByName(path: string): boolean {
  const found = statSync(path, { throwIfNoEntry: false });
  return found ? found.isDirectory() : extname(path) === "";
}

function createFolder({ folder, leaveFreeBytes }: Staging): Place {
  return {
    name: folder,
    folder,

    async put(name, source) {
      const path = join(folder, name);
      checkReplaceable(path);
      const staged = await stage({ folder, leaveFreeBytes, name }, source);
      try {
        await rename(staged.path, path);
        syncFolder(folder);
        return staged.bytes;
      } catch (error) {
        await staged.remove();
        throw unwritable(path, error);
      }
    },

    async list(now) {
      const found = listFolder(folder).flatMap((name): StoredBackup[] => {
        const createdAt = timeInName(name);
        const bytes = statSync(join(folder, name), { throwIfNoEntry: false })?.size;
        return createdAt === null || bytes === undefined ? [] : [{ name, bytes, createdAt }];
      });
      return newestFirst(found, now);
    },

    read: (name) => readFile(join(folder, name)),
    remove: (name) => rm(join(folder, name), { force: true }),
  };
}

/** The archives in a folder, whatever they are called. */
export const archivesIn = (folder: string): string[] => listFolder(folder).filter((name) => archive.test(name));

/** @throws StartupError when something else is there, such as the database, a device or a link */
function checkReplaceable(path: string): void {
  let isReplaceable: boolean;
  try {
    const found = lstatSync(path, { throwIfNoEntry: false });
    isReplaceable = found === undefined || (found.isFile() && (found.size === 0 || isBackup(path)));
  } catch (error) {
    throw unwritable(path, error);
  }
  if (isReplaceable) return;
  throw new StartupError(`${path} is not a backup, and only a backup is replaced. Try: another name, or a folder.`);
}

function isBackup(path: string): boolean {
  const start = new Uint8Array(startBytes);
  const file = openSync(path, "r");
  try {
    readSync(file, start);
  } finally {
    closeSync(file);
  }
  return isCompressed(start) || isEncrypted(start);
}

/**
 * Writes a file durably under a temporary name, which the caller then renames or removes.
 * @throws StartupError when it cannot be written; then nothing is left of it
 */
export async function stage(
  { folder, leaveFreeBytes, name }: Staging & { name: string },
  source: AsyncIterable<Uint8Array>,
): Promise<{ path: string; bytes: number; remove(): Promise<void> }> {
  const path = join(folder, unfinishedFile(name));
  // The reason for the failure matters more than an error about having nothing to remove.
  const remove = () => rm(path, { force: true }).catch(() => {});
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const bytes = await writeDurably(path, source, () => checkRoom(folder, 0, leaveFreeBytes));
    await removeStale(folder, path, unfinishedFiles);
    return { path, bytes, remove };
  } catch (error) {
    await remove();
    throw unwritable(join(folder, name), error);
  }
}

function unwritable(path: string, error: unknown): unknown {
  if (error instanceof StartupError || !isOfSystem(error)) return error;
  const remedy = isDiskFull(error) ? "free up space on its disk" : "check its folder and permissions";
  return new StartupError(`The backup ${path} cannot be written (${messageOf(error)}). Try: ${remedy}.`);
}

const isOfSystem = (error: unknown): boolean => error instanceof Error && "code" in error;

function listFolder(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if (codeOf(error) === "ENOENT") return [];
    throw new StartupError(`The folder ${folder} cannot be read (${messageOf(error)}). Try: check its permissions.`);
  }
}

async function* readFile(path: string): AsyncGenerator<Uint8Array> {
  try {
    yield* createReadStream(path, { highWaterMark: readBytes });
  } catch (error) {
    if (!isOfSystem(error)) throw error;
    throw new StartupError(`${path} cannot be read (${messageOf(error)}). Try: check its name and permissions.`);
  }
}

async function writeDurably(path: string, source: AsyncIterable<Uint8Array>, check: () => void): Promise<number> {
  const file = await open(path, "wx", 0o600);
  let bytes = 0;
  let unsynced = 0;
  try {
    for await (const chunk of source) {
      await file.writeFile(chunk);
      bytes += chunk.length;
      unsynced += chunk.length;
      if (unsynced < syncEveryBytes) continue;
      unsynced = 0;
      await file.datasync();
      check();
    }
    await file.sync();
  } finally {
    await file.close();
  }
  return bytes;
}
