import { Database } from "bun:sqlite";
import { existsSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { StartupError } from "../../domain/errors.ts";
import type { Clock } from "../../lib/clock.ts";
import { freeBytesOf } from "../../lib/free-bytes.ts";
import { faultOf } from "../../lib/threads.ts";
import { unfinished } from "./copy-database.ts";
import type { MigrationProgress } from "./migration-steps.ts";
import { isEarlier, migrations, standingOf } from "./migrations.ts";
import { databaseFile } from "./open.ts";
import { type Checkpoints, leaveLogAlone, waitForLocks } from "./pragma.ts";
import { planSnapshot, removeUnfinished, type Snapshot, type SnapshotPlan, snapshotsOf } from "./pre-migration.ts";
import { realPath } from "./written-by.ts";

export interface UpgradeProgress extends MigrationProgress {
  readonly fromSchema: number;
  readonly toSchema: number;
}

export interface UpgradeOptions {
  dataDir: string;
  clock: Clock;
  /** Has to open what is sealed in the database, before anything is changed. */
  masterKey?: Uint8Array;
  /** False: upgrades without a way back. @default true */
  takesSnapshot?: boolean;
  /** Upgraded by a move, which may do so whatever the move mark says. */
  forMove?: boolean;
  /** @default "own" */
  checkpoints?: Checkpoints;
  onProgress(progress: UpgradeProgress): void;
  /** Called once the database as it was has been copied to a separate file. */
  onSnapshot?(snapshot: Snapshot): void;
  /** Called when snapshots of earlier upgrades were deleted, since this one has its own. */
  onRemoved?(files: readonly string[]): void;
  /** Stops the upgrade between two steps; the next start continues it. */
  signal?: AbortSignal;
}

export interface UpgradeRequest {
  dataDir: string;
  masterKey: Uint8Array | undefined;
  takesSnapshot: boolean;
  forMove: boolean;
  checkpoints: Checkpoints;
  /** A single number, which is not 0 when the upgrade is to stop. */
  stop: SharedArrayBuffer;
}

export type UpgradeMessage =
  | { kind: "copying"; plan: SnapshotPlan }
  | { kind: "copied"; snapshot: Snapshot }
  | { kind: "progress"; progress: MigrationProgress }
  | { kind: "ended"; finished: boolean; removed: readonly string[] }
  | { kind: "failed"; message: string };

/**
 * A step takes a tenth of a second, but an index on many millions of rows is a single step. The thread may be abandoned in the
 * middle of that, as in a crash: what was not committed has not happened.
 */
const stopPatienceMs = 1_000;

/** How often a copy in progress is looked at. */
const lookEveryMs = 500;
/** Before that, an estimate would only jump around. */
const leastMeasuredMs = 1_000;

/** Room for the log: that of one step, which is a lot for large events, but never more than there is to write. */
const logBytes = 64 * 2 ** 20;
/** If another program copies the log back, the log may hold everything that an upgrade writes until that is done. */
const logPerDatabaseByte = 2.5;
/** What the program writes in addition. */
const leastRoomBytes = 4 * 2 ** 20;
/** Rows move within the file. Outside it, an index is sorted and written to the log, each of which takes as much as the index. */
const roomPerDatabaseByte = 0.25;

/**
 * Upgrades an older database to the schema of this program, on a separate thread, so that this one can still handle signals.
 * Anything else (no database, an up-to-date one, one of a newer program, a damaged one) is left to the code that opens it.
 *
 * @returns false when it was stopped
 * @throws StartupError with what to do, when there is too little room, or it fails
 */
export async function upgradeDatabase(options: UpgradeOptions): Promise<boolean> {
  const { dataDir, clock, masterKey, takesSnapshot = true, forMove = false, checkpoints = "own", signal } = options;
  const path = realPath(join(dataDir, databaseFile));
  const earlier = findEarlier(path, checkpoints);
  if (earlier === null) return true;
  const { fromSchema, plan } = earlier;
  const onProgress = (progress: MigrationProgress) =>
    options.onProgress({ ...progress, fromSchema, toSchema: migrations.length });
  removeUnfinished(path);
  checkRoom(path, { snapshot: takesSnapshot ? plan : null, checkpoints });
  const stop = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT);
  const worker = new Worker(new URL("./upgrade-worker.ts", import.meta.url), { env: {} });
  let cancelPatience = () => {};
  let cancelLook = () => {};
  let end = () => {};
  try {
    return await new Promise<boolean>((resolve, reject) => {
      end = () => {
        Atomics.store(new Int32Array(stop), 0, 1);
        cancelPatience = clock.after(stopPatienceMs, () => resolve(false));
      };
      if (signal?.aborted) end();
      else signal?.addEventListener("abort", end, { once: true });
      worker.onerror = (event) => reject(new Error(`The upgrade stopped: ${faultOf(event)}`));
      worker.onmessage = ({ data }: MessageEvent<UpgradeMessage>) => {
        if (data.kind !== "progress") cancelLook();
        if (data.kind === "progress") onProgress(data.progress);
        else if (data.kind === "copying") cancelLook = followCopy(data.plan, clock, onProgress);
        else if (data.kind === "copied") options.onSnapshot?.(data.snapshot);
        else if (data.kind === "failed") reject(new StartupError(data.message));
        else {
          if (data.removed.length > 0) options.onRemoved?.(data.removed);
          resolve(data.finished);
        }
      };
      worker.postMessage({ dataDir, masterKey, stop, takesSnapshot, forMove, checkpoints } satisfies UpgradeRequest);
    });
  } finally {
    signal?.removeEventListener("abort", end);
    cancelPatience();
    cancelLook();
    worker.terminate();
  }
}

