import { randomBytes } from "node:crypto";
import { existsSync, lstatSync, mkdirSync, realpathSync, rmSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { StartupError } from "./domain/errors.ts";
import type { Pausable } from "./domain/pauses.ts";
import { type FolderLock, isLocked, lockFile, lockFolder } from "./folder-lock.ts";
import { failPendingFile, failsPending, heldFile, markPending, readHeld, writeHeld } from "./held-file.ts";
import type { Home, Whereabouts } from "./home.ts";
import { type Clock, sleep } from "./lib/clock.ts";
import { isDiskFull } from "./lib/disk-full.ts";
import { messageOf } from "./lib/error-message.ts";
import { networkNamespace } from "./lib/network-namespace.ts";
import { syncFolder } from "./lib/sync-folder.ts";
import { masterKeyFilesOf, parseMasterKey } from "./master-key-file.ts";
import {
  checkPrivate,
  closeFile,
  closeFolder,
  isThere,
  type LinkPolicy,
  readGiven,
  readPrivate,
  unreadable,
  writePrivate,
} from "./private-files.ts";
import {
  formerMasterKeyFile,
  nextMasterKeyFile,
  operatorTokenDigits,
  operatorTokenFile,
  operatorTokenFrom,
  masterKeyFile as ownMasterKeyFile,
  type Secrets,
  sessionSecretFile,
  sharedSecretsFrom,
} from "./secrets.ts";
import { readServerFile, serverFile } from "./server-file.ts";
import { movedTo } from "./store/sqlite/look.ts";
import { databaseFile } from "./store/sqlite/open.ts";
import { realPath } from "./store/sqlite/written-by.ts";

const nodeFile = "node.json";
const backupsFile = "backups.json";
const ownFiles: readonly string[] = [
  ownMasterKeyFile,
  nextMasterKeyFile,
  formerMasterKeyFile,
  sessionSecretFile,
  operatorTokenFile,
  lockFile,
  serverFile,
  nodeFile,
  heldFile,
  failPendingFile,
  backupsFile,
];
const replacedFiles: readonly string[] = [serverFile, nodeFile, heldFile, failPendingFile, backupsFile];
/** SQLite's log and the small file next to it. The database itself may be a link to another disk. */
const databaseFiles: readonly string[] = [databaseFile, `${databaseFile}-wal`, `${databaseFile}-shm`];

/** Where a restore puts together what it then moves into place, the database last. */
export const restoringFolder = "restoring";

/** Holds what a server keeps: its database, its secrets, which are generated on the first start, and what commands look for. */
export interface DataDir extends Home {
  readonly path: string;
  /** Those read at startup; readable only by this user. */
  readonly secrets: Secrets;
  /** Nobody knows the operator token yet: this start has generated it. */
  readonly isTokenNew: boolean;
  /** What a restore has asked to be held back. */
  readonly held: readonly Pausable[];
}

/** How long the next server waits for one that is shutting down: attempts in flight get 8 s. */
const endingPatienceMs = 15_000;
/** And for one that has not said that it is: it may have been asked to stop a moment ago. */
const surprisePatienceMs = 1_000;
const lookEveryMs = 100;

export interface EnterOptions {
  place?: SecretsPlace;
  clock: Clock;
  /** Stops waiting. */
  signal: AbortSignal;
  warn(message: string): void;
  /** The predecessor is shutting down, and we wait for it. */
  onWaiting(holder: Whereabouts): void;
}

/**
 * Like `openDataDir`, but waits for a server that is just shutting down.
 * @returns null when the signal came first
 */
export async function enterDataDir(
  folder: string,
  { place = inTheFolder, clock, signal, warn, onWaiting }: EnterOptions,
): Promise<DataDir | null> {
  const startedAt = clock.monotonicMs();
  let ending: Whereabouts | null = null;
  while (!signal.aborted) {
    try {
      return openDataDir(folder, warn, place);
    } catch (error) {
      if (!(error instanceof DataDirInUse)) throw error;
      if (ending === null && error.holder?.stopping) {
        ending = error.holder;
        onWaiting(ending);
      }
      const waitedMs = clock.monotonicMs() - startedAt;
      if (waitedMs >= (ending === null ? surprisePatienceMs : endingPatienceMs)) {
        throw new DataDirInUse(error.path, error.holder, ", or give this one its own POSTRIDER_DATA_DIR");
      }
    }
    await Promise.race([sleep(clock, lookEveryMs), aborted(signal)]);
  }
  return null;
}

const aborted = (signal: AbortSignal) =>
  new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));

