import type { Database } from "bun:sqlite";
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
