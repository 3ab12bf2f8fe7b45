import { isUtf8 } from "node:buffer";
import { DomainError, unavailable } from "../../domain/errors.ts";
import { encodeEventId } from "../../lib/id.ts";

/**
 * What a page of the database file holds that the disk has lost or changed. SQLite notices most of it as it reads the page
 * (`SQLITE_CORRUPT`), but not other bytes inside of a payload; those tell by the checksum of their event.
 *
 * A damaged page spoils what it holds and nothing else: whoever reads many rows at once reads them one by one when that
 * fails, and goes on without the ones that cannot be read.
 */

/** Whether SQLite said so. */
export function isDamage(error: unknown): boolean {
  const code = sqliteCodeOf(error);
  return code.startsWith("SQLITE_CORRUPT") || code.startsWith("SQLITE_NOTADB");
}

/** The code of an error of SQLite, also of one that the query builder has wrapped; "" of any other. */
export function sqliteCodeOf(error: unknown): string {
  if (!(error instanceof Error)) return "";
  if ("code" in error && String(error.code).startsWith("SQLITE_")) return String(error.code);
  return sqliteCodeOf(error.cause);
}

/** What `read` returns; null when it meets damage. */
export function unlessDamaged<T>(read: () => T): T | null {
  try {
    return read();
  } catch (error) {
    if (isDamage(error)) return null;
    throw error;
  }
}

/** As `read`, but damage is reported, and an answer that says so. @throws unavailable `storage_damaged` */
export async function readOrRefuse<T>(report: () => void, read: () => T | Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (!isDamage(error)) throw error;
    report();
    throw storageDamaged();
  }
}

/** Nobody mends it soon: the operator has to restore a backup. */
const damageRetrySeconds = 300;

export const storageDamaged = () =>
  unavailable(
    "This data is damaged in storage and cannot be read; ask the operator of this server to restore it from a backup.",
    "storage_damaged",
    damageRetrySeconds,
  );

/** Whether the writer has rolled a job back because of damage. */
export const isStorageDamaged = (error: unknown): boolean =>
  error instanceof DomainError && error.code === storageDamaged().code;

/** Stands for the random part of an id that cannot be read. */
export const lostTail: Uint8Array = Uint8Array.of(0x80, 0, 0, 0, 0, 0, 0, 0);

/** How the operator finds an event of which only the number may be left. */
export const damagedEvent = (seq: number) => `The event ${encodeEventId(seq, lostTail).slice(0, -12)}…`;

/** CRC-32: some 100 µs for the largest payload. It tells damage, not forgery. */
export const checksumOf = (payload: Uint8Array): number => Bun.hash.crc32(payload);

/** @param checksum null for events of earlier programs, of which it is only known that they were UTF-8 */
export const isWhole = (payload: Uint8Array, checksum: number | null): boolean =>
  checksum === null ? isUtf8(payload) : checksumOf(payload) === checksum;

/** Says once of each thing that it cannot be read. */
export type DamageReport = (what: string) => void;

/** So many are named; whoever has more knows by then. */
const namedLimit = 1_000;

export function createDamageReport(warn: (message: string) => void = () => {}): DamageReport {
  const named = new Set<string>();
  return (what) => {
    if (named.has(what) || named.size >= namedLimit) return;
    named.add(what);
    warn(`${what} cannot be read: its page in the database is damaged. Try: restore the database from a backup.`);
  };
}