/** A server is using the folder. */
class DataDirInUse extends StartupError {
  constructor(
    readonly path: string,
    readonly holder: Whereabouts | null,
    /** What else to try, as the end of a sentence. */
    alternative = "",
  ) {
    const who = holder ? ` (process ${holder.pid}, ${holder.url})` : "";
    const remedy = holder?.stopping ? "wait until it has stopped" : "stop it first";
    super(
      `A server is using the data directory ${path}${who}${holder?.stopping ? " and is shutting down" : ""}. ` +
        `Try: ${remedy}${alternative}.`,
    );
  }
}

/** Where the master key is, and what the other secrets are until they have their own files. */
export interface SecretsPlace {
  /** Null: in the folder. */
  readonly masterKeyFile: string | null;
  /** Other servers share the database and must share the secrets: those without a file are derived from the master key. */
  readonly isShared: boolean;
}

const inTheFolder: SecretsPlace = { masterKeyFile: null, isShared: false };

/**
 * Creates the folder if there is none, closes it to others, takes its lock and reads its secrets. They are generated on the
 * first start, and are on disk before there is a database.
 *
 * @param warn told what was open to others, and which secret was lost and regenerated
 * @throws StartupError when another server holds the folder, it cannot be written or belongs to another user, a restore was
 * cut off in it, or there is a database without its master key
 */
export function openDataDir(
  folder: string,
  warn: (message: string) => void = () => {},
  place: SecretsPlace = inTheFolder,
): DataDir {
  const path = resolve(folder);
  try {
    const made = mkdirSync(path, { recursive: true, mode: 0o700 });
    if (made !== undefined) syncFolder(dirname(made));
  } catch (error) {
    throw new StartupError(
      `The data directory ${path} cannot be created (${messageOf(error)}). Try: set POSTRIDER_DATA_DIR to a folder that this user can write to.`,
    );
  }
  closeToOthers(path, warn);
  const lock = takeLock(path);
  try {
    checkRestored(path);
    const isTokenNew = !existsSync(join(path, operatorTokenFile));
    const secrets = readSecrets(path, warn, place);
    return {
      path,
      secrets,
      isTokenNew,
      held: readHeld(path),
      announce(server, warn) {
        try {
          const whereabouts: Whereabouts = { ...server, network: networkNamespace() };
          writePrivate(path, serverFile, `${JSON.stringify(whereabouts)}\n`, false);
        } catch (error) {
          warn(`${join(path, serverFile)} cannot be written: ${messageOf(error)}`);
        }
      },
      rotateOperatorToken: () => writeOperatorToken(path),
      masterKeyFiles: masterKeyFilesOf(path, place.masterKeyFile, place.isShared),
      shareSecrets({ sessionSecret, operatorToken }) {
        writePrivate(path, sessionSecretFile, `${sessionSecret}\n`, true);
        writePrivate(path, operatorTokenFile, `${operatorToken}\n`, true);
      },
      movedTo: () => movedTo(path),
      lastNode: () => readNodeFile(path),
      noteNode(mark) {
        try {
          writePrivate(path, nodeFile, `${JSON.stringify({ mark, folder: identityOf(path) })}\n`, false);
        } catch (error) {
          warn(`${join(path, nodeFile)} cannot be written: ${messageOf(error)}`);
        }
      },
      resumed: (what) =>
        writeHeld(
          path,
          readHeld(path).filter((held) => held !== what),
        ),
      failsPending: () => failsPending(path),
      pendingFailed: () => markPending(path, false),
      readBackupNotes: () => readBackupNotesIn(path),
      noteBackups: (text) => noteBackupsIn(path, text),
      release() {
        rmSync(join(path, serverFile), { force: true });
        lock.close();
      },
    };
  } catch (error) {
    lock.close();
    throw error;
  }
}

/**
 * Whether a server has been started on the folder, or somebody has put its secrets there.
 * @throws StartupError when this user may not know
 */
export const masterKeyIsIn = (folder: string): boolean => isThere(join(resolve(folder), ownMasterKeyFile));

/**
 * The operator token of a folder, whether or not a server runs on it. Nothing is created or changed.
 * @throws StartupError when there is none, or others can read or choose it
 */
export function readOperatorTokenIn(folder: string, warn: (message: string) => void): string {
  const path = resolve(folder);
  const file = join(path, operatorTokenFile);
  try {
    checkPrivate(file, warn);
  } catch (error) {
    if (error instanceof StartupError) throw error;
    throw unreadable(file, error);
  }
  if (!isThere(file)) throw noOperatorToken(path);
  return readWhole(file, operatorTokenFile);
}

const noOperatorToken = (path: string) =>
  new StartupError(`There is no operator token in ${path}. Try: name the server's folder with --data-dir.`);

/**
 * Replaces the operator token of a folder on which no server runs.
 * @throws StartupError when there is none, when a server holds the folder, or when it cannot be written
 */
