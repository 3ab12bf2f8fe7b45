import type { Database } from "bun:sqlite";
import { StartupError } from "../../domain/errors.ts";
import { checksumOf as payloadChecksum } from "../sqlite/damage.ts";
import { lookInto } from "../sqlite/look.ts";
import { addMissingCounters } from "../sqlite/missing-counters.ts";
import { readMoveMark, writeMoveMark } from "../sqlite/move-mark.ts";
import { keepTemporaryFilesIn } from "../sqlite/open.ts";
import { checksumOf } from "./checksum.ts";
import { leavingMark, notEmpty } from "./leaving.ts";
import {
  type Batch,
  batchBytes,
  batchRows,
  type Cell,
  type Column,
  isLabel,
  type Progress,
  type Readiness,
  type Row,
  type Sampled,
  type Source,
  type Table,
  type TableName,
  type Target,
  tableNames,
} from "./tables.ts";

/** A database file, opened by the holder of its folder's lock. */
export function createSqliteSource(client: Database, place: string, newMove: () => string): Source & Sampled {
  const { batches, sample } = createReader(client);
  return {
    place,
    count: async ({ name }) => countRows(client, name),
    async *read(table, position) {
      yield* batches(table, position);
    },
    sample,
    highestKeys: async () => {
      const rows = client.query<{ name: TableName; seq: number }, []>("select name, seq from sqlite_sequence").all();
      return new Map(rows.filter(({ name }) => tableNames.includes(name)).map(({ name, seq }) => [name, seq]));
    },
    async leave(to, readinessFor, again) {
      const mark = readMoveMark(client);
      const readiness = mark === null ? "empty" : await readinessFor(mark.move);
      const wayThere = "set POSTRIDER_DATABASE_URL to that database";
      const next = leavingMark({ mark, place, to, readiness, again, wayThere, newMove });
      if (next !== mark) writeMoveMark(client, next);
      return next.move;
    },
    async markLeft(move) {
      const mark = readMoveMark(client);
      if (mark?.move !== move) throw usedMeanwhile(place);
      writeMoveMark(client, { ...mark, role: "left" });
    },
  };
}

export const usedMeanwhile = (place: string) =>
  new StartupError(
    `A server or another move has used ${place} since the move began, so the copy may lack something. ` +
      "Try: stop it, empty the new place, and run postrider move again.",
  );

/** Page cache: also how much of an index is sorted in memory at a time. */
const cacheKib = 64 * 1024;
/** How long the log gets before it is copied back. */
const logPages = 20_000;

/**
 * Settings while the database is being filled. Commits are not synced, yet a crash of the machine loses at most the last ones:
 * the log is on disk before it is copied back.
 */
const settingsOfCopying = [
  "foreign_keys = off",
  "synchronous = normal",
  `wal_autocheckpoint = ${logPages}`,
  `cache_size = -${cacheKib}`,
];

/**
 * How ready the database in a folder is, before it is opened for a move: that may upgrade it.
 * @throws StartupError when it cannot be read
 */
export const readinessOfFolder = (folder: string, move: string): Readiness =>
  lookInto(folder, (client) => readinessFor(client, move)) ?? "empty";

function readinessFor(client: Database, move: string): Readiness {
  const mark = readMoveMark(client);
  if (mark?.role === "arriving" && mark.move === move) return "reserved";
  // A database of an earlier release lacks some of them.
  const has = (name: string) => client.query("select 1 from sqlite_schema where name = ?1").get(name) !== null;
  return mark !== null || tableNames.some((name) => has(name) && countRows(client, name) > 0) ? "taken" : "empty";
}

/**
 * A new database file.
 * @param onArrive part of the transaction that reserves it; done again when a move is continued
 */
