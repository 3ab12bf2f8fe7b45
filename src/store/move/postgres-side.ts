import { StartupError } from "../../domain/errors.ts";
import { ingestedAtMs } from "../../lib/id.ts";
import { readMoveMark, writeMoveMark } from "../postgres/move-mark.ts";
import { arrayText } from "../postgres/parameters.ts";
import { makePartitions, type PartitionRange, partitionAt } from "../postgres/partitions.ts";
import type { Pool, Transaction } from "../postgres/pool.ts";
import { checksumText } from "./checksum.ts";
import { leavingMark, notEmpty } from "./leaving.ts";
import { literal, orderOf, type Part, partsOf, rowOf, selected, typeOf, viewOf } from "./postgres-layout.ts";
import { CopyWriter, readCopy } from "./row-bytes.ts";
import { usedMeanwhile } from "./sqlite-side.ts";
import { hasLatencies, mergeLatencies } from "./stat-rows.ts";
import {
  type Batch,
  batchBytes,
  batchRows,
  type Cell,
  type ColumnType,
  keyColumns,
  keyPlaces,
  type Progress,
  type Readiness,
  type Row,
  type Searched,
  type Source,
  type Table,
  type TableName,
  type Target,
  tableNames,
} from "./tables.ts";

type Found = Record<string, Cell>;

/**
 * A database that no living node uses.
 * @param streams connections on which whole tables are read, which may take any length of time
 */
export function createPostgresSource(
  pool: Pool,
  streams: Pool,
  place: string,
  newMove: () => string,
): Source & Searched {
  return {
    place,
    async count(table) {
      const [row] = await unplanned(pool, (tx) =>
        tx.run<{ n: number }>(`select count(*)::float8 as n from (${viewOf(table)}) v`),
      );
      return row?.n ?? 0;
    },
    read: (table, position) => batches(streams, table, position),
    find: (table, rows) => find(pool, table, rows),
    highestKeys: () => highestKeys(pool),
    async leave(to, readinessFor, again) {
      const mark = await readMoveMark(pool);
      const readiness = mark === null ? "empty" : await readinessFor(mark.move);
      const wayThere = "start a server there";
      const next = leavingMark({ mark, place, to, readiness, again, wayThere, newMove });
      if (next !== mark) await pool.transact((tx) => writeMoveMark(tx, next));
      return next.move;
    },
    async markLeft(move) {
      await refuseLivingNodes(pool, place);
      const mark = await readMoveMark(pool);
      if (mark?.move !== move) throw usedMeanwhile(place);
      await pool.transact((tx) => writeMoveMark(tx, { ...mark, role: "left" }));
    },
  };
}

/**
 * A database with the current schema that no living node uses.
 * @param onArrive part of the transaction that reserves it; done again when a move is continued
 */
