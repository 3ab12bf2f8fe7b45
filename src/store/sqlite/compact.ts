import { Database } from "bun:sqlite";
import { existsSync, renameSync, rmSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { StartupError } from "../../domain/errors.ts";
import type { Clock } from "../../lib/clock.ts";
import { freeBytesOf } from "../../lib/free-bytes.ts";
import { syncFolder } from "../../lib/sync-folder.ts";
import { faultOf } from "../../lib/threads.ts";
import { unfinished } from "./copy-database.ts";
import { refuseMoved } from "./move-mark.ts";
import { damaged, databaseFile, orInWords } from "./open.ts";
import { realPath } from "./written-by.ts";

export interface CompactOptions {
  dataDir: string;
  clock: Clock;
  /** Progress of the copy; `total` is roughly the size it will have. */
  onProgress(progress: { readonly done: number; readonly total: number }): void;
  /** Stops the compaction: the database stays as it is. */
  signal: AbortSignal;
}

export interface Compacted {
  readonly bytesBefore: number;
  readonly bytesAfter: number;
  /** From now on the database shrinks by itself, which it did not do before. */
  readonly shrinksNow: boolean;
}

export interface CompactRequest {
  readonly from: string;
  readonly to: string;
}

export type CompactMessage =
  | { readonly kind: "done" }
  | { readonly kind: "failed"; readonly message: string; readonly isDamage: boolean };

const lookEveryMs = 500;
/** The file system's own needs. */
const spareBytes = 16 * 2 ** 20;
const incremental = 2;

/**
 * Rewrites the database, without free pages, into a file next to it that takes its place once it is complete. Until then nothing
 * is changed: if it is killed, the database stays as it was. No server may have the database open.
 *
 * @returns null when it was stopped
 * @throws StartupError with what to do, when there is no database or it was moved, there is too little room, or it fails
 */
export async function compactDatabase(options: CompactOptions): Promise<Compacted | null> {
  const path = realPath(join(options.dataDir, databaseFile));
  if (!existsSync(path)) {
    throw new StartupError(`There is no database in ${options.dataDir}. Try: name its folder with --data-dir.`);
  }
  const copy = `${path}.compacted`;
  for (const left of [copy, unfinished(copy)]) rmSync(left, { force: true });
  const { used, shrinks } = orInWords(options.dataDir, () => settle(path));
  const bytesBefore = statSync(path).size;
  checkRoom(path, used);
  if (!(await copyAside({ from: path, to: copy }, used, options))) return null;
  try {
    check(copy);
    renameSync(copy, path);
    // What was in the log has been in the database since `settle`.
    for (const suffix of ["-wal", "-shm"]) rmSync(`${path}${suffix}`, { force: true });
    syncFolder(dirname(path));
  } catch (error) {
    rmSync(copy, { force: true });
    throw error;
  }
  return { bytesBefore, bytesAfter: statSync(path).size, shrinksNow: !shrinks };
}

/** Reads one row and finalizes the statement immediately: an open one would keep its connection, and so the log, from closing. */
function oneOf<Row>(client: Database, sql: string): Row | null {
  const statement = client.prepare<Row, []>(sql);
  try {
    return statement.get();
  } finally {
    statement.finalize();
  }
}

/** Copies the log back, so that the file has everything. */
function settle(path: string): { used: number; shrinks: boolean } {
  const client = new Database(path, { readwrite: true, create: false, strict: true });
  try {
    // No other process should have it open, so there is no point in waiting long.
    client.run("pragma busy_timeout = 100");
    const checkpoint = oneOf<{ busy: number }>(client, "pragma wal_checkpoint(truncate)");
    if (checkpoint?.busy) throw new StartupError(`Another program has ${path} open. Try: end it first.`);
    refuseMoved(client, path);
    const pages = oneOf<{ used: number; mode: number }>(
      client,
      `select (page_count - freelist_count) * page_size as used, auto_vacuum as mode
       from pragma_page_count, pragma_freelist_count, pragma_page_size, pragma_auto_vacuum`,
    );
    return { used: pages?.used ?? 0, shrinks: pages?.mode === incremental };
  } finally {
    client.close(true);
  }
}

function checkRoom(path: string, used: number): void {
  const [free, needed] = [freeBytesOf(dirname(path)), used + spareBytes];
  if (free >= needed) return;
  const mebibytes = (bytes: number) => `${Math.ceil(bytes / 2 ** 20)} MiB`;
  throw new StartupError(
    `The database is written anew beside itself, which takes ${mebibytes(needed)}; ${dirname(path)} has ${mebibytes(free)} free. ` +
      "Try: free some space; or start the server, which gives space back in small steps, if the database was made by version 0.1 or later.",
  );
}

function check(path: string): void {
  const client = new Database(path, { readonly: true, strict: true });
  try {
    const first = oneOf<{ quick_check: string }>(client, "pragma quick_check(1)");
    if (first?.quick_check !== "ok") {
      throw new StartupError(
        `The copy is not sound (${first?.quick_check}), so the database was left as it is. Try: postrider backup, and check the disk.`,
      );
    }
  } finally {
    client.close(true);
  }
}

const notWritten = (reason: string) =>
  new StartupError(
    `The database could not be written anew (${reason}); it is as it was. Try: see that its disk works and has room.`,
  );

/** Copies on a separate thread, so that this one can still handle signals. @returns false when it was stopped */
async function copyAside(
  request: CompactRequest,
  total: number,
  { clock, onProgress, signal }: CompactOptions,
): Promise<boolean> {
  const worker = new Worker(new URL("./compact-worker.ts", import.meta.url), { env: {} });
  const part = unfinished(request.to);
  let cancel = () => {};
  function look(): void {
    onProgress({ done: statSync(part, { throwIfNoEntry: false })?.size ?? 0, total });
    cancel = clock.after(lookEveryMs, look);
  }
  let stop = () => {};
  try {
    return await new Promise<boolean>((resolve, reject) => {
      stop = () => resolve(false);
      if (signal.aborted) return stop();
      signal.addEventListener("abort", stop, { once: true });
      worker.onerror = (event) => reject(new Error(`Compacting stopped: ${faultOf(event)}`));
      worker.onmessage = ({ data }: MessageEvent<CompactMessage>) => {
        if (data.kind === "done") resolve(true);
        else if (data.isDamage) reject(damaged(request.from, data.message));
        else reject(notWritten(data.message));
      };
      worker.postMessage(request);
      look();
    });
  } finally {
    signal.removeEventListener("abort", stop);
    cancel();
    worker.terminate();
    if (signal.aborted) for (const left of [request.to, part]) rmSync(left, { force: true });
  }
}
