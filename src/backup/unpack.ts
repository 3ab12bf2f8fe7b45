import { createHash } from "node:crypto";
import { closeSync, fdatasyncSync, fsyncSync, mkdirSync, openSync, readFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { StartupError } from "../domain/errors.ts";
import { isDiskFull } from "../lib/disk-full.ts";
import { messageOf } from "../lib/error-message.ts";
import { keepOwner } from "../lib/keep-owner.ts";
import { eachUntilAborted } from "../lib/until-aborted.ts";
import { masterKeyFile, nextMasterKeyFile, secretFiles } from "../secrets.ts";
import { type CopyCheck, checkCopy } from "../store/backup/check.ts";
import { databaseEntry } from "./archive.ts";
import { decompress } from "./compression.ts";
import { decrypt, isEncrypted } from "./encryption.ts";
import { type Manifest, manifestFile, parseManifest, sumsFile } from "./manifest.ts";
import type { Rest } from "./rest.ts";
import { checkRoom } from "./room.ts";
import { readTar, type TarTaker } from "./tar.ts";

/** Every other file a backup may contain is small. */
const mostSmallBytes = 2 ** 20;
/** How much is written between syncs; a commit by a server on the same disk waits for a sync to finish. */
const muchBytes = 16 * 2 ** 20;
const littleBytes = 2 * 2 ** 20;
const collectEveryBytes = 16 * 2 ** 20;

export interface UnpackOptions {
  source: AsyncIterable<Uint8Array>;
  /** For people. */
  from: string;
  /** Is created, and receives the files. */
  folder: string;
  /** Age identities, for a backup that is encrypted. */
  identities: readonly string[];
  /** One of these opens the database when its key is kept elsewhere; none: the key is not known here. */
  masterKeys: readonly Uint8Array[];
  /** How much must stay free on the folder's disk. */
  leaveFreeBytes: number;
  /** What to try instead if the backup is not whole. @default "another backup" */
  instead?: string;
  signal: AbortSignal;
  /** Yields to other work, including on the same disk. @default none: runs as fast as it can */
  rest?: Rest;
  onProgress?(progress: { done: number; total: number }): void;
}

export interface Unpacked extends CopyCheck {
  readonly manifest: Manifest;
  /** Names of the secrets in the backup. */
  readonly secrets: readonly string[];
}

/**
 * Restores a backup into a folder and checks it there: its checksums, its database, its books.
 * @throws StartupError when it is not a backup, cannot be read, is cut short, or does not match its checksums
 */
export async function unpack(options: UnpackOptions): Promise<Unpacked> {
  const { from, folder, identities, instead = "another backup", signal, rest, onProgress } = options;
  const source = eachUntilAborted(signal, options.source);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const files = createFiles(folder, {
    leaveFreeBytes: options.leaveFreeBytes,
    syncEveryBytes: rest ? littleBytes : muchBytes,
    onDatabase: (done, total) => onProgress?.({ done, total }),
  });
  try {
    await readTar(interruptible(decompress(await opened(source, from, identities)), signal, rest), files);
    const { manifest, secrets } = files.finish();
    const inBackup = [masterKeyFile, nextMasterKeyFile].filter((name) => secrets.includes(name));
    const masterKeys = inBackup.length > 0 ? inBackup.map((name) => readMasterKey(folder, name)) : options.masterKeys;
    return {
      ...checkCopy(folder, { books: manifest.books, schema: manifest.schema, masterKeys }),
      manifest,
      secrets,
    };
  } catch (error) {
    if (error instanceof StartupError || signal.aborted) throw error;
    if (isDiskFull(error)) {
      throw new StartupError(`${from} needs more room than there is in ${folder}. Try: another folder or disk.`);
    }
    throw new StartupError(`${from} is not a complete backup: ${messageOf(error)}. Try: ${instead}.`);
  } finally {
    files.close();
  }
}

async function opened(
  source: AsyncIterable<Uint8Array>,
  from: string,
  identities: readonly string[],
): Promise<AsyncIterable<Uint8Array>> {
  const chunks = source[Symbol.asyncIterator]();
  const first = await chunks.next();
  const start = first.done ? new Uint8Array() : first.value;
  const whole = prepend(start, chunks);
  if (!isEncrypted(start)) return whole;
  if (identities.length > 0) return decrypt(whole, identities);
  throw new StartupError(`${from} is encrypted. Try: --identity FILE, the age identity file of its recipient.`);
}

async function* prepend(first: Uint8Array, rest: AsyncIterator<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield first;
  try {
    for (let next = await rest.next(); !next.done; next = await rest.next()) yield next.value;
  } finally {
    await rest.return?.();
  }
}

async function* interruptible(
  source: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
  rest: Rest | undefined,
): AsyncGenerator<Uint8Array> {
  for await (const chunk of source) {
    signal.throwIfAborted();
    yield chunk;
    await rest?.();
  }
}

function readMasterKey(folder: string, name: string): Uint8Array {
  const text = readFileSync(join(folder, name), "utf8").trim();
  if (!/^[0-9a-f]{64}$/i.test(text)) throw new Error("its master key is damaged");
  return Buffer.from(text, "hex");
}

/** Writes entries as files and keeps track of their checksums. */
function createFiles(
  folder: string,
  {
    leaveFreeBytes,
    syncEveryBytes,
    onDatabase,
  }: { leaveFreeBytes: number; syncEveryBytes: number; onDatabase(done: number, total: number): void },
) {
  const sums = new Map<string, string>();
  let file: number | null = null;
  let name = "";
  let total = 0;
  let done = 0;
  let hash = createHash("sha256");

  const taker: TarTaker = {
    begin(entry, bytes) {
      const isKnown = [manifestFile, databaseEntry, sumsFile, ...secretFiles].includes(entry);
      if (!isKnown || sums.has(entry)) throw new Error(`"${entry}" does not belong in one`);
      if (entry === databaseEntry) checkRoom(folder, bytes, leaveFreeBytes);
      else if (bytes > mostSmallBytes) throw new Error(`${entry} is too large`);
      name = entry;
      total = bytes;
      done = 0;
      hash = createHash("sha256");
      file = openSync(join(folder, entry), "wx", 0o600);
      keepOwner(file, folder);
    },
    take(chunk) {
      if (file === null) return;
      hash.update(chunk);
      for (let at = 0; at < chunk.length; ) at += writeSync(file, chunk, at);
      const before = done;
      done += chunk.length;
      const hasPassed = (bytes: number) => Math.floor(before / bytes) < Math.floor(done / bytes);
      if (hasPassed(syncEveryBytes)) fdatasyncSync(file);
      // The garbage collector does not see how much memory the chunks hold behind their small objects.
      if (hasPassed(collectEveryBytes)) Bun.gc(true);
      if (name === databaseEntry) onDatabase(done, total);
    },
    end() {
      if (file === null) return;
      sums.set(name, hash.digest("hex"));
      fsyncSync(file);
      close();
    },
  };

  function close(): void {
    if (file !== null) closeSync(file);
    file = null;
  }

  return {
    ...taker,
    close,
    /** @throws Error when something is missing or does not match its checksum */
    finish(): { manifest: Manifest; secrets: string[] } {
      for (const needed of [manifestFile, databaseEntry, sumsFile]) {
        if (!sums.has(needed)) throw new Error(`${needed} is missing`);
      }
      const said = readFileSync(join(folder, sumsFile), "utf8");
      const found = [...sums].filter(([entry]) => entry !== sumsFile).map(([entry, sum]) => `${sum}  ${entry}\n`);
      if (said !== found.join("")) throw new Error("the checksums do not agree");
      return {
        manifest: parseManifest(readFileSync(join(folder, manifestFile), "utf8")),
        secrets: secretFiles.filter((entry) => sums.has(entry)),
      };
    },
  };
}
