import { constants, type Database } from "bun:sqlite";
import { StartupError } from "../../domain/errors.ts";

export interface Pragma {
  readonly name: string;
  readonly set: string;
  /** The value once it has taken effect: SQLite ignores a pragma that it cannot apply. */
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

/** What makes readers and a writer independent of each other. The database remembers it. */
export const usesLog: Pragma = { name: "journal_mode", set: "wal", reads: "wal" };

const busyTimeout: Pragma = { name: "busy_timeout", set: "5000", reads: 5000 };

/**
 * To be called before anything is read: a connection that has just been closed, on an ending thread or in an earlier process,
 * may lock the file exclusively for a moment, to remove its log or to reset it.
 */
export const waitForLocks = (client: Database): void => applyPragma(client, busyTimeout);

/**
 * Who copies the log back into the database file: this program, or another one that replicates the log and must see every
 * frame of it (Litestream).
 */
export type Checkpoints = "own" | "external";

const neverTruncates: Pragma = { name: "journal_size_limit", set: "-1", reads: -1 };
const neverCopiesBack: Pragma = { name: "wal_autocheckpoint", set: "0", reads: 0 };

/**
 * For a connection whose log another program is in charge of copying back. When the last connection is closed, SQLite copies
 * the log back nevertheless, and there is no way to prevent that; but the log stays as it is, and the next process that opens
 * the database continues after its end.
 */
export function leaveLogAlone(client: Database): void {
  client.fileControl(constants.SQLITE_FCNTL_PERSIST_WAL, 1);
  applyPragma(client, neverTruncates);
  applyPragma(client, neverCopiesBack);
}