export function createPostgresTarget(
  pool: Pool,
  place: string,
  from: string,
  onArrive: (tx: Transaction) => Promise<void>,
): Target & Searched {
  const partitions = createPartitions(pool);

  async function readinessFor(move: string): Promise<Readiness> {
    const mark = await readMoveMark(pool);
    if (mark?.role === "arriving" && mark.move === move) return "reserved";
    return mark !== null || (await hasRows(pool)) ? "taken" : "empty";
  }

  return {
    place,
    find: (table, rows) => find(pool, table, rows),
    readinessFor,
    async arrive(move) {
      const readiness = await readinessFor(move);
      if (readiness === "taken") throw notEmpty(place);
      // They may have been replaced since the move began.
      if (readiness === "reserved") await pool.transact(onArrive);
      else {
        await pool.transact(async (tx) => {
          // If two moves start at the same time, the second one finds that the table exists, and nothing of it is written.
          await tx.run(
            `create table move_progress
              (name text primary key, position text, rows bigint not null, checksum text not null, done boolean not null)`,
          );
          await tx.run(
            `insert into move_progress select name, null, 0, '0', false from unnest($1::text[]) as given(name)`,
            [arrayText(tableNames)],
          );
          await putIndexesOff(tx);
          await onArrive(tx);
          await writeMoveMark(tx, { move, role: "arriving", place: from });
        });
      }
      const rows = await pool.read<{
        name: string;
        position: string | null;
        rows: number;
        checksum: string;
        done: boolean;
      }>("select name, position, rows::float8 as rows, checksum, done from move_progress");
      return new Map(
        rows.map(({ name, position, rows, checksum, done }): [string, Progress] => [
          name,
          { position, rows, checksum: BigInt(checksum), isDone: done },
        ]),
      );
    },
    async write(table, rows, before, { position, rows: count, checksum, isDone }) {
      await partitions.makeFor(table, rows);
      await pool.transact(async (tx) => {
        const own = await tx.run(
          `update move_progress set position = $2::text, rows = $3::bigint, checksum = $4::text, done = $5::boolean
            where name = $1::text and rows = $6::bigint and not done returning 1`,
          [table.name, position, count, String(checksum), isDone, before.rows],
        );
        if (own.length === 0) throw writtenByAnother();
        for (const part of partsOf(table)) {
          const taken = part.takes ? rows.filter(part.takes) : rows;
          if (taken.length > 0) await insert(tx, table, part, taken);
        }
      });
    },
    async index(onIndex) {
      const left = await pool.read<{ name: string; text: string }>("select name, text from move_index order by name");
      for (const { name, text } of left) {
        onIndex(name);
        await pool.transact(async (tx) => {
          await tx.run(`set local maintenance_work_mem = '${indexMemory}'`);
          await tx.run(text);
          await tx.run("delete from move_index where name = $1::text", [name]);
        });
      }
    },
    async sum(table) {
      const [row] = await unplanned(pool, (tx) =>
        tx.run<{ rows: number; checksum: string }>(
          `select count(*)::float8 as rows, ${checksumText(table)} as checksum from (${viewOf(table)}) v`,
        ),
      );
      return { rows: row?.rows ?? 0, checksum: BigInt(row?.checksum ?? 0) };
    },
    async settle(highest) {
      for (const { table } of await identities(pool)) {
        await pool.write(
          `select setval(pg_get_serial_sequence($1::text, 'key'), greatest(last, 1), last > 0)::text
            from (select greatest((select max(key) from "${table}"), $2::bigint, 0) as last) l`,
          [`"${table}"`, highest.get(table as TableName) ?? 0],
        );
      }
      await pool.write("analyze");
      await pool.transact(async (tx) => {
        // What was written before may not have been on disk yet; after this commit it is.
        await tx.run("set local synchronous_commit = on");
        await tx.run("update move_progress set done = done");
      });
    },
    async miscounted() {
      const found = await unplanned(pool, (tx) => tx.run<{ id: string }>(miscountedText));
      return found.map(({ id }) => id);
    },
    async markArrived() {
      await refuseLivingNodes(pool, place);
      await pool.transact(async (tx) => {
        await tx.run("set local synchronous_commit = on");
        for (const table of ["move_progress", "move_index", "move_mark"]) await tx.run(`drop table ${table}`);
      });
    },
  };
}

export const writtenByAnother = () =>
  new StartupError("Another postrider move writes to this database. Try: wait until it has ended.");

/** @throws StartupError when a server uses the database */
export async function refuseLivingNodes(pool: Pool, place: string): Promise<void> {
  const living = await pool.read<{ name: string }>(
    "select name from node where lease_until > clock_timestamp() order by slot",
  );
  if (living.length === 0) return;
  const names = living.map(({ name }) => name).join(", ");
  throw new StartupError(
    `Servers are using ${place} (${names}). Try: stop them all first; one that was killed counts for 20 s.`,
  );
}