/** Whether the database in a folder, which a server may have open, has this program's schema. */
export function isOfThisSchema(dataDir: string): boolean {
  const client = new Database(join(dataDir, databaseFile), { readwrite: true, create: false, strict: true });
  try {
    waitForLocks(client);
    leaveLogAlone(client);
    const { schema, statements } = standingOf(client);
    return schema === migrations.length && statements === 0;
  } finally {
    client.close(true);
  }
}

/** Null when there is nothing to upgrade, or it cannot be read. */
function findEarlier(path: string, checkpoints: Checkpoints): { fromSchema: number; plan: SnapshotPlan | null } | null {
  if (!existsSync(path)) return null;
  let client: Database | null = null;
  try {
    client = new Database(path, { readwrite: true, create: false, strict: true });
    waitForLocks(client);
    if (checkpoints === "external") leaveLogAlone(client);
    const standing = standingOf(client);
    if (!isEarlier(standing)) return null;
    return { fromSchema: standing.schema, plan: planSnapshot(client, standing, migrations.length) };
  } catch {
    return null;
  } finally {
    client?.close(true);
  }
}

/** The copying thread reports nothing until it is done; the size of what it has written shows the progress. */
function followCopy(
  { file, bytes }: SnapshotPlan,
  clock: Clock,
  onProgress: (progress: MigrationProgress) => void,
): () => void {
  const startedAt = clock.monotonicMs();
  let cancel = () => {};
  function look(): void {
    const done = Math.min(statSync(unfinished(file), { throwIfNoEntry: false })?.size ?? 0, bytes);
    const tookMs = clock.monotonicMs() - startedAt;
    const secondsLeft =
      tookMs < leastMeasuredMs || done === 0 ? null : Math.ceil(((bytes - done) * tookMs) / done / 1000);
    onProgress({ what: "snapshot", unit: "MiB", done: inMebibytes(done), total: inMebibytes(bytes), secondsLeft });
    cancel = clock.after(lookEveryMs, look);
  }
  look();
  return () => cancel();
}

function checkRoom(
  path: string,
  { snapshot, checkpoints }: { snapshot: SnapshotPlan | null; checkpoints: Checkpoints },
): void {
  const { size } = statSync(path);
  const ofLog = checkpoints === "own" ? Math.min(size, logBytes) : size * logPerDatabaseByte;
  const ofUpgrade = Math.ceil(leastRoomBytes + ofLog + size * roomPerDatabaseByte);
  const ofSnapshot = snapshot?.bytes ?? 0;
  const free = freeBytesOf(dirname(path));
  if (free >= ofUpgrade + ofSnapshot) return;
  const purpose = snapshot ? `, ${mebibytes(ofSnapshot)} of it for a snapshot to go back to` : "";
  const older = snapshotsOf(path).map((file) => `delete ${file}`);
  const remedies = [
    ...older,
    "make room on its disk",
    ...(snapshot && free >= ofUpgrade ? ["make a copy of your own and start with --no-snapshot"] : []),
    "run the earlier version",
  ];
  throw new StartupError(
    `The upgrade of ${path} needs ${mebibytes(ofUpgrade + ofSnapshot)} of free disk${purpose}, ` +
      `and there are ${mebibytes(free)}; nothing was changed. Try: ${remedies.join(", or ")}.`,
  );
}

const inMebibytes = (bytes: number) => Math.ceil(bytes / 2 ** 20);
const mebibytes = (bytes: number) => `${inMebibytes(bytes)} MiB`;
