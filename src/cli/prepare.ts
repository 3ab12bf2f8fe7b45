import type { Config } from "../config.ts";
import { type DataDir, enterDataDir } from "../data-dir.ts";
import type { Clock } from "../lib/clock.ts";
import { formatDuration } from "../lib/duration.ts";
import { messageOf } from "../lib/error-message.ts";
import type { Log } from "../lib/log.ts";
import { keyFilesOf, promoteNextKey, readNextKey, removePlacedKey } from "../master-key-file.ts";
import {
  type Snapshot,
  sealingOfStore,
  type UpgradeOptions,
  type UpgradeProgress,
  upgradeStore,
} from "../store/open.ts";
import { count } from "./count.ts";
import type { Io } from "./io.ts";

export interface Preparation {
  /** Where the server keeps its data and its secrets. */
  config: Pick<Config, "dataDir" | "databaseUrl" | "masterKeyFile" | "checkpoints">;
  clock: Clock;
  log: Log;
  io: Pick<Io, "progress">;
  /** Somebody is watching, so the progress line is enough. */
  isWatched: boolean;
  /** False: an earlier database is upgraded without a way back. */
  takesSnapshot: boolean;
  /** Interrupts it; the next start carries on. */
  signal: AbortSignal;
}

/** How often an upgrade is logged. */
const logEveryMs = 5_000;

/**
 * Whatever may take long before the server is built: waiting for a predecessor that is ending, and upgrading the database of
 * an earlier version.
 * @returns null when the signal ended it
 * @throws StartupError with what to do
 */
export async function prepareData(preparation: Preparation): Promise<DataDir | null> {
  const { config, clock, log, takesSnapshot, signal } = preparation;
  const onWaiting = ({ pid }: { pid: number }) => log.write("info", "server.waiting", { forProcess: pid });
  const said = new Set<string>();
  const warn = (message: string) => {
    // While it waits, it checks again and again, so each message is logged once.
    if (!said.has(message)) log.write("warn", "storage.warning", { message });
    said.add(message);
  };
  const place = { masterKeyFile: config.masterKeyFile, isShared: config.databaseUrl !== null };
  const entered = await enterDataDir(config.dataDir, { place, clock, signal, warn, onWaiting });
  const dataDir = entered && afterRotation(entered, config, log);
  // A shared database is upgraded when it is opened, by whichever server comes first, while others may be using it.
  if (dataDir === null || place.isShared) return dataDir;
  const report = createUpgradeReport(preparation);
  try {
    const { path, secrets } = dataDir;
    const { masterKey } = secrets;
    const { checkpoints } = config;
    if (
      await upgradeStore({ dataDir: path, clock, masterKey, checkpoints, takesSnapshot, signal, ...report.listeners })
    ) {
      report.end("storage.upgraded");
      return dataDir;
    }
    report.end("storage.upgrade_stopped");
  } catch (error) {
    report.end(null);
    dataDir.release();
    throw error;
  }
  dataDir.release();
  return null;
}

/** Finishes a master key rotation that was interrupted at its end: the new key takes the place of the former one. */
function afterRotation(dataDir: DataDir, config: Preparation["config"], log: Log): DataDir {
  const warn = (message: string) => log.write("warn", "storage.warning", { message });
  const files = keyFilesOf(dataDir.path, config.masterKeyFile);
  try {
    const next = config.databaseUrl === null ? readNextKey(files, warn) : null;
    if (next === null || !sealingOfStore(dataDir.path, next).isSealed) return dataDir;
    if (next.equals(dataDir.secrets.masterKey)) {
      removePlacedKey(files);
      return dataDir;
    }
    try {
      promoteNextKey(files);
      log.write("info", "master_key.rotated");
    } catch (error) {
      warn(
        `The database is sealed with the key in ${files.next}, which cannot take the place of ${files.current}: ${messageOf(error)}`,
      );
    }
    return { ...dataDir, secrets: { ...dataDir.secrets, masterKey: next } };
  } catch (error) {
    dataDir.release();
    throw error;
  }
}

function createUpgradeReport({ clock, log, io, isWatched }: Pick<Preparation, "clock" | "log" | "io" | "isWatched">) {
  const startedAt = clock.monotonicMs();
  let latest: UpgradeProgress | null = null;
  let cancelTimer = () => {};

  /** Goes by the clock, not by progress: an index over many rows is a single step. */
  function logRegularly(progress: UpgradeProgress): void {
    log.write("info", "storage.upgrading", { message: describeUpgrade(progress) });
    if (!isWatched) cancelTimer = clock.after(logEveryMs, () => logRegularly(latest ?? progress));
  }

  const onProgress: UpgradeOptions["onProgress"] = (progress) => {
    const isFirst = latest === null;
    latest = progress;
    if (isFirst) logRegularly(progress);
    io.progress(describeUpgrade(progress));
  };
  return {
    listeners: {
      onProgress,
      onSnapshot: ({ file, bytes }: Snapshot) => log.write("info", "storage.snapshot", { file, bytes }),
      onRemoved: (files: readonly string[]) =>
        log.write("info", "storage.snapshots_removed", { files: files.join(", ") }),
    },
    end(event: string | null): void {
      cancelTimer();
      if (latest === null) return;
      io.progress("");
      const { fromSchema, toSchema } = latest;
      const tookMs = Math.round(clock.monotonicMs() - startedAt);
      if (event !== null) log.write("info", event, { fromSchema, toSchema, tookMs });
    },
  };
}

/** `Upgrading the database from schema 5 to 6: events 1,200,000 of 2,000,000, about 40 s left`. */
export function describeUpgrade(progress: UpgradeProgress): string {
  const { fromSchema, toSchema, what, done, total, unit, secondsLeft } = progress;
  const units = unit === undefined ? "" : ` ${unit}`;
  const howFar = done === null || total === null ? "" : ` ${count(done)} of ${count(total)}${units}`;
  const left = secondsLeft === null ? "" : `, about ${formatDuration(secondsLeft * 1000)} left`;
  return `Upgrading the database from schema ${fromSchema} to ${toSchema}: ${what}${howFar}${left}`;
}