export function createSqliteTarget(
  client: Database,
  place: string,
  from: string,
  onArrive: () => void,
): Target & Sampled {
  for (const setting of settingsOfCopying) client.query(`pragma ${setting}`).all();
  keepTemporaryFilesIn(client, place);
  const { batches, sample } = createReader(client);
  const inserts = new Map<string, ReturnType<Database["query"]>>();

  function insertOf({ name, columns }: Table) {
    const known = inserts.get(name);
    if (known) return known;
    const names = [...columns.map((column) => column.name), ...(name === "event" ? ["checksum"] : [])];
    const made = client.query(
      `insert into ${name} (${names.join(", ")}) values (${names.map((_, i) => `?${i + 1}`).join(", ")})`,
    );
    inserts.set(name, made);
    return made;
  }

  return {
    place,
    sample,
    readinessFor: async (move) => readinessFor(client, move),
    async arrive(move) {
      const readiness = readinessFor(client, move);
      if (readiness === "taken") throw notEmpty(place);
      // They may have been replaced since the move began.
      if (readiness === "reserved") onArrive();
      else {
        client.transaction(() => {
          client.run(
            `create table move_progress (name text primary key, position text, "rows" integer, checksum text, done integer)`,
          );
          putIndexesOff(client);
          onArrive();
          writeMoveMark(client, { move, role: "arriving", place: from });
        })();
      }
      const rows = client
        .query<{ name: string; position: string; rows: number; checksum: string; done: number }, []>(
          "select * from move_progress",
        )
        .all();
      return new Map(
        rows.map(({ name, position, rows, checksum, done }): [string, Progress] => [
          name,
          { position, rows, checksum: BigInt(checksum), isDone: done === 1 },
        ]),
      );
    },
    async write(table, rows, _, { position, rows: count, checksum, isDone }) {
      const insert = insertOf(table);
      const payload = table.columns.findIndex(({ name }) => name === "payload");
      const converted = table.columns.flatMap((column, i) => (isConverted(table, column) ? [i] : []));
      client.transaction(() => {
        for (const row of rows) {
          const cells = [...row];
          for (const i of converted) cells[i] = toSqlite(cells[i] ?? null);
          const bytes = row[payload];
          if (table.name === "event" && bytes instanceof Uint8Array) cells.push(payloadChecksum(bytes));
          insert.run(...(cells as never[]));
        }
        client.run("insert or replace into move_progress values (?1, ?2, ?3, ?4, ?5)", [
          table.name,
          position,
          count,
          String(checksum),
          isDone ? 1 : 0,
        ]);
      })();
    },
    async index(onIndex) {
      const query = client.query<{ name: string; text: string }, []>("select name, text from move_index order by name");
      for (const { name, text } of query.all()) {
        onIndex(name);
        // Lets the caller show which one.
        await Bun.sleep(0);
        client.transaction(() => {
          client.run(text);
          client.run("delete from move_index where name = ?1", [name]);
        })();
      }
    },
    async sum(table) {
      let rows = 0;
      let checksum = 0n;
      for (const batch of batches(table, null)) {
        rows += batch.rows.length;
        checksum += checksumOf(table, batch.rows);
        await Bun.sleep(0);
      }
      return { rows, checksum };
    },
    async settle(highestKeys) {
      client.transaction(() => {
        for (const [name, highest] of highestKeys) {
          if (!countsKeys(client, name)) continue;
          if (client.query(`select 1 from sqlite_sequence where name = ?1`).get(name) === null) {
            client.run("insert into sqlite_sequence (name, seq) values (?1, 0)", [name]);
          }
          client.run("update sqlite_sequence set seq = max(seq, ?2) where name = ?1", [name, highest]);
        }
      })();
      const orphans = client.query("pragma foreign_key_check").all().length;
      if (orphans > 0) throw new StartupError(`${orphans} rows of ${from} lack what they belong to; it is unchanged.`);
      client.run("pragma synchronous = full");
      client.run("pragma wal_checkpoint(truncate)");
    },
    async miscounted() {
      return client
        .query<{ id: string }, []>(miscountedText)
        .all()
        .map(({ id }) => id);
    },
    async markArrived() {
      client.transaction(() => {
        for (const table of ["move_progress", "move_index", "move_mark"]) client.run(`drop table ${table}`);
        // Not earlier: until here, a move that is continued compares the tables with those of the source.
        addMissingCounters(client);
      })();
      client.run("pragma wal_checkpoint(truncate)");
    },
  };
}

/**
 * Written row by row, an index that is not in the order of the rows takes twice as long as the rows. So those of the two
 * largest tables are dropped here, and made again at the end.
 */
function putIndexesOff(client: Database): void {
  client.run("create table move_index (name text primary key, text text)");
  const large = "type = 'index' and tbl_name in ('delivery', 'attempt') and sql is not null";
  client.run(`insert into move_index select name, sql from sqlite_schema where ${large}`);
  const names = client.query<{ name: string }, []>("select name from move_index").all();
  for (const { name } of names) client.run(`drop index ${name}`);
}