export function rotateOperatorTokenIn(folder: string): void {
  const path = resolve(folder);
  if (!isThere(join(path, operatorTokenFile))) throw noOperatorToken(path);
  const lock = takeLock(path);
  try {
    writeOperatorToken(path);
  } catch (error) {
    throw new StartupError(
      `${join(path, operatorTokenFile)} cannot be written (${messageOf(error)}). Try: ${remedyOf(error)}.`,
    );
  } finally {
    lock.close();
  }
}

function writeOperatorToken(folder: string): string {
  const token = newOperatorToken();
  writePrivate(folder, operatorTokenFile, `${token}\n`, true);
  return token;
}

const newOperatorToken = () => operatorTokenFrom(randomBytes(operatorTokenDigits / 2).toString("hex"));

/**
 * Ensures one server per folder. What a server that was killed has said about itself goes: it would pass for the new holder's.
 * @throws DataDirInUse, or StartupError with what to do
 */
export function takeLock(path: string): FolderLock {
  let lock: FolderLock | null = null;
  try {
    lock = lockFolder(path);
    rmSync(join(path, serverFile), { force: true });
    return lock;
  } catch (error) {
    lock?.close();
    if (isLocked(error)) throw new DataDirInUse(path, readServerFile(path));
    throw new StartupError(
      `The data directory ${path} cannot be used (${messageOf(error)}). Try: ${remedyOf(error)}, or set POSTRIDER_DATA_DIR.`,
    );
  }
}

/** Null also in a copy of the folder: the server that it was copied from may still be alive. */
function readNodeFile(path: string): string | null {
  try {
    const { mark, folder } = JSON.parse(readPrivate(join(path, nodeFile))) as { mark: string; folder: string };
    return folder === identityOf(path) ? mark : null;
  } catch {
    return null;
  }
}

function identityOf(path: string): string {
  const { dev, ino } = statSync(path);
  return `${dev}:${ino}`;
}

function closeToOthers(path: string, warn: (message: string) => void): void {
  const names = [...ownFiles, ...databaseFiles];
  closeFolder(path, (name) => names.some((own) => name.startsWith(own)), warn);
  for (const name of names) closeFile(join(path, name), linkPolicyOf(name), warn);
}

/**
 * What a start would close to others or refuse, one sentence each with what to do: the secrets first, of which the master key
 * matters most, and the folder last. Nothing is changed.
 */
export function findExposed(folder: string, masterKeyFile: string | null): string[] {
  const path = resolve(folder);
  const found: string[] = [];
  const look = (check: () => void) => {
    try {
      check();
    } catch (error) {
      found.push(messageOf(error));
    }
  };
  if (masterKeyFile !== null) look(() => givenMasterKey(masterKeyFile, () => {}));
  // The secrets are the first of our own files.
  for (const name of [...ownFiles, ...databaseFiles]) {
    const file = join(path, name);
    const policy = linkPolicyOf(name);
    const isLink = lstatSync(file, { throwIfNoEntry: false })?.isSymbolicLink() === true;
    if (isLink && policy === "replaced") continue;
    const followed = isLink && policy === "followed" && existsSync(file) ? realpathSync(file) : file;
    look(() => checkPrivate(followed, () => {}, remediesOfExposed[name] ?? "chmod 0600 it"));
  }
  look(() => checkPrivate(realpathSync(path), () => {}, "chmod 0700 it"));
  return found;
}

const masterKeyReplacement = "postrider rotate-key";

const remediesOfExposed: Readonly<Record<string, string>> = {
  [ownMasterKeyFile]: `chmod 0600 it, and ${masterKeyReplacement} where others may have read it`,
  [operatorTokenFile]: "chmod 0600 it, and postrider operator rotate-token where others may have read it",
};

/** What the server has noted about its backups; null when nothing was, or it cannot be read. */
export function readBackupNotesIn(folder: string): string | null {
  try {
    return readPrivate(join(resolve(folder), backupsFile));
  } catch {
    return null;
  }
}

/** For the server, or for a command while none runs. @throws the system's error when it cannot be written */
export const noteBackupsIn = (folder: string, text: string): void =>
  writePrivate(resolve(folder), backupsFile, `${text}\n`, false);

function linkPolicyOf(name: string): LinkPolicy {
  if (replacedFiles.includes(name)) return "replaced";
  return databaseFiles.includes(name) ? "followed" : "refused";
}

/**
 * Next to a database that is not in place yet, or not even begun, a start would make an empty one. A restore puts its database
 * in place last, so beside one the folder is merely left over.
 */
function checkRestored(path: string): void {
  if (!existsSync(join(path, restoringFolder)) || existsSync(join(path, databaseFile))) return;
  throw new StartupError(
    `A restore to ${path} was cut off, so what it restored is not in place. ` +
      "Try: postrider restore again, to another folder, or to this one once it is empty.",
  );
}