const miscountedText = `
  with by_state as (
    select tenant_key, sum(pending) as pending, sum(delivered) as delivered, sum(failed) as failed,
      sum(skipped) as skipped from (
      select tenant_key, count(*) as pending, 0 as delivered, 0 as failed, 0 as skipped from pending group by tenant_key
      union all
      select tenant_key, 0, count(*) filter (where state = 1), count(*) filter (where state = 2),
          count(*) filter (where state = 3)
        from delivery group by tenant_key) s group by tenant_key),
  counted as (select tenant_key, sum(pending) as pending, sum(delivered) as delivered, sum(failed) as failed,
      sum(skipped) as skipped
    from usage group by tenant_key)
  select tenant.id from tenant join counted u on u.tenant_key = tenant.key
    left join by_state c on c.tenant_key = tenant.key
   where tenant.deleted_at is null and (u.pending, u.delivered, u.failed, u.skipped)
     is distinct from (coalesce(c.pending, 0), coalesce(c.delivered, 0), coalesce(c.failed, 0), coalesce(c.skipped, 0))`;

async function hasRows(pool: Pool): Promise<boolean> {
  const tables = new Set(tableNames.flatMap((name) => (name === "tenant_usage" ? ["usage"] : [name])));
  for (const table of [...tables, "pending"]) {
    if ((await pool.read(`select 1 from "${table}" limit 1`)).length > 0) return true;
  }
  return false;
}

/** Runs statements that read whole tables, for which indexes are of no use. */
const unplanned = <T>(pool: Pool, work: (tx: Transaction) => Promise<T>): Promise<T> =>
  pool.transact(async (tx) => {
    for (const way of ["seqscan", "hashjoin", "mergejoin"]) await tx.run(`set local enable_${way} = on`);
    return work(tx);
  });

/** Memory for each index build: sorting on disk takes longer. */
const indexMemory = "128MB";

/**
 * Written row by row, indexes take longer than the rows; created at the end, they take a few seconds per million. The statement
 * that creates each one is kept in the database, so that a resumed move can run it.
 */
async function putIndexesOff(tx: Transaction): Promise<void> {
  await tx.run(
    `create table move_index as
      select relname::text as name, coalesce('alter table ' || indrelid::regclass || ' add constraint ' || quote_ident(conname)
          || ' ' || pg_get_constraintdef(pg_constraint.oid),
        replace(pg_get_indexdef(indexrelid), ' ON ONLY ', ' ON ')) as text,
        coalesce('alter table ' || indrelid::regclass || ' drop constraint ' || quote_ident(conname),
          'drop index ' || indexrelid::regclass) as removal
      from pg_index join pg_class on pg_class.oid = indexrelid left join pg_constraint on conindid = indexrelid
      where indrelid in ('event'::regclass, 'pending'::regclass, 'delivery'::regclass, 'attempt'::regclass)`,
  );
  for (const { removal } of await tx.run<{ removal: string }>("select removal from move_index")) await tx.run(removal);
}

async function insert(tx: Transaction, table: Table, { into, columns }: Part, rows: readonly Row[]): Promise<void> {
  const places = columns.map(({ from }) => table.columns.findIndex(({ name }) => name === from));
  const types = columns.map(({ type }, i): ColumnType => table.columns[places[i] ?? -1]?.type ?? type ?? "smallint");
  const writer = new CopyWriter();
  for (const row of rows) {
    writer.row(places.length);
    for (let i = 0; i < places.length; i++) {
      const place = places[i] ?? -1;
      writer.cell(place < 0 ? 0 : (row[place] ?? null), types[i] ?? "smallint");
    }
  }
  const names = columns.map(({ name }) => name).join(", ");
  await tx.copyIn(`copy ${into} (${names}) from stdin (format binary)`, writer.end());
}

