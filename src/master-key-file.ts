import { randomBytes } from "node:crypto";
import { accessSync, existsSync, readFileSync, renameSync, rmSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { StartupError } from "./domain/errors.ts";
import type { MasterKeyFiles } from "./home.ts";
import { messageOf } from "./lib/error-message.ts";
import { syncFolder } from "./lib/sync-folder.ts";
import { closeFile, readGiven, readPrivate, writePrivate } from "./private-files.ts";
import { masterKeyFile as ownMasterKeyFile } from "./secrets.ts";
import { missingSnapshotKeys } from "./store/open.ts";

/**
 * The files of a rotation of the master key. The next key is on disk, next to the one in use, before anything is sealed with
 * it, and takes its place once it is the database's:
 *
 *   master-key ── next key written ─▶ master-key, master-key.next ── database sealed with it ─▶ renamed ─▶ master-key
 */
export interface KeyFiles {
  readonly current: string;
  readonly next: string;
  /** Where the previous one is kept, for what it alone opens and does not contain it. */
  formers(): readonly string[];
  /** Others put keys there, and may do so in their own way. */
  readonly isElsewhere: boolean;
}

/** @param isShared the database is in PostgreSQL, whose backups do not have the key */
export function keyFilesOf(dataDir: string, masterKeyFile: string | null, isShared = false): KeyFiles {
  const isElsewhere = masterKeyFile !== null;
  const current = isElsewhere ? resolve(masterKeyFile) : join(resolve(dataDir), ownMasterKeyFile);
  const isInBackups = !isElsewhere && !isShared;
  const formers = () => (isInBackups ? missingSnapshotKeys(dataDir) : [formerKeyFileOf(current)]);
  return { current, next: `${current}.next`, formers, isElsewhere };
}

export const formerKeyFileOf = (current: string): string => `${current}.before`;

export const parseMasterKey = (text: string): Buffer | null =>
  /^[0-9a-f]{64}$/i.test(text) ? Buffer.from(text, "hex") : null;

/** The key of a rotation that has begun; null: none has. @throws StartupError when the file is not a key of ours */
export function readNextKey({ next, isElsewhere }: KeyFiles, warn: (message: string) => void): Buffer | null {
  if (!existsSync(next)) return null;
  const key = parseMasterKey((isElsewhere ? readElsewhere(next, warn) : readOwn(next, warn)).trim());
  if (key !== null) return key;
  throw new StartupError(`${next} does not contain 64 hexadecimal digits. Try: remove it; nothing is sealed with it.`);
}

function readOwn(path: string, warn: (message: string) => void): string {
  closeFile(path, "refused", warn);
  return readPrivate(path);
}

/** Where others put keys it may be a link, as with the secrets of a container platform. */
const readElsewhere = (path: string, warn: (message: string) => void) =>
  readGiven({ name: "POSTRIDER_MASTER_KEY_FILE, with .next behind it,", path, isSecret: true, warn });

/** Like `readNextKey`, but generates one if there is none. @throws StartupError when it cannot be written */
export function makeNextKey(files: KeyFiles, warn: (message: string) => void): Buffer {
  const begun = readNextKey(files, warn);
  if (begun !== null) return begun;
  const key = randomBytes(32);
  try {
    writePrivate(dirname(files.next), basename(files.next), `${key.toString("hex")}\n`, true, files.current);
  } catch (error) {
    throw new StartupError(
      `${files.next} cannot be written (${messageOf(error)}). Try: write the new key into it yourself: openssl rand -hex 32`,
    );
  }
  return key;
}

/**
 * Replaces the key in use by the next one. Another server that shares the files may do so at the same moment.
 * @throws the system's error when that fails
 */
export function promoteNextKey({ current, next, formers }: KeyFiles): void {
  const former = readFileSync(current, "utf8");
  // As long as the next one is there, what was read before is the former one.
  accessSync(next);
  for (const file of formers()) writePrivate(dirname(file), basename(file), former, true, current);
  renameSync(next, current);
  syncFolder(dirname(current));
}

/**
 * Removes a next key that somebody has put in place by hand; where that is not possible, it does no harm. To promote it would keep
 * it as the former one, too, and so lose that.
 */
export function removePlacedKey({ next }: KeyFiles): void {
  try {
    rmSync(next, { force: true });
  } catch {
    // The folder is not ours to write in.
  }
}

/** The key in use, as the file has it at this moment; null: it cannot be read, or is not a key. */
function readCurrentKey({ current }: KeyFiles): Buffer | null {
  try {
    return parseMasterKey(readFileSync(current, "utf8").trim());
  } catch {
    return null;
  }
}

/** The same files, for a running server. */
export function masterKeyFilesOf(dataDir: string, masterKeyFile: string | null, isShared: boolean): MasterKeyFiles {
  const files = keyFilesOf(dataDir, masterKeyFile, isShared);
  const { current, next } = files;
  return {
    ...{ current, next },
    readCurrent: () => readCurrentKey(files),
    readNext: (warn) => readNextKey(files, warn),
    makeNext: (warn) => makeNextKey(files, warn),
    promote: () => promoteNextKey(files),
  };
}
