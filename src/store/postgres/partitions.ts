import { firstSeqAt } from "../../lib/id.ts";
import { sqlStateOf } from "./faults.ts";
import type { Pool, Transaction } from "./pool.ts";

/**
 * Events, their records and their attempts are partitioned by the time in their numbers, so that retention drops files and
 * leaves no holes. What no partition covers goes to the default one, which stays empty unless nobody made partitions for
 * months, or a clock jumped.
 */

/** Partitioned tables, with the column that they are divided by; children first, so that no attempt outlives its event. */
const tables = [
  { table: "attempt", column: "event_seq" },
  { table: "delivery", column: "event_seq" },
  { table: "event", column: "seq" },
] as const;

export type PartitionUnit = "month" | "day";

export interface PartitionRange {
  /** `2026_11`, `2026_11_22`. */
  readonly name: string;
  readonly fromSeq: number;
  /** The start of the next one. */
  readonly toSeq: number;
}

/** In UTC: the unit that a time is in, or one that is `later` units after it. */
export function partitionAt(unit: PartitionUnit, atMs: number, later = 0): PartitionRange {
  const at = new Date(atMs);
  const startOf = (units: number) =>
    unit === "month"
      ? Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + units)
      : Date.UTC(at.getUTCFullYear(), at.getUTCMonth(), at.getUTCDate() + units);
  const start = startOf(later);
  const day = new Date(start).toISOString().slice(0, unit === "month" ? "2026-11".length : "2026-11-22".length);
  return { name: day.replaceAll("-", "_"), fromSeq: firstSeqAt(start), toSeq: firstSeqAt(startOf(later + 1)) };
}

/** Whole units ahead of the one that the clock is in. */
const unitsAhead = 2;

/**
 * The longest wait for the lock that creating or dropping a partition needs. Whoever waits for it holds up all who come
 * after, so it must not wait for a long read: it is tried again later.
 */
const lockTimeoutMs = 100;

/**
 * The errors that stop it without being a defect: a lock that was not available in time; another node that makes the same
 * partition, according to the table, its type or the catalogue; a row that went to the default partition meanwhile; or so
 * many rows there that they cannot be moved in the time of a statement. They then stay, and are served like all others.
 */
const inTheWay: ReadonlySet<string | undefined> = new Set(["55P03", "42P07", "42710", "23505", "23514", "57014"]);

/** Creates what is missing. @returns whether all of them exist now; false: something was in the way, try again soon */
export async function makePartitions(pool: Pool, unit: PartitionUnit, nowMs: number): Promise<boolean> {
  const there = new Set((await pool.read<{ name: string }>(partitionsText)).map(({ name }) => name));
  let isComplete = true;
  for (let later = 0; later <= unitsAhead; later++) {
    const range = partitionAt(unit, nowMs, later);
    for (const { table, column } of tables) {
      if (there.has(`${table}_${range.name}`)) continue;
      isComplete = (await unlessBusy(pool, (tx) => make(tx, table, column, range))) && isComplete;
    }
  }
  return isComplete;
}

/** Drops those that end before a number. @returns whether all of them are gone; false: something was in the way */
export async function dropPartitions(pool: Pool, beforeSeq: number): Promise<boolean> {
  const partitions = await pool.read<{ name: string; parent: string; bounds: string }>(partitionsText);
  let isComplete = true;
  for (const { table } of tables) {
    for (const { name, parent, bounds } of partitions) {
      if (parent !== table || endOf(bounds) > beforeSeq) continue;
      isComplete =
        (await unlessBusy(pool, async (tx) => void (await tx.run(`drop table if exists "${name}"`)))) && isComplete;
    }
  }
  return isComplete;
}

/** All partitions except the default ones. */
const partitionsText = `
  select c.relname as name, p.relname as parent, pg_get_expr(c.relpartbound, c.oid) as bounds
    from pg_inherits i join pg_class c on c.oid = i.inhrelid join pg_class p on p.oid = i.inhparent
   where p.relname in ('event', 'delivery', 'attempt') and c.relispartition
     and pg_get_expr(c.relpartbound, c.oid) <> 'DEFAULT'
     and pg_table_is_visible(p.oid)`;

/** `FOR VALUES FROM ('1') TO ('2')` */
const endOf = (bounds: string): number => Number(/ TO \('?(\d+)'?\)$/.exec(bounds)?.[1] ?? Number.POSITIVE_INFINITY);

async function unlessBusy(pool: Pool, work: (tx: Transaction) => Promise<void>): Promise<boolean> {
  try {
    await pool.transact(async (tx) => {
      await tx.run(`set local lock_timeout = ${lockTimeoutMs}`);
      try {
        await work(tx);
      } catch (error) {
        if (!inTheWay.has(sqlStateOf(error))) throw error;
        throw new Busy();
      }
    });
    return true;
  } catch (error) {
    if (error instanceof Busy) return false;
    throw error;
  }
}

class Busy extends Error {}

/**
 * Attached rather than created in place: that locks the table only against other such changes, not against readers and
 * writers. Rows of this range in the default partition move into the new one, or it could not be attached.
 */
async function make(tx: Transaction, table: string, column: string, { name, fromSeq, toSeq }: PartitionRange) {
  const partition = `${table}_${name}`;
  const range = `${column} >= ${fromSeq} and ${column} < ${toSeq}`;
  await tx.run(`create table ${partition} (like ${table} including defaults including constraints)`);
  await tx.run(`with moved as (delete from ${table}_default where ${range} returning *)
    insert into ${partition} select * from moved`);
  await tx.run(`alter table ${table} attach partition ${partition} for values from (${fromSeq}) to (${toSeq})`);
}
