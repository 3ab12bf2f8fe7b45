import type { Clock } from "../lib/clock.ts";
import { openSnapshot } from "../store/backup/snapshot.ts";
import { type ArchiveOptions, createArchive, type PrivateFile } from "./archive.ts";
import { compress } from "./compression.ts";
import { encrypt } from "./encryption.ts";
import type { Manifest } from "./manifest.ts";
import type { Place } from "./place.ts";
import { createRest } from "./rest.ts";
import { checkRoomForLog } from "./room.ts";

export interface MakeOptions extends Pick<ArchiveOptions, "hasMasterKey" | "now" | "onProgress"> {
  /** The directory's current secrets; read before the snapshot and again after it. */
  readSecrets(): readonly PrivateFile[];
  /** The secrets that belong to a snapshot taken between the two reads. */
  secretsBetween(before: readonly PrivateFile[], after: readonly PrivateFile[]): readonly PrivateFile[];
  dataDir: string;
  place: Place;
  name: string;
  /** Who can read the backup; empty: it is not encrypted. */
  recipients: readonly string[];
  /** How much must stay free on the database's disk, for its server. */
  leaveFreeBytes: number;
  clock: Clock;
  signal: AbortSignal;
}

/** The share of the time left to other work. */
const restShare = 0.25;

/**
 * Makes a backup of a data directory, even while a server runs on it.
 * @throws StartupError with what to do; then nothing is left of it
 */
export async function makeBackup(options: MakeOptions): Promise<{ manifest: Manifest; bytes: number }> {
  const { dataDir, place, name, recipients, leaveFreeBytes, clock, signal } = options;
  const before = options.readSecrets();
  const snapshot = openSnapshot(dataDir);
  try {
    const secrets = options.secretsBetween(before, options.readSecrets());
    const { manifest, chunks } = createArchive({ ...options, secrets, snapshot });
    const logBytes = snapshot.logBytes();
    const restAsUsual = createRest({ clock, signal, share: restShare });
    const rest = async () => {
      if (snapshot.logBytes() > logBytes) checkRoomForLog(snapshot.folder, leaveFreeBytes);
      await restAsUsual();
    };
    const compressed = compress(chunks(), rest);
    const archive = recipients.length === 0 ? compressed : encrypt(compressed, recipients);
    const bytes = await place.put(name, archive, signal);
    return { manifest, bytes };
  } finally {
    snapshot.close();
  }
}