const miscountedText = `
  with counted as (select tenant_key, state, count(*) as n from delivery group by tenant_key, state),
    by_state as (select tenant_key, sum(iif(state = 0, n, 0)) as pending, sum(iif(state = 1, n, 0)) as delivered,
      sum(iif(state = 2, n, 0)) as failed, sum(iif(state = 3, n, 0)) as skipped from counted group by tenant_key)
  select tenant.id from tenant join tenant_usage u on u.tenant_key = tenant.key
    left join by_state c on c.tenant_key = tenant.key
   where tenant.deleted_at is null and (u.pending, u.delivered, u.failed, u.skipped)
     <> (coalesce(c.pending, 0), coalesce(c.delivered, 0), coalesce(c.failed, 0), coalesce(c.skipped, 0))`;

/** Whether SQLite remembers the highest key the table has ever had. */
const countsKeys = (client: Database, name: string): boolean =>
  client.query("select 1 from sqlite_schema where name = ?1 and sql like '%autoincrement%'").get(name) !== null;

const countRows = (client: Database, name: string): number =>
  client.query<{ n: number }, []>(`select count(*) as n from ${name}`).get()?.n ?? 0;

/** Reads tables by row number, which every table has. */
function createReader(client: Database) {
  /** For each table that was read from its beginning, the row numbers after which its batches began. */
  const starts = new Map<TableName, number[]>();

  function* batches(table: Table, position: string | null): Generator<Batch> {
    const begun: number[] = [];
    if (position === null) starts.set(table.name, begun);
    for (let after = position === null ? beforeAll : Number(position); ; ) {
      const { rows, last } = readRows(client, table, after, batchRows);
      if (rows.length === 0) return;
      begun.push(after);
      after = last;
      yield { rows, position: String(last) };
    }
  }

  function startsOf({ name }: Table): readonly number[] {
    const found = client.query<{ after: number }, [number]>(
      `select number - 1 as after from
        (select rowid as number, row_number() over (order by rowid) as place from ${name}) where place % ?1 = 1`,
    );
    return starts.get(name) ?? found.all(batchRows).map(({ after }) => after);
  }

  return {
    batches,
    *sample(table: Table, atLeast: number): Generator<readonly Row[]> {
      const begun = startsOf(table);
      // The last batch may have only a few rows.
      const ofEach = Math.ceil(atLeast / Math.max(begun.length - 1, 1));
      for (const [i, start] of begun.entries()) {
        let after = start;
        for (let left = ofEach; left > 0; ) {
          const { rows, last } = readRows(client, table, after, Math.min(left, batchRows), begun[i + 1]);
          if (rows.length === 0) break;
          yield rows;
          left -= rows.length;
          after = last;
        }
      }
    },
  };
}

const beforeAll = -1;

function readRows(
  client: Database,
  table: Table,
  after: number,
  limit: number,
  upTo = Number.MAX_SAFE_INTEGER,
): { rows: Row[]; last: number } {
  const columns = ["rowid as row_number", ...table.columns.map(({ name }) => name)].join(", ");
  const query = client.query<Record<string, Cell>, [number, number, number]>(
    `select ${columns} from ${table.name} where rowid > ?1 and rowid <= ?2 order by rowid limit ?3`,
  );
  const converted = table.columns.flatMap((column, i) => (isConverted(table, column) ? [i] : []));
  const rows: Row[] = [];
  let last = after;
  let bytes = 0;
  for (const one of query.iterate(after, upTo, limit)) {
    const [number, ...cells] = Object.values(one);
    for (const cell of cells) if (cell instanceof Uint8Array) bytes += cell.length;
    for (const i of converted) cells[i] = fromSqlite(cells[i] ?? null, table.columns[i]);
    rows.push(cells);
    last = Number(number);
    if (bytes >= batchBytes) break;
  }
  return { rows, last };
}

const isConverted = ({ name }: Table, column: Column): boolean =>
  column.type === "boolean" || isLabel(name, column.name);

function fromSqlite(cell: Cell, column: Column | undefined): Cell {
  if (cell === null) return cell;
  return column?.type === "boolean" ? cell === 1 : JSON.stringify(cell);
}

function toSqlite(cell: Cell): Cell {
  if (cell === null) return cell;
  if (typeof cell === "boolean") return cell ? 1 : 0;
  return JSON.parse(String(cell));
}
