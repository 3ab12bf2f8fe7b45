import { isUtf8 } from "node:buffer";
import { encodeEventId } from "../../lib/id.ts";
import { storageDamaged } from "../unless-damaged.ts";

/**
 * Damage: data in a page of the database file that the disk has lost or changed. SQLite notices most of it when it reads the
 * page (`SQLITE_CORRUPT`), but not changed bytes inside a payload; the checksum of the event reveals those.
 *
 * A damaged page affects only what it holds: code that reads many rows in one go falls back to reading them one by one when
 * that fails, and continues without the unreadable ones.
 */

/** Whether SQLite reported damage. */
export function isDamage(error: unknown): boolean {
  const code = sqliteCodeOf(error);
  return code.startsWith("SQLITE_CORRUPT") || code.startsWith("SQLITE_NOTADB");
}

/** The code of a SQLite error, even if the query builder has wrapped it; "" for any other error. */
export function sqliteCodeOf(error: unknown): string {
  if (!(error instanceof Error)) return "";
  if ("code" in error && String(error.code).startsWith("SQLITE_")) return String(error.code);
  return sqliteCodeOf(error.cause);
}

/** What `read` returns; null when it runs into damage. */
export function unlessDamaged<T>(read: () => T): T | null {
  try {
    return read();
  } catch (error) {
    if (isDamage(error)) return null;
    throw error;
  }
}

/** The rows up to the first that cannot be read; `isWhole`: there is none. */
export function readableRows<Row>(found: Iterable<Row>): { rows: Row[]; isWhole: boolean } {
  const rows: Row[] = [];
  const isWhole = unlessDamaged(() => {
    for (const row of found) rows.push(row);
    return true;
  });
  return { rows, isWhole: isWhole ?? false };
}

/**
 * The key behind damage from which `read` works again. It is looked for in growing steps, and then exactly, so that nothing but
 * the damage is passed over. Where there is more damage behind it, a good stretch in between is passed over too if no step
 * happens to end in it; that stretch is shorter than what lies before it.
 *
 * @param damaged a key from which `read` does not work
 * @returns null when it works from no key up to `end`
 */
export function keyBehindDamage(damaged: number, end: number, read: (from: number) => unknown): number | null {
  const works = (from: number) => unlessDamaged(() => [read(from)]) !== null;
  let failing = damaged;
  let working = damaged;
  for (let step = 1; working === failing; step *= 2) {
    if (failing >= end) return null;
    working = Math.min(damaged + step, end);
    if (!works(working)) failing = working;
  }
  while (working - failing > 1) {
    const middle = failing + Math.floor((working - failing) / 2);
    if (works(middle)) working = middle;
    else failing = middle;
  }
  return working;
}

/** Like `read`, but damage is reported and the answer says so. @throws unavailable `storage_damaged` */
export async function readOrRefuse<T>(report: () => void, read: () => T | Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (!isDamage(error)) throw error;
    report();
    throw storageDamaged();
  }
}

/** Stands for the random part of an id that cannot be read. */
export const lostTail: Uint8Array = Uint8Array.of(0x80, 0, 0, 0, 0, 0, 0, 0);

/** How the operator finds an event of which only the number may be left. */
export const damagedEvent = (seq: number) => `The event ${encodeEventId(seq, lostTail).slice(0, -12)}…`;

/** CRC-32: about 100 µs for the largest payload. It detects damage, not forgery. */
export const checksumOf = (payload: Uint8Array): number => Bun.hash.crc32(payload);

/** @param checksum null for events of earlier programs, about which we only know that they were UTF-8 */
export const isWhole = (payload: Uint8Array, checksum: number | null): boolean =>
  checksum === null ? isUtf8(payload) : checksumOf(payload) === checksum;

/** Reports once for each thing that it cannot be read. */
export type DamageReport = (what: string) => void;

/** At most this many are named; an operator who has more knows by then. */
const namedLimit = 1_000;

export function createDamageReport(warn: (message: string) => void = () => {}): DamageReport {
  const named = new Set<string>();
  return (what) => {
    if (named.has(what) || named.size >= namedLimit) return;
    named.add(what);
    warn(`${what} cannot be read: its page in the database is damaged. Try: restore the database from a backup.`);
  };
}
