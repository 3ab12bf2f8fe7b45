import {
  accessSync,
  chmodSync,
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  lstatSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { StartupError } from "./domain/errors.ts";
import { codeOf, messageOf } from "./lib/error-message.ts";
import { keepOwner } from "./lib/keep-owner.ts";
import { syncFolder } from "./lib/sync-folder.ts";

/** Files that belong to this user alone, in a folder that does too. Windows has other means, which it takes care of itself. */
const hasOwners = process.platform !== "win32";

const forOthers = 0o077;
const everybodyMayAdd = 0o1000;

/**
 * Refuses a folder of another user or one for everybody (`/tmp`), and removes others' access to one of ours.
 *
 * @param isOurs tells the program's own file names from any other: a folder that others read because of what else is
 * in it is not closed to them
 */
export function closeFolder(path: string, isOurs: (name: string) => boolean, warn: (message: string) => void): void {
  if (!hasOwners) return;
  const found = statSync(path);
  judgeOwner(path, found, warn);
  if ((found.mode & forOthers) === 0) return;
  const names = readdirSync(path).filter((name) => name !== "lost+found");
  const isShared = (found.mode & everybodyMayAdd) !== 0 || (names.length > 0 && !names.some(isOurs));
  if (isShared) {
    throw new StartupError(
      `The data directory ${path} is accessible to other users (mode ${octal(found.mode)}) and contains other files. ` +
        "Try: set POSTRIDER_DATA_DIR to a dedicated folder; a subfolder of this one is created if it does not exist.",
    );
  }
  close(path, found, 0o700, warn);
}

/** What to do with a file that is a symbolic link; one that will be replaced is left as it is. */
export type LinkPolicy = "refused" | "followed" | "replaced";

/** Like `closeFolder`, for a file; a missing one is skipped. */
export function closeFile(path: string, links: LinkPolicy, warn: (message: string) => void): void {
  const itself = lstatSync(path, { throwIfNoEntry: false });
  if (!itself || !hasOwners) return;
  if (itself.isSymbolicLink() && links === "replaced") return;
  if (itself.isSymbolicLink() && links === "refused") throw notFollowed(path);
  const found = statSync(path, { throwIfNoEntry: false });
  if (!found) return;
  judgeOwner(path, found, warn);
  if ((found.mode & forOthers) !== 0) close(path, found, 0o600, warn);
}

/**
 * For a command: refuses a file or folder that the server would close or refuse, and leaves it as it is. A missing one passes.
 * @param remedy for one that others can read
 */
export function checkPrivate(
  path: string,
  warn: (message: string) => void,
  remedy = "chmod 0600 it, and postrider operator rotate-token where others may have read it",
): void {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (!found || !hasOwners) return;
  if (found.isSymbolicLink()) throw notFollowed(path);
  judgeOwner(path, found, warn, "run the command as that user");
  if ((found.mode & forOthers) === 0) return;
  throw new StartupError(`${path} is accessible to other users (mode ${octal(found.mode)}). Try: ${remedy}.`);
}

export interface GivenFile {
  /** The setting that names it. */
  name: string;
  path: string;
  /** Nobody else may read its contents. */
  isSecret: boolean;
  /** What to do where others may have read a secret. @default "replace the secret" */
  replacement?: string;
  warn(message: string): void;
}

/**
 * Reads a file that somebody else has put there for a setting, following links too: container platforms hand over secrets
 * that way. It is left as it is, so one that others can change, or one of ours that they can read, is refused. If we could not
 * change that (root's file, or one on a read-only file system), others being able to read it is worth a warning.
 *
 * @throws StartupError with what to do
 */
export function readGiven(given: GivenFile): string {
  const { name, path } = given;
  try {
    const file = openSync(path, O_RDONLY);
    try {
      const found = fstatSync(file);
      if (hasOwners && found.isFile()) judgeGiven(given, found);
      return readFileSync(file, "utf8");
    } finally {
      closeSync(file);
    }
  } catch (error) {
    if (error instanceof StartupError) throw error;
    throw new StartupError(
      `${name} names a file that cannot be read: ${path} (${messageOf(error)}). Try: check the path and its permissions.`,
    );
  }
}

/**
 * A file with a secret that others have put there, in whatever way suits them: whether everyone on this machine can read it.
 * @returns a sentence with what to do; null when not everyone can
 */
export function exposureOf(name: string, path: string): string | null {
  const mode = statSync(path, { throwIfNoEntry: false })?.mode ?? 0;
  if (!hasOwners || (mode & readByAll) === 0) return null;
  return (
    `${name} names a file that every user can read: ${path} (mode ${octal(mode)}). ` +
    "Try: chmod 0600 it, or 0640 with the server's group, and replace the key where others may have read it."
  );
}

function judgeGiven({ name, path, isSecret, replacement = "replace the secret", warn }: GivenFile, found: Stats): void {
  const { uid, mode } = found;
  const subject = `${name} names a file that`;
  const isRoots = uid === 0 && process.getuid?.() !== 0;
  if (!isRoots) judgeOwner(path, found, warn, "run the program as that user, or take ownership with chown");
  const where = `${path} (mode ${octal(mode)})`;
  if ((mode & (isRoots ? changedByAll : changedByOthers)) !== 0 && !isReadOnly(path)) {
    throw new StartupError(`${subject} other users can change: ${where}. Try: chmod 0600 it.`);
  }
  if (!isSecret || (mode & (isRoots ? readByAll : forOthers)) === 0) return;
  const words = `${subject} is accessible to other users: ${where}`;
  if (uid === process.getuid?.() && !isReadOnly(path)) {
    throw new StartupError(`${words}. Try: chmod 0600 it, and ${replacement} where others may have read it.`);
  }
  warn(`${words}. Try: mode 0400 where it is mounted.`);
}

const changedByOthers = 0o022;
/** Root may share a file with a group: the server's. */
const changedByAll = 0o002;
const readByAll = 0o004;

/** Whether its file system is read-only, whatever the mode says. */
function isReadOnly(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EROFS";
  }
}

