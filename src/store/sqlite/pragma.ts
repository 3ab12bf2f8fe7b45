import { constants, type Database } from "bun:sqlite";
import { StartupError } from "../../domain/errors.ts";

export interface Pragma {
  readonly name: string;
  readonly set: string;
  /** What it is when it took effect: SQLite ignores one that it cannot follow. */
  readonly reads: string | number;
}

/** @throws StartupError when it does not take effect */
export function applyPragma(client: Database, { name, set, reads }: Pragma): void {
  client.run(`pragma ${name} = ${set}`);
  const row = client.query<Record<string, string | number>, []>(`pragma ${name}`).get();
  const found = row ? Object.values(row)[0] : undefined;
  if (found === reads) return;
  throw new StartupError(
    `The database does not accept "pragma ${name} = ${set}" (it stays ${found}). ` +
      "Try: put POSTRIDER_DATA_DIR on a local disk; network file systems cannot hold it.",
  );
}

const busyTimeout: Pragma = { name: "busy_timeout", set: "5000", reads: 5000 };

/**
 * Before anything is read: a connection that has just been closed, on a thread that ends or in a process before, may hold
 * the file alone for a moment to put its log away, or to reset it.
 */
export const waitForLocks = (client: Database): void => applyPragma(client, busyTimeout);

/**
 * Who copies the log back into the database file: this program; or another one, which replicates the log and must find every
 * frame of it (Litestream).
 */
export type Checkpoints = "own" | "external";

const neverTruncates: Pragma = { name: "journal_size_limit", set: "-1", reads: -1 };
const neverCopiesBack: Pragma = { name: "wal_autocheckpoint", set: "0", reads: 0 };

/**
 * For a connection to a log that is another program's to copy back. When it is the last one that is closed, SQLite copies
 * the log nevertheless, and there is no way to forbid it; but the log stays as it is, and whoever opens the database next
 * goes on behind its end.
 */
export function leaveLogAlone(client: Database): void {
  client.fileControl(constants.SQLITE_FCNTL_PERSIST_WAL, 1);
  applyPragma(client, neverTruncates);
  applyPragma(client, neverCopiesBack);
}