/** Only the master key cannot be replaced: no other opens what is in the database. */
function readSecrets(path: string, warn: (message: string) => void, place: SecretsPlace): Secrets {
  const { masterKeyFile, isShared } = place;
  const isStored = sizeOf(join(path, databaseFile)) > 0;
  if (isShared && isStored && movedTo(path) === null) {
    warn(
      `${join(path, databaseFile)} is not used, as POSTRIDER_DATABASE_URL names another database. What is in it stays there: ` +
        "to take it along, stop the server and run postrider move.",
    );
  }
  if (!isShared) checkDatabaseFiles(path, masterKeyFile, isStored, warn);
  const masterKey = masterKeyFile === null ? ownMasterKey(path) : givenMasterKey(masterKeyFile, warn);
  const shared = sharedSecretsFrom(masterKey);
  const readOrMake = (name: string, generate: () => string, lossMeans: string) => {
    if (isStored && !isShared && !existsSync(join(path, name)))
      warn(`${join(path, name)} was missing and has been regenerated: ${lossMeans}.`);
    return readSecret(path, name, generate);
  };
  return {
    masterKey,
    sessionSecret: readOrMake(
      sessionSecretFile,
      () => (isShared ? shared.sessionSecret : randomBytes(32).toString("hex")),
      "every session has ended, and everyone has to sign in again",
    ),
    operatorToken: readOrMake(
      operatorTokenFile,
      () => (isShared ? shared.operatorToken : newOperatorToken()),
      "everything that used the old one, such as a scraper of /metrics, needs the new one",
    ),
  };
}

/** Checks for missing parts of the folder's database that must not be recreated. */
function checkDatabaseFiles(
  path: string,
  masterKeyFile: string | null,
  isStored: boolean,
  warn: (message: string) => void,
): void {
  const wasStarted = existsSync(join(path, ownMasterKeyFile));
  if (isStored && !wasStarted && masterKeyFile === null) {
    throw new StartupError(
      `${join(path, ownMasterKeyFile)} is missing, and nothing else can decrypt the API keys and signing keys in ${databaseFile}; ` +
        "it was not regenerated. Try: restore it from a backup, where it is next to the database.",
    );
  }
  if (!isStored && sizeOf(`${realPath(join(path, databaseFile))}-wal`) > 0) {
    throw new StartupError(
      `${join(path, databaseFile)} is missing or empty, but its log ${databaseFile}-wal exists and would be deleted. ` +
        "Try: put the database back next to it, or restore both from a backup.",
    );
  }
  if (!isStored && wasStarted) {
    warn(
      `${join(path, databaseFile)} was not found, so a new, empty one is created. If there was one before, restore it from a backup.`,
    );
  }
}

/** The one in the folder; generated if there is none. */
function ownMasterKey(path: string): Buffer {
  const text = readSecret(path, ownMasterKeyFile, () => randomBytes(32).toString("hex"));
  return (
    parseMasterKey(text) ??
    refuse(
      `${join(path, ownMasterKeyFile)} is damaged: it must contain 64 hexadecimal digits. Try: restore it from a backup; without it, stored keys cannot be decrypted.`,
    )
  );
}

/** One elsewhere, put there by others: never generated. */
export function givenMasterKey(path: string, warn: (message: string) => void): Buffer {
  const name = "POSTRIDER_MASTER_KEY_FILE";
  return (
    parseMasterKey(readGiven({ name, path, isSecret: true, warn, replacement: masterKeyReplacement }).trim()) ??
    refuse(
      `${name} names a file that does not contain 64 hexadecimal digits: ${path}. Try: the master-key of the server that the database is from; a new key is the output of openssl rand -hex 32.`,
    )
  );
}

function refuse(message: string): never {
  throw new StartupError(message);
}

const sizeOf = (path: string): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0;

/** Reads a secret; generates it if there is none. */
function readSecret(folder: string, name: string, generate: () => string): string {
  const path = join(folder, name);
  try {
    // What is stored from then on is encrypted with it, so it must neither be half-written after a crash, nor be lost in
    // a power failure that the events survive.
    if (!existsSync(path)) writePrivate(folder, name, `${generate()}\n`, true);
  } catch (error) {
    throw new StartupError(`${path} cannot be written (${messageOf(error)}). Try: ${remedyOf(error)}.`);
  }
  return readWhole(path, name);
}

function readWhole(path: string, name: string): string {
  let secret: string;
  try {
    secret = readPrivate(path).trim();
  } catch (error) {
    throw new StartupError(`${path} cannot be read (${messageOf(error)}). Try: check its owner and permissions.`);
  }
  if (secret !== "" || name === ownMasterKeyFile) return secret;
  throw new StartupError(`${path} is empty. Try: restore it from a backup, or delete it to have a new one generated.`);
}

const remedyOf = (error: unknown) =>
  isDiskFull(error) ? "free up space on its disk" : "check the owner and permissions of its folder";
