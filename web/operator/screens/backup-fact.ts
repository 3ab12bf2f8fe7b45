import type { BackupOutcome, Backups } from "../api/types.ts";

/** How backups are doing, as one line. */
export interface BackupFact {
  readonly text: string;
  /** The time that the text is about. */
  readonly at?: string;
  /** When what the text says was verified once more. */
  readonly verifiedAt?: string;
  readonly isBad?: true;
}

/** What went wrong last. A verification since makes up for it only if it was of that backup. */
export function failureOf({ latest, latest_backup }: Pick<Backups, "latest" | "latest_backup">): BackupOutcome | null {
  const outcomes = latest?.name === latest_backup?.name ? [latest] : [latest_backup, latest];
  return outcomes.find((outcome) => outcome !== null && outcome.error !== null) ?? null;
}

export function backupFactOf(of: Backups): BackupFact {
  const { place, latest, under_way, backups } = of;
  if (place === null) return { text: "Not set up" };
  if (under_way !== null) return { text: under_way === "backup" ? "Being made now" : "Being verified now" };
  const failure = failureOf(of);
  if (failure !== null) {
    return { text: failure.kind === "backup" ? "Failed" : "Verification failed", at: failure.at, isBad: true };
  }
  const [newest] = backups;
  if (newest === undefined) return { text: "None yet" };
  const { name, created_at: at, verified } = newest;
  if (verified === false) return { text: "Does not restore: made", at, isBad: true };
  if (latest?.kind === "verify" && latest.name === name) return { text: "Made", at, verifiedAt: latest.at };
  return { text: verified ? "Made and verified" : "Made", at };
}

interface PolledBackups {
  /** Undefined: nothing has been read yet. */
  readonly data: Backups | undefined;
  /** Of the latest read. */
  readonly error: { readonly message: string } | null;
}

/** The server says nothing of backups while it cannot reach their place, and what was read earlier may no longer be so. */
export function polledBackupFactOf({ data, error }: PolledBackups): BackupFact | null {
  if (error) return { text: error.message, isBad: true };
  return data ? backupFactOf(data) : null;
}
