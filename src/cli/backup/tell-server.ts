import { type BackupOutcome, errorOf, parseHistory, remember } from "../../backup/history.ts";
import { noteBackupsIn, readBackupNotesIn } from "../../data-dir.ts";
import { createOperatorClient, runningServer } from "../operator-client.ts";

/**
 * Has the server, and `postrider doctor`, count a backup that this command has made in POSTRIDER_BACKUP_URL. What the server
 * knows is its own to write, unless none runs.
 * @param faults null: not checked
 * @throws StartupError when the server has another place, or cannot be told
 */
export async function tellServer(
  dataDir: string,
  made: Pick<BackupOutcome, "at" | "tookMs" | "bytes"> & { name: string; faults: readonly string[] | null },
): Promise<void> {
  const { faults, ...outcome } = made;
  if (runningServer(dataDir) !== null) {
    const body = { took_ms: made.tookMs, faults };
    await createOperatorClient(dataDir).send("PUT", `/operator/backups/${made.name}`, body);
    return;
  }
  const history = parseHistory(readBackupNotesIn(dataDir));
  const error = errorOf(faults);
  const noted = remember(history, { kind: "backup", ...outcome, error }, faults && error === null);
  noteBackupsIn(dataDir, JSON.stringify(noted));
}