async function find(pool: Pool, table: Table, rows: readonly Row[]): Promise<readonly Row[]> {
  const keys = keyColumns(table.name);
  const given = keys.map((key, i) => `$${i + 1}::${typeOf(table.columns, key)}[]`);
  // Without the offset, grouped views are grouped as a whole, and the result is scanned from end to end for each key.
  const found = await pool.read<Found>(
    `select ${selected(table)} from unnest(${given.join(", ")}) as given(${keys.map((_, i) => `given_${i}`).join(", ")})
      cross join lateral (select * from (${viewOf(table)}) whole
        where ${keys.map((key, i) => `whole.${key} = given_${i}`).join(" and ")} offset 0) v`,
    keyPlaces(table).map((place) => arrayText(rows.map((row) => row[place] as number | string))),
  );
  const there = found.map((one) => rowOf(table, one));
  return hasLatencies(table) ? mergeLatencies(table, there) : there;
}

/** One statement for all remaining rows of a table: no index has them in this order, so they are sorted once. */
async function* batches(streams: Pool, table: Table, position: string | null): AsyncGenerator<Batch> {
  const order = orderOf(table.name);
  const places = order.map((name) => table.columns.findIndex((column) => column.name === name));
  const given: (string | number)[] = position === null ? [] : JSON.parse(position);
  const at = given.map((value, i) => literal(value, typeOf(table.columns, order[i] ?? "")));
  const after = position === null ? "" : `where (${order.join(", ")}) > (${at.join(", ")})`;
  const chunks = streams.copyOut(
    `copy (select ${table.columns.map(({ name }) => name).join(", ")} from (${viewOf(table)}) v ${after}
      order by ${order.join(", ")}) to stdout (format binary)`,
  );
  const toBatch = (rows: readonly Row[]): Batch => ({
    rows: hasLatencies(table) ? mergeLatencies(table, rows) : rows,
    position: JSON.stringify(places.map((place) => rows.at(-1)?.[place])),
  });
  let rows: Row[] = [];
  let bytes = 0;
  for await (const read of readCopy(chunks, table.columns)) {
    for (const row of read) {
      rows.push(row);
      for (const cell of row) if (cell instanceof Uint8Array) bytes += cell.length;
    }
    if (rows.length < batchRows && bytes < batchBytes) continue;
    yield toBatch(rows);
    rows = [];
    bytes = 0;
  }
  if (rows.length > 0) yield toBatch(rows);
}

const identities = (pool: Pool) =>
  pool.read<{ table: string }>(
    `select table_name::text as "table" from information_schema.columns
      where table_schema = current_schema() and column_name = 'key' and is_identity = 'YES'`,
  );

async function highestKeys(pool: Pool): Promise<ReadonlyMap<TableName, number>> {
  const highest = new Map<TableName, number>();
  for (const { table } of await identities(pool)) {
    const [row] = await pool.read<{ last: number }>(
      `select coalesce(pg_sequence_last_value(pg_get_serial_sequence($1::text, 'key')::regclass), 0)::float8 as last`,
      [`"${table}"`],
    );
    if (row && row.last > 0) highest.set(table as TableName, row.last);
  }
  return highest;
}

/** The partitions for the records of each month, created as their events come up. */
function createPartitions(pool: Pool) {
  const known: PartitionRange[] = [];
  let making: Promise<void> = Promise.resolve();

  const isKnown = (seq: number) => known.some(({ fromSeq, toSeq }) => seq >= fromSeq && seq < toSeq);

  async function make(seq: number): Promise<void> {
    // If this fails, another table's batch is in the way, and that will end.
    while (!(await makePartitions(pool, "month", ingestedAtMs(seq))));
    known.push(partitionAt("month", ingestedAtMs(seq)));
  }

  return {
    async makeFor({ columns }: Table, rows: readonly Row[]): Promise<void> {
      const place = columns.findIndex(({ name }) => name === "event_seq" || name === "seq");
      if (place < 0) return;
      making = making.then(async () => {
        for (const row of rows) if (!isKnown(Number(row[place]))) await make(Number(row[place]));
      });
      await making;
    },
  };
}
