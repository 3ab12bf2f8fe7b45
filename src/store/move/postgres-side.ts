import { StartupError } from "../../domain/errors.ts";
import { ingestedAtMs } from "../../lib/id.ts";
import { readMoveMark, writeMoveMark } from "../postgres/move-mark.ts";
import { arrayText, packBytes } from "../postgres/parameters.ts";
import { makePartitions, type PartitionRange, partitionAt } from "../postgres/partitions.ts";
import type { Pool, Transaction, Value } from "../postgres/pool.ts";
import { checksumText } from "./checksum.ts";
import {
  keyText,
  keyValues,
  type Part,
  partsOf,
  recordsText,
  rowOf,
  selected,
  typeOf,
  viewOf,
} from "./postgres-layout.ts";
import { notEmpty, usedMeanwhile } from "./sqlite-side.ts";
import { mergeLatencies } from "./stat-rows.ts";
import {
  type Batch,
  batchBytes,
  type Cell,
  keyColumns,
  keyPlaces,
  type Row,
  type Source,
  type Table,
  type TableName,
  type Target,
  tableNames,
} from "./tables.ts";

type Found = Record<string, Cell>;

/** A database on which no node lives. */
export function createPostgresSource(pool: Pool, place: string, newMove: () => string): Source {
  return {
    place,
    async count(table) {
      const [row] = await unplanned(pool, (tx) =>
        tx.run<{ n: number }>(`select count(*)::float8 as n from (${viewOf(table)}) v`),
      );
      return row?.n ?? 0;
    },
    read: (table, position, limit) =>
      table.name === "delivery" ? readRecords(pool, table, position, limit) : readBatch(pool, table, position, limit),
    highestKeys: () => highestKeys(pool),
    async leave(to) {
      const mark = await readMoveMark(pool);
      if (mark?.role === "left" || mark?.role === "arriving") {
        throw new StartupError(
          mark.role === "left"
            ? `The data of ${place} was moved to ${mark.place} already. Try: start a server there.`
            : `The move to ${place} from ${mark.place} has not ended. Try: end that one first.`,
        );
      }
      if (mark?.place === to) return mark.move;
      const move = newMove();
      await pool.transact((tx) => writeMoveMark(tx, { move, role: "leaving", place: to }));
      return move;
    },
    async markLeft(move) {
      await refuseLivingNodes(pool, place);
      const mark = await readMoveMark(pool);
      if (mark?.move !== move) throw usedMeanwhile(place);
      await pool.transact((tx) => writeMoveMark(tx, { ...mark, role: "left" }));
    },
  };
}

