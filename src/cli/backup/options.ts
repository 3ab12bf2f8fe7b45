import { readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseIdentities } from "../../backup/encryption.ts";
import { archivesIn } from "../../backup/folder.ts";
import { locate, type Surroundings } from "../../backup/locate.ts";
import type { Manifest } from "../../backup/manifest.ts";
import { asFolder, type Location, type Place, type StoredBackup } from "../../backup/place.ts";
import { isBucketUrl, readS3Access, type S3Access } from "../../backup-settings.ts";
import { readValues, type SettingValues } from "../../config.ts";
import { StartupError } from "../../domain/errors.ts";
import { systemClock as clock } from "../../lib/clock.ts";
import { messageOf } from "../../lib/error-message.ts";
import { formerKeyFileOf, parseMasterKey } from "../../master-key-file.ts";
import type { Flag } from "../arguments.ts";
import { count, counted } from "../count.ts";
import type { EndSignal, Io } from "../io.ts";

export const identityFlag: Flag = {
  name: "--identity",
  value: "FILE",
  doc: "age identity file, for a backup that is encrypted.",
};

export const dirFlag: Flag = {
  name: "--dir",
  value: "DIR",
  doc: "Where to make the temporary folder (default: the system's temporary directory).",
};

export const temporaryFolder = (flags: ReadonlyMap<string, string>): string => flags.get(dirFlag.name) ?? tmpdir();

export function readIdentities(flags: ReadonlyMap<string, string>): string[] {
  const file = flags.get(identityFlag.name);
  if (file === undefined) return [];
  try {
    return parseIdentities(readFileSync(file, "utf8"), file);
  } catch (error) {
    if (error instanceof StartupError) throw error;
    throw new StartupError(`${file} cannot be read (${messageOf(error)}). Try: check its name and permissions.`);
  }
}

/** What commands for backups go by: a server's settings, apart from how they fit together. */
export type BackupConfig = SettingValues & { readonly s3: S3Access | null };

export const readBackupConfig = (env: Io["env"], flags: ReadonlyMap<string, string>): BackupConfig => ({
  ...readValues(env, flags),
  s3: readS3Access(env),
});

/** Where backups go, and are looked for, when no place is given. */
export const usualPlace = ({ backupUrl }: Pick<BackupConfig, "backupUrl">): string => asFolder(backupUrl ?? ".");

/** Whether a command's `TO` means the folder or prefix in which the server makes its own, whichever way it is written. */
export function isUsualPlace(
  to: string,
  { place, name }: Location,
  config: Pick<BackupConfig, "backupUrl">,
  surroundings: Surroundings,
): boolean {
  const { backupUrl } = config;
  // A bucket can be no folder, and what opens the server's may not be in this command's environment.
  if (backupUrl === null || name !== null || isBucketUrl(to) !== isBucketUrl(backupUrl)) return false;
  return locate(usualPlace(config), surroundings).place.name === place.name;
}

/** The master key kept elsewhere, and one that is to take its place; none: the key is in the backup, if anywhere. */
export function readMasterKeysElsewhere({ masterKeyFile }: Pick<BackupConfig, "masterKeyFile">): Uint8Array[] {
  if (masterKeyFile === null) return [];
  const [key, next] = [masterKeyFile, `${masterKeyFile}.next`].map(readKey);
  if (key) return next ? [key, next] : [key];
  throw new StartupError(
    `POSTRIDER_MASTER_KEY_FILE names a file without a master key: ${masterKeyFile}. Try: check the path and its permissions.`,
  );
}

/** The key from before its last rotation, which earlier backups need; null: there is none. */
export function readFormerKeyElsewhere({ masterKeyFile }: Pick<BackupConfig, "masterKeyFile">) {
  if (masterKeyFile === null) return null;
  const file = formerKeyFileOf(masterKeyFile);
  const key = readKey(file);
  return key && { file, key };
}

function readKey(path: string): Uint8Array | null {
  try {
    return parseMasterKey(readFileSync(path, "utf8").trim());
  } catch {
    return null;
  }
}

export interface FoundBackup {
  readonly place: Place;
  readonly name: string;
  /** For people. */
  readonly from: string;
  /** What to try if it is not whole. */
  readonly instead: string;
}

/** An existing backup: the named one, or the newest of its place. @throws StartupError when there is none */
export async function findBackup(from: string, config: BackupConfig): Promise<FoundBackup> {
  const { place, name }: Location = locate(from, {
    s3: config.s3,
    staging: config.dataDir,
    leaveFreeBytes: config.minFreeDiskBytes,
  });
  if (name !== null) return { place, name, from, instead: "another backup" };
  const [newest, earlier] = await place.list(clock.now());
  if (newest === undefined) throw noneIn(place);
  const path = (backup: StoredBackup) => `${place.name.replace(/\/$/, "")}/${backup.name}`;
  return {
    ...{ place, name: newest.name, from: path(newest) },
    instead: earlier ? `the one before it, ${path(earlier)}` : "another backup",
  };
}

/** One that was given a name of its own is not looked for: its name does not tell which is the newest. */
function noneIn({ name, folder }: Place): StartupError {
  const [named] = folder === null ? [] : archivesIn(folder);
  if (folder === null || named === undefined) {
    return new StartupError(`There is no backup in ${name}. Try: the folder that postrider backup was given.`);
  }
  return new StartupError(
    `No backup in ${name} is named by its time, but ${named} is there. Try: give its name, ${join(folder, named)}`,
  );
}

/** Aborts on the first signal, and remembers which one it was. */
export function interruptible(io: Io): { signal: AbortSignal; given(): EndSignal } {
  const ended = new AbortController();
  let signal: EndSignal = "SIGTERM";
  void io.nextSignal().then((which) => {
    signal = which;
    ended.abort();
  });
  return { signal: ended.signal, given: () => signal };
}

/** `12 events of 3 accounts` */
export const contentsOf = ({ books }: Manifest): string =>
  `${counted(books.events, "event")} of ${counted(books.accounts, "account")}`;

/** `40 deliveries pending` */
export const pendingIn = ({ books }: Manifest): string =>
  books.pending === 1 ? "1 delivery pending" : `${count(books.pending)} deliveries pending`;