const notFollowed = (path: string) =>
  new StartupError(
    `${path} is a symbolic link, which is not followed: whoever can change it could choose what is read or written. ` +
      "Try: replace it with the file itself.",
  );

const remedyOfServer =
  "run the server as that user, take ownership with chown -R, or set POSTRIDER_DATA_DIR to another folder";

/**
 * Root may serve the folder of another user, as containers do with a volume of their host. Anyone else would be at the
 * mercy of its owner.
 */
function judgeOwner(path: string, { uid }: Stats, warn: (message: string) => void, remedy = remedyOfServer): void {
  const own = process.getuid?.();
  if (own === undefined || uid === own) return;
  if (own !== 0) {
    throw new StartupError(`${path} belongs to another user (uid ${uid}, this is ${own}). Try: ${remedy}.`);
  }
  warn(`${path} belongs to another user (uid ${uid}), who can read and replace its contents.`);
}

function close(path: string, { mode }: Stats, closed: number, warn: (message: string) => void): void {
  let reason = "the file system does not support file modes";
  try {
    chmodSync(path, closed);
  } catch (error) {
    reason = messageOf(error);
  }
  if ((statSync(path).mode & forOthers) !== 0) {
    throw new StartupError(
      `${path} is accessible to other users (mode ${octal(mode)}) and cannot be restricted (${reason}). ` +
        `Try: chmod ${octal(closed)} it, or set POSTRIDER_DATA_DIR to a folder on a file system that supports file modes.`,
    );
  }
  warn(`${path} was accessible to other users (mode ${octal(mode)}); access is now restricted (${octal(closed)}).`);
}

const octal = (mode: number) => (mode & 0o7777).toString(8).padStart(4, "0");

/** Windows has no such flags. */
const { O_NOFOLLOW = 0, O_RDONLY, O_WRONLY, O_CREAT, O_EXCL } = constants;

/** Reads a file as text, but not through a link. */
export function readPrivate(path: string): string {
  const file = openSync(path, O_RDONLY | O_NOFOLLOW);
  try {
    return readFileSync(file, "utf8");
  } finally {
    closeSync(file);
  }
}

/** Like `readPrivate`, for a command. @returns null when there is no such file @throws StartupError when it cannot be read */
export function readIfThere(path: string): string | null {
  try {
    return readPrivate(path);
  } catch (error) {
    if (isAbsent(error)) return null;
    throw unreadable(path, error);
  }
}

/** Whether there is such a file or folder. @throws StartupError when this user may not know */
export function isThere(path: string): boolean {
  try {
    statSync(path);
    return true;
  } catch (error) {
    if (isAbsent(error)) return false;
    throw unreadable(path, error);
  }
}

const isAbsent = (error: unknown) => ["ENOENT", "ENOTDIR"].includes(codeOf(error));

export const unreadable = (path: string, error: unknown) =>
  new StartupError(
    `${path} cannot be read (${messageOf(error)}). Try: run the command as the user that runs the server.`,
  );

/**
 * Writes a file that gets its name only once it is complete, and replaces a link of that name instead of following it.
 * @param durably it is on disk, with its name, when this returns
 * @param like the file or folder whose owner it gets when this is root; by default the one that it replaces
 */
export function writePrivate(
  folder: string,
  name: string,
  text: string,
  durably: boolean,
  like: string = join(folder, name),
): void {
  const unfinished = join(folder, `${name}.new`);
  rmSync(unfinished, { force: true });
  try {
    const file = openSync(unfinished, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
    try {
      keepOwner(file, like);
      writeFileSync(file, text);
      if (durably) fsyncSync(file);
    } finally {
      closeSync(file);
    }
    renameSync(unfinished, join(folder, name));
  } catch (error) {
    rmSync(unfinished, { force: true });
    throw error;
  }
  if (durably) syncFolder(folder);
}