/** A database with today's schema, on which no node lives. */
export function createPostgresTarget(pool: Pool, place: string, from: string): Target {
  const partitions = createPartitions(pool);
  return {
    place,
    async arrive(move) {
      const mark = await readMoveMark(pool);
      if (mark === null || mark.role !== "arriving" || mark.move !== move) {
        if (mark !== null || (await hasRows(pool))) throw notEmpty(place);
        await pool.transact(async (tx) => {
          // Two that come at once: the second one finds the table, and nothing of it is written.
          await tx.run(
            `create table move_progress
              (name text primary key, position text, rows bigint not null, checksum text not null, done boolean not null)`,
          );
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
        rows.map(({ name, position, rows, checksum, done }) => [
          name,
          { position, rows, checksum: BigInt(checksum), isDone: done },
        ]),
      );
    },
    async write(table, rows, { position, rows: count, checksum, isDone }) {
      await partitions.makeFor(table, rows);
      await pool.transact(async (tx) => {
        for (const part of partsOf(table)) {
          const taken = part.takes ? rows.filter(part.takes) : rows;
          if (taken.length > 0) await insert(tx, table, part, taken);
        }
        await tx.run(
          `insert into move_progress (name, position, rows, checksum, done)
            values ($1::text, $2::text, $3::bigint, $4::text, $5::boolean)
            on conflict (name) do update set position = excluded.position, rows = excluded.rows,
              checksum = excluded.checksum, done = excluded.done`,
          [table.name, position, count, String(checksum), isDone],
        );
      });
    },
    async sum(table) {
      const [row] = await unplanned(pool, (tx) =>
        tx.run<{ rows: number; checksum: string }>(
          `select count(*)::float8 as rows, ${checksumText(table)} as checksum from (${viewOf(table)}) v`,
        ),
      );
      return { rows: row?.rows ?? 0, checksum: BigInt(row?.checksum ?? 0) };
    },
    async find(table, rows) {
      const keys = keyColumns(table.name);
      const given = keys.map((key, i) => `$${i + 1}::${typeOf(table.columns, key)}[]`);
      const found = await pool.read<Found>(
        `select ${selected(table)} from unnest(${given.join(", ")}) as given(${keys.map((_, i) => `given_${i}`).join(", ")})
          cross join lateral (select * from (${viewOf(table)}) whole
            where ${keys.map((key, i) => `whole.${key} = given_${i}`).join(" and ")}) v`,
        keyPlaces(table).map((place) => arrayText(rows.map((row) => row[place] as number | string))),
      );
      return found.map((one) => rowOf(table, one));
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
    },
    async miscounted() {
      const found = await unplanned(pool, (tx) => tx.run<{ id: string }>(miscountedText));
      return found.map(({ id }) => id);
    },
    async markArrived() {
      await refuseLivingNodes(pool, place);
      await pool.transact(async (tx) => {
        // The copies before it need not have been on disk yet; with this one they are.
        await tx.run("set local synchronous_commit = on");
        await tx.run("drop table move_progress");
        await tx.run("drop table move_mark");
      });
    },
  };
}

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
    select tenant_key, sum(pending) as pending, sum(delivered) as delivered, sum(failed) as failed from (
      select tenant_key, count(*) as pending, 0 as delivered, 0 as failed from pending group by tenant_key
      union all
      select tenant_key, 0, count(*) filter (where state = 1), count(*) filter (where state = 2)
        from delivery group by tenant_key) s group by tenant_key),
  counted as (select tenant_key, sum(pending) as pending, sum(delivered) as delivered, sum(failed) as failed
    from usage group by tenant_key)
  select tenant.id from tenant join counted u on u.tenant_key = tenant.key
    left join by_state c on c.tenant_key = tenant.key
   where tenant.deleted_at is null and (u.pending, u.delivered, u.failed)
     is distinct from (coalesce(c.pending, 0), coalesce(c.delivered, 0), coalesce(c.failed, 0))`;

async function hasRows(pool: Pool): Promise<boolean> {
  const tables = new Set(tableNames.flatMap((name) => (name === "tenant_usage" ? ["usage"] : [name])));
  for (const table of [...tables, "pending"]) {
    if ((await pool.read(`select 1 from "${table}" limit 1`)).length > 0) return true;
  }
  return false;
}

/** A statement that reads whole tables, which no index helps. */
const unplanned = <T>(pool: Pool, work: (tx: Transaction) => Promise<T>): Promise<T> =>
  pool.transact(async (tx) => {
    for (const way of ["seqscan", "hashjoin", "mergejoin"]) await tx.run(`set local enable_${way} = on`);
    return work(tx);
  });

async function insert(tx: Transaction, table: Table, part: Part, rows: readonly Row[]): Promise<void> {
  const values: Value[] = [];
  const arrays: string[] = [];
  const names: string[] = [];
  const made = new Map<string, string>();
  const add = (value: Value, type: string) => `$${values.push(value)}::${type}`;
  const used = new Set(part.columns.map(({ from }) => from));
  for (const [i, { name, type }] of table.columns.entries()) {
    if (!used.has(name)) continue;
    if (type === "bytea") {
      const given = rows.map((row) => row[i] as Uint8Array | null);
      const packed = packBytes(given.map((bytes) => bytes ?? new Uint8Array()));
      const bytes = add(packed.bytes, "bytea");
      const lengths = arrayText(given.map((bytes) => bytes?.length ?? null));
      arrays.push(add(packed.starts, "int[]"), add(lengths, "int[]"));
      names.push(`${name}_start`, `${name}_length`);
      // Of no length: there is none.
      made.set(name, `substring(${bytes} from ${name}_start for ${name}_length)`);
    } else {
      arrays.push(add(arrayText(rows.map((row) => plain(row[i] ?? null))), `${type}[]`));
      names.push(name);
    }
  }
  await tx.run(
    `insert into ${part.into} (${part.columns.map(({ name }) => name).join(", ")})
      select ${part.columns.map(({ from }) => made.get(from) ?? from).join(", ")}
        from unnest(${arrays.join(", ")}) as given(${names.join(", ")})`,
    values,
  );
}

const plain = (cell: Cell): number | string | null =>
  typeof cell === "boolean" ? String(cell) : (cell as number | string | null);

/** The next rows by their key. */
async function readBatch(pool: Pool, table: Table, position: string | null, limit: number): Promise<Batch> {
  const key = keyColumns(table.name);
  const at: (string | number)[] = position === null ? [] : JSON.parse(position);
  const after = position === null ? "" : `where ${keyText(table.name)} > ${keyValues(table)}`;
  const found = await pool.read<Found>(
    bounded(table, `select * from (${viewOf(table)}) v ${after} order by ${key.join(", ")} limit ${limit}`, key),
    at,
  );
  const rows = found.map((one) => rowOf(table, one));
  const last = rows.at(-1);
  const next = last && JSON.stringify(keyPlaces(table).map((place) => last[place]));
  return { rows: table.name === "stat" ? mergeLatencies(table, rows) : rows, position: next ?? position };
}

/** Of some rows in an order, those until they are too many bytes. */
function bounded(table: Table, text: string, order: readonly string[]): string {
  const bytes = table.columns.filter(({ type }) => type === "bytea");
  if (bytes.length === 0) return `select ${selected(table)} from (${text}) v order by ${order.join(", ")}`;
  const size = bytes.map(({ name }) => `coalesce(octet_length(${name}), 0)`).join(" + ");
  return `select ${selected(table)} from (
      select v.*, sum(${size}) over (order by ${order.join(", ")} rows unbounded preceding) - (${size}) as bytes_before
        from (${text}) v) w
    where bytes_before < ${batchBytes} order by ${order.map((column) => `w.${column}`).join(", ")}`;
}

/** Tenant by tenant, as both tables are found by it; of each first what waits, and the newest first. */
async function readRecords(pool: Pool, table: Table, position: string | null, limit: number): Promise<Batch> {
  const names = table.columns.map(({ name }) => name);
  type At = [tenantKey: number, from: "pending" | "delivery", seq: number, key: number];
  const top = Number.MAX_SAFE_INTEGER;
  let at: At = position === null ? [-1, "delivery", -1, 0] : JSON.parse(position);
  const rows: Row[] = [];
  const [, seqPlace = 0, keyPlace = 0] = keyPlaces(table);
  while (rows.length < limit) {
    const [tenantKey, from, seq, key] = at;
    const found = await pool.read<Found>(
      `select ${selected(table)} from (${recordsText(names, from)} where tenant_key = $1::bigint and event_seq <= $2::bigint
          and (event_seq < $2::bigint or key > $3::bigint) order by event_seq desc, key limit $4::int) v
        order by v.event_seq desc, v.key`,
      [tenantKey, seq, key, limit - rows.length],
    );
    for (const one of found) rows.push(rowOf(table, one));
    const last = found.length > 0 ? rows.at(-1) : undefined;
    if (last) at = [tenantKey, from, Number(last[seqPlace]), Number(last[keyPlace])];
    if (rows.length >= limit) break;
    if (from === "pending") at = [tenantKey, "delivery", top, 0];
    else {
      const [next] = await pool.read<{ key: number }>(
        "select key::float8 as key from tenant where key > $1::bigint order by key limit 1",
        [tenantKey],
      );
      if (!next) break;
      at = [next.key, "pending", top, 0];
    }
  }
  return { rows, position: JSON.stringify(at) };
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

/** Where records of each month go, made as their events are met. */
function createPartitions(pool: Pool) {
  const known: PartitionRange[] = [];
  let making: Promise<void> = Promise.resolve();

  async function make(seq: number): Promise<void> {
    if (known.some(({ fromSeq, toSeq }) => seq >= fromSeq && seq < toSeq)) return;
    // What is in the way is another table's batch, which ends.
    while (!(await makePartitions(pool, "month", ingestedAtMs(seq))));
    known.push(partitionAt("month", ingestedAtMs(seq)));
  }

  return {
    async makeFor({ columns }: Table, rows: readonly Row[]): Promise<void> {
      const place = columns.findIndex(({ name }) => name === "event_seq" || name === "seq");
      if (place < 0) return;
      making = making.then(async () => {
        for (const row of rows) await make(Number(row[place]));
      });
      await making;
    },
  };
}
