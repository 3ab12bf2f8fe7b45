import type { Database } from "bun:sqlite";
import { StartupError } from "../../domain/errors.ts";
import { checksumOf as payloadChecksum } from "../sqlite/damage.ts";
import { readMoveMark, writeMoveMark } from "../sqlite/move-mark.ts";
import { checksumOf } from "./checksum.ts";
import {
  type Batch,
  batchBytes,
  type Cell,
  type Column,
  isLabel,
  keyColumns,
  keyPlaces,
  type Row,
  type Source,
  type Table,
  type TableName,
  type Target,
  tableNames,
} from "./tables.ts";

/** A database file, as whoever has its folder's lock opened it. */
export function createSqliteSource(client: Database, place: string, newMove: () => string): Source {
  return {
    place,
    count: async ({ name }) => countRows(client, name),
    read: async (table, position, limit) => readBatch(client, table, position, limit),
    highestKeys: async () => {
      const rows = client.query<{ name: TableName; seq: number }, []>("select name, seq from sqlite_sequence").all();
      return new Map(rows.filter(({ name }) => tableNames.includes(name)).map(({ name, seq }) => [name, seq]));
    },
    async leave(to) {
      const mark = readMoveMark(client);
      if (mark?.role === "left" || mark?.role === "arriving") {
        throw new StartupError(
          mark.role === "left"
            ? `The data of ${place} was moved to ${mark.place} already. Try: set POSTRIDER_DATABASE_URL to that database.`
            : `The move to ${place} from ${mark.place} has not ended. Try: end that one first.`,
        );
      }
      if (mark?.place === to) return mark.move;
      const move = newMove();
      writeMoveMark(client, { move, role: "leaving", place: to });
      return move;
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
    `A server has used ${place} since the move began, so the copy may lack something. Try: stop it, empty the new place, and run postrider move again.`,
  );

/** A new database file. */
export function createSqliteTarget(client: Database, place: string, from: string): Target {
  client.run("pragma foreign_keys = off");
  // Nobody else copies the log back meanwhile.
  client.run("pragma wal_autocheckpoint = 1000");
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
    async arrive(move) {
      const mark = readMoveMark(client);
      if (mark === null || mark.role !== "arriving" || mark.move !== move) {
        if (mark !== null || tableNames.some((name) => countRows(client, name) > 0)) throw notEmpty(place);
        client.run(
          `create table move_progress (name text primary key, position text, "rows" integer, checksum text, done integer)`,
        );
        writeMoveMark(client, { move, role: "arriving", place: from });
      }
      const rows = client
        .query<{ name: string; position: string; rows: number; checksum: string; done: number }, []>(
          "select * from move_progress",
        )
        .all();
      return new Map(
        rows.map(({ name, position, rows, checksum, done }) => [
          name,
          { position, rows, checksum: BigInt(checksum), isDone: done === 1 },
        ]),
      );
    },
    async write(table, rows, { position, rows: count, checksum, isDone }) {
      const insert = insertOf(table);
      const payload = table.columns.findIndex(({ name }) => name === "payload");
      client.transaction(() => {
        for (const row of rows) {
          const cells = row.map((cell, i) => toSqlite(cell, table, table.columns[i]));
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
    async sum(table) {
      let rows = 0;
      let checksum = 0n;
      for (let position: string | null = null; ; ) {
        const batch = readBatch(client, table, position, sumBatch);
        if (batch.rows.length === 0) return { rows, checksum };
        rows += batch.rows.length;
        checksum += checksumOf(batch.rows);
        position = batch.position;
      }
    },
    async find(table, rows) {
      const places = keyPlaces(table);
      const query = client.query(
        `select ${namesOf(table)} from ${table.name}
          where ${keyColumns(table.name)
            .map((key, i) => `${key} = ?${i + 1}`)
            .join(" and ")}`,
      );
      return rows.flatMap((row) => {
        const found = query.values(...(places.map((place) => row[place] ?? null) as never[]));
        return found.map((cells) => cells.map((cell, i) => fromSqlite(cell as Cell, table, table.columns[i])));
      });
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
    },
    async miscounted() {
      return client
        .query<{ id: string }, []>(miscountedText)
        .all()
        .map(({ id }) => id);
    },
    async markArrived() {
      client.transaction(() => {
        client.run("drop table move_progress");
        client.run("drop table move_mark");
      })();
      client.run("pragma wal_checkpoint(truncate)");
    },
  };
}

export const notEmpty = (place: string) =>
  new StartupError(
    `${place} has something in it that is not of this move. Try: name an empty place; what is there is unchanged.`,
  );

const miscountedText = `
  with counted as (select tenant_key, state, count(*) as n from delivery group by tenant_key, state),
    by_state as (select tenant_key, sum(iif(state = 0, n, 0)) as pending, sum(iif(state = 1, n, 0)) as delivered,
      sum(iif(state = 2, n, 0)) as failed from counted group by tenant_key)
  select tenant.id from tenant join tenant_usage u on u.tenant_key = tenant.key
    left join by_state c on c.tenant_key = tenant.key
   where tenant.deleted_at is null and (u.pending, u.delivered, u.failed)
     <> (coalesce(c.pending, 0), coalesce(c.delivered, 0), coalesce(c.failed, 0))`;

const sumBatch = 10_000;

/** Whether SQLite remembers the highest key that the table ever had. */
const countsKeys = (client: Database, name: string): boolean =>
  client.query("select 1 from sqlite_schema where name = ?1 and sql like '%autoincrement%'").get(name) !== null;

const namesOf = ({ columns }: Table) => columns.map(({ name }) => name).join(", ");

const countRows = (client: Database, name: string): number =>
  client.query<{ n: number }, []>(`select count(*) as n from ${name}`).get()?.n ?? 0;

/** In the order of row numbers, which every table has. */
function readBatch(client: Database, table: Table, position: string | null, limit: number): Batch {
  const columns = ["rowid as row_number", ...table.columns.map(({ name }) => name)].join(", ");
  const query = client.query<Record<string, Cell>, [number, number]>(
    `select ${columns} from ${table.name} where rowid > ?1 order by rowid limit ?2`,
  );
  const found: Cell[][] = [];
  let bytes = 0;
  for (const one of query.iterate(position === null ? -1 : Number(position), limit)) {
    const cells = Object.values(one);
    for (const cell of cells) if (cell instanceof Uint8Array) bytes += cell.length;
    found.push(cells);
    if (bytes >= batchBytes) break;
  }
  const last = found.at(-1);
  return {
    rows: found.map(([, ...cells]): Row => cells.map((cell, i) => fromSqlite(cell, table, table.columns[i]))),
    position: last ? String(last[0]) : position,
  };
}

function fromSqlite(cell: Cell, table: Table, column: Column | undefined): Cell {
  if (cell === null || column === undefined) return cell;
  if (column.type === "boolean") return cell === 1;
  return isLabel(table.name, column.name) ? JSON.stringify(cell) : cell;
}

function toSqlite(cell: Cell, table: Table, column: Column | undefined): Cell {
  if (cell === null || column === undefined) return cell;
  if (typeof cell === "boolean") return cell ? 1 : 0;
  return isLabel(table.name, column.name) ? JSON.parse(String(cell)) : cell;
}
