import { Database } from "bun:sqlite";
import { existsSync, statfsSync, statSync } from "node:fs";
import { join } from "node:path";
import { StartupError } from "../../domain/errors.ts";
import type { Clock } from "../../lib/clock.ts";
import type { MigrationProgress } from "./migration-steps.ts";
import { migrations, standingOf } from "./migrations.ts";
import { databaseFile } from "./open.ts";
import { waitForLocks } from "./pragma.ts";

export interface UpgradeProgress extends MigrationProgress {
  readonly fromSchema: number;
  readonly toSchema: number;
}

export interface UpgradeOptions {
  dataDir: string;
  clock: Clock;
  /** Has to open what is sealed in the database, before anything is changed. */
  masterKey?: Uint8Array;
  onProgress(progress: UpgradeProgress): void;
  /** Ends the upgrade between two steps; the next start goes on with it. */
  signal?: AbortSignal;
}

export interface UpgradeRequest {
  dataDir: string;
  masterKey: Uint8Array | undefined;
  /** One number, which is not 0 when the upgrade is to end. */
  stop: SharedArrayBuffer;
}

export type UpgradeMessage =
  | { kind: "progress"; progress: MigrationProgress }
  | { kind: "ended"; finished: boolean }
  | { kind: "failed"; message: string };

/**
 * A step takes a tenth of a second, but an index of many millions of rows is one step. The thread may be left in the middle
 * of that, as by a crash: what was not committed never was.
 */
const stopPatienceMs = 1_000;

/** The log: of one step, which for large events is much, and never more than there is to write. */
const logBytes = 64 * 2 ** 20;
/** What the program writes besides. */
const leastRoomBytes = 4 * 2 ** 20;
/** Rows move within the file. Beside it an index is sorted, and written to the log, which both take as much as itself. */
const roomPerDatabaseByte = 0.25;

/**
 * Brings an earlier database to the schema of this program, on a thread of its own: this one goes on to hear signals. What
 * is no earlier database (there is none, it is of today, of a newer program, damaged) is left to whoever opens it.
 *
 * @returns false when it was stopped
 * @throws StartupError with what to do, when there is too little room, or it fails
 */
export async function upgradeDatabase(options: UpgradeOptions): Promise<boolean> {
  const { dataDir, clock, masterKey, onProgress, signal } = options;
  const fromSchema = earlierSchema(dataDir);
  if (fromSchema === null) return true;
  checkRoom(dataDir);
  const stop = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT);
  const worker = new Worker(new URL("./upgrade-worker.ts", import.meta.url), { env: {} });
  let cancelPatience = () => {};
  let end = () => {};
  try {
    return await new Promise<boolean>((resolve, reject) => {
      end = () => {
        Atomics.store(new Int32Array(stop), 0, 1);
        cancelPatience = clock.after(stopPatienceMs, () => resolve(false));
      };
      if (signal?.aborted) end();
      else signal?.addEventListener("abort", end, { once: true });
      worker.onerror = (event) => reject(new Error(`The upgrade stopped: ${event.message}`));
      worker.onmessage = ({ data }: MessageEvent<UpgradeMessage>) => {
        if (data.kind === "progress") onProgress({ ...data.progress, fromSchema, toSchema: migrations.length });
        else if (data.kind === "ended") resolve(data.finished);
        else reject(new StartupError(data.message));
      };
      worker.postMessage({ dataDir, masterKey, stop } satisfies UpgradeRequest);
    });
  } finally {
    signal?.removeEventListener("abort", end);
    cancelPatience();
    worker.terminate();
  }
}

/** Null when there is nothing to upgrade, or nothing that can be read. */
function earlierSchema(dataDir: string): number | null {
  const path = join(dataDir, databaseFile);
  if (!existsSync(path)) return null;
  let client: Database | null = null;
  try {
    client = new Database(path, { readwrite: true, create: false, strict: true });
    waitForLocks(client);
    const { schema, statements } = standingOf(client);
    const isEarlier = schema < migrations.length && schema + statements > 0;
    return isEarlier ? schema : null;
  } catch {
    return null;
  } finally {
    client?.close();
  }
}

function checkRoom(dataDir: string): void {
  const path = join(dataDir, databaseFile);
  const { size } = statSync(path);
  const needed = Math.ceil(leastRoomBytes + Math.min(size, logBytes) + size * roomPerDatabaseByte);
  const { bavail, bsize } = statfsSync(dataDir);
  const free = bavail * bsize;
  if (free >= needed) return;
  throw new StartupError(
    `The upgrade of ${path} needs ${mebibytes(needed)} of free disk, and there are ${mebibytes(free)}; nothing was changed. ` +
      "Try: make room on its disk, or run the earlier version.",
  );
}

const mebibytes = (bytes: number) => `${Math.ceil(bytes / 2 ** 20)} MiB`;
