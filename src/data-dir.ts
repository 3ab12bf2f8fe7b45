import { Database } from "bun:sqlite";
import { createHmac, randomBytes } from "node:crypto";
import {
  chmodSync,
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join, resolve } from "node:path";
import { StartupError } from "./errors.ts";
import { isDiskFull } from "./lib/disk-full.ts";

/** What the program keeps beside its database: generated on the first start, readable by its user only. */
export interface Secrets {
  /** Encrypts what must be shown again: API keys, signing keys and secrets. 32 bytes. */
  readonly masterKey: Uint8Array;
  /** Signs session tokens. */
  readonly sessionSecret: string;
  /** What `postrider tenant …` and `/metrics` in public mode authenticate with. */
  readonly operatorToken: string;
}

/** Where the running server can be found, for commands on the same machine. */
export interface ServerFile {
  readonly pid: number;
  readonly url: string;
}

const masterKeyFile = "master-key";
const sessionSecretFile = "session-secret";
export const operatorTokenFile = "operator-token";
const lockFile = "lock.db";
const serverFile = "server.json";

export interface DataDir {
  readonly path: string;
  readonly secrets: Secrets;
  /** Says to others where this server listens. Only commands on this machine miss it when it cannot be written. */
  announce(server: ServerFile, warn: (message: string) => void): void;
  /**
   * Replaces the operator token, on disk first, and returns the new one. `secrets` keeps the one of the start.
   * @throws the system's error when it cannot be written; then the old one holds
   */
  rotateOperatorToken(): string;
  /** Lets the next server in. */
  release(): void;
}

/** A secret for one purpose, which nobody who has another one can work out; the same for as long as the master key is. */
export const deriveSecret = ({ secrets }: Pick<DataDir, "secrets">, purpose: string): Buffer =>
  createHmac("sha256", secrets.masterKey).update(purpose).digest();

/**
 * Makes the folder if there is none, takes its lock and reads its secrets, generating them on the first start.
 * @throws StartupError when another server holds it or it cannot be written
 */
export function openDataDir(folder: string): DataDir {
  const path = resolve(folder);
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw new StartupError(
      `The data directory ${path} cannot be made (${describe(error)}). Try: set POSTRIDER_DATA_DIR to a folder that this user may write.`,
    );
  }
  const lock = takeLock(path);
  try {
    const secrets: Secrets = {
      masterKey: Buffer.from(
        readSecret(path, masterKeyFile, () => randomBytes(32).toString("hex")),
        "hex",
      ),
      sessionSecret: readSecret(path, sessionSecretFile, () => randomBytes(32).toString("hex")),
      operatorToken: readSecret(path, operatorTokenFile, newOperatorToken),
    };
    if (secrets.masterKey.length !== 32) {
      throw new StartupError(
        `${join(path, masterKeyFile)} is damaged: it must hold 64 hexadecimal digits. Try: restore it from a backup; without it stored keys cannot be read.`,
      );
    }
    return {
      path,
      secrets,
      announce(server, warn) {
        try {
          writeFileSync(join(path, serverFile), `${JSON.stringify(server)}\n`, { mode: 0o600 });
        } catch (error) {
          warn(`${join(path, serverFile)} cannot be written: ${describe(error)}`);
        }
      },
      rotateOperatorToken: () => writeOperatorToken(path),
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
 * Replaces the operator token of a folder on which no server runs.
 * @throws StartupError when there is none, when a server holds the folder, or when it cannot be written
 */
export function rotateOperatorTokenIn(folder: string): void {
  const path = resolve(folder);
  if (!existsSync(join(path, operatorTokenFile))) {
    throw new StartupError(`There is no operator token in ${path}. Try: name the server's folder with --data-dir.`);
  }
  const lock = takeLock(path);
  try {
    writeOperatorToken(path);
  } catch (error) {
    throw new StartupError(
      `${join(path, operatorTokenFile)} cannot be written (${describe(error)}). Try: ${remedyOf(error)}.`,
    );
  } finally {
    lock.close();
  }
}

function writeOperatorToken(folder: string): string {
  const token = newOperatorToken();
  writeDurably(folder, operatorTokenFile, `${token}\n`);
  return token;
}

const newOperatorToken = () => `svc_op_${randomBytes(24).toString("hex")}`;

/**
 * One server for a folder. An exclusive transaction on a database of its own is a lock of the operating system: it goes
 * with the process, also by `kill -9`.
 */
function takeLock(path: string): Database {
  let lock: Database | null = null;
  try {
    lock = new Database(join(path, lockFile), { create: true });
    chmodSync(join(path, lockFile), 0o600);
    lock.run("pragma busy_timeout = 0");
    // Nothing is ever written to it, and a journal beside it would not fit on a full disk.
    lock.run("pragma journal_mode = memory");
    lock.run("begin exclusive");
    return lock;
  } catch (error) {
    lock?.close();
    const code = error instanceof Error && "code" in error ? String(error.code) : "";
    if (!code.startsWith("SQLITE_BUSY")) {
      throw new StartupError(
        `The data directory ${path} cannot be used (${describe(error)}). Try: ${remedyOf(error)}, or set POSTRIDER_DATA_DIR.`,
      );
    }
    const holder = readServerFile(path);
    throw new StartupError(
      `Another server uses the data directory ${path}${holder ? ` (process ${holder.pid}, ${holder.url})` : ""}. ` +
        "Try: stop it first, or give this one its own POSTRIDER_DATA_DIR.",
    );
  }
}

/** What the server that runs on this folder said of itself; null when there is none. */
export function readServerFile(folder: string): ServerFile | null {
  try {
    return JSON.parse(readFileSync(join(resolve(folder), serverFile), "utf8")) as ServerFile;
  } catch {
    return null;
  }
}

/** Reads a secret; makes it if there is none. */
function readSecret(folder: string, name: string, generate: () => string): string {
  const path = join(folder, name);
  try {
    if (!existsSync(path)) writeDurably(folder, name, `${generate()}\n`);
  } catch (error) {
    throw new StartupError(`${path} cannot be written (${describe(error)}). Try: ${remedyOf(error)}.`);
  }
  if (process.platform !== "win32" && (statSync(path).mode & 0o077) !== 0) chmodSync(path, 0o600);
  const secret = readFileSync(path, "utf8").trim();
  if (secret !== "" || name === masterKeyFile) return secret;
  throw new StartupError(`${path} is empty. Try: restore it from a backup, or remove it to have a new one made.`);
}

/**
 * Writes a file that has its name only when its bytes are on disk. What is stored from then on is encrypted with it, so it
 * must neither be half a secret after a crash, nor be gone with the power while the events are not.
 */
function writeDurably(folder: string, name: string, text: string): void {
  const path = join(folder, name);
  const unfinished = `${path}.new`;
  const file = openSync(unfinished, "w", 0o600);
  try {
    writeFileSync(file, text);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  renameSync(unfinished, path);
  syncFolder(folder);
}

/** Makes the names in a folder durable; Windows does it by itself and cannot open one. */
function syncFolder(folder: string): void {
  if (process.platform === "win32") return;
  const handle = openSync(folder, "r");
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

const remedyOf = (error: unknown) =>
  isDiskFull(error) ? "make room on its disk" : "check the owner and permissions of its folder";

const describe = (error: unknown) => (error instanceof Error ? error.message : String(error));
