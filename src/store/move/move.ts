import type { Database } from "bun:sqlite";
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { DomainError, StartupError } from "../../domain/errors.ts";
import type { Clock } from "../../lib/clock.ts";
import { isDiskFull } from "../../lib/disk-full.ts";
import { messageOf } from "../../lib/error-message.ts";
import { newId } from "../../lib/id.ts";
import { createVault } from "../../lib/vault.ts";
import { OutcomeUnknown, sqlStateOf } from "../postgres/faults.ts";
import { createMasterKeyCheck } from "../postgres/master-key.ts";
import { migrate, migrations } from "../postgres/migrations.ts";
import { readMoveMark } from "../postgres/move-mark.ts";
import { createPool, type Pool } from "../postgres/pool.ts";
import { checkServer, type StartCheckOptions } from "../postgres/start-check.ts";
import { createMasterKeyCheck as createSqliteKeyCheck } from "../sqlite/master-key.ts";
import { begunByEarlier } from "../sqlite/move-mark.ts";
import { databaseFile, openDatabase } from "../sqlite/open.ts";
import type { Checkpoints } from "../sqlite/pragma.ts";
import type { Snapshot } from "../sqlite/pre-migration.ts";
import { type UpgradeProgress, upgradeDatabase } from "../sqlite/upgrade.ts";
import type { KeptSecrets } from "../vault-check.ts";
import { copyStore, type MoveProgress, type MoveSummary } from "./copy.ts";
import { notEmpty } from "./leaving.ts";
import { createPostgresSource, createPostgresTarget, refuseLivingNodes, writtenByAnother } from "./postgres-side.ts";
import { createSqliteSource, createSqliteTarget, readinessOfFolder } from "./sqlite-side.ts";
import { type Column, type ColumnType, ownColumns, type Table, tableNames } from "./tables.ts";

export type { MoveProgress, MoveSummary };

export interface MoveOptions {
  /** Folder of the SQLite database, whose lock the caller holds. */
  dataDir: string;
  /** URL of the PostgreSQL database. */
  url: string;
  masterKey: Uint8Array;
  /** Secrets of the data directory that all servers of the PostgreSQL database are to have; see `movingSecrets`. */
  movingSecrets?: KeptSecrets;
  clock: Clock;
  /** True: also what was moved elsewhere already, without what has happened there since. @default false */
  again?: boolean;
  signal?: AbortSignal;
  /** False: if the source is from an earlier program, it is upgraded without a way back. @default true */
  takesSnapshot?: boolean;
  /** Who copies the source's log back. @default "own" */
  checkpoints?: Checkpoints;
  onUpgrade?(progress: UpgradeProgress): void;
  onSnapshot?(snapshot: Snapshot): void;
  onProgress?(progress: MoveProgress): void;
  durability?: StartCheckOptions["durability"];
}

/** Enough to read tables of 10 million rows from end to end. */
const statementTimeoutMs = 10 * 60_000;
/** One connection for each table that is copied concurrently. */
const poolSize = 3;
/**
 * A stream lasts for as long as the other side writes, and reads whole tables, which are sorted: its first row may take any
 * time.
 */
const ofStreams = { size: poolSize, statementTimeoutMs: 0, settings: { enable_seqscan: "on", work_mem: "64MB" } };

/**
 * Moves a data directory to an empty PostgreSQL database. Resumes an interrupted move.
 * @returns null when it was stopped
 * @throws StartupError with what to do
 */
export const moveToPostgres = (options: MoveOptions): Promise<MoveSummary | null> =>
  explained(async () => {
    const { dataDir, url, masterKey, clock } = options;
    const path = join(resolve(dataDir), databaseFile);
    if (!existsSync(path)) {
      throw new StartupError(
        `There is no database in ${resolve(dataDir)}. Try: name the server's folder with --data-dir.`,
      );
    }
    const place = placeOf(url);
    const pool = await openPool(options, { synchronous_commit: "off" });
    try {
      if (!(await hasSchema(pool))) await refuseOthersTables(pool, place);
      await refuseEarlierCopy(pool, place);
      await masterKeyOf(masterKey).verify(pool);
      // Comes first, as it knows whether the key is the right one.
      if (!(await upgradeSource(options))) return null;
      const { checkpoints = "own" } = options;
      const client = openDatabase({ dataDir, vault: createVault(masterKey), checkpoints, forMove: true });
      try {
        await migrate({ url, clock });
        await masterKeyOf(masterKey).remember(pool);
        await refuseLivingNodes(pool, place);
        const source = createSqliteSource(client, path, newMove);
        // A server that ran there before, on the empty database, has written this without them.
        const kept = { ...createSqliteKeyCheck(client, createVault(masterKey)).kept(), ...options.movingSecrets };
        const target = createPostgresTarget(pool, place, path, (tx) => masterKeyOf(masterKey).keep(tx, kept));
        const tables = await tablesOf(client, pool);
        return await copyStore({ ...options, tables, source, target, sampled: source, searched: target });
      } finally {
        client.close(true);
      }
    } finally {
      await pool.close();
    }
  });

/**
 * Moves a PostgreSQL database that no server uses to an empty data directory. Resumes an interrupted move.
 * @returns null when it was stopped
 * @throws StartupError with what to do
 */
export const moveToSqlite = (options: MoveOptions): Promise<MoveSummary | null> =>
  explained(async () => {
    const { dataDir, url, masterKey } = options;
    const folder = resolve(dataDir);
    const place = placeOf(url);
    const pool = await openPool(options, {});
    const streams = createPool({ url, clock: options.clock, ...ofStreams });
    try {
      if (!(await hasSchema(pool))) {
        throw new StartupError(`${place} has nothing of Postrider. Try: correct POSTRIDER_DATABASE_URL.`);
      }
      await masterKeyOf(masterKey).verify(pool);
      await migrate({ url, clock: options.clock });
      const [vaultRow] = await pool.read("select 1 from vault_check");
      if (!vaultRow) throw new StartupError(`${place} is empty. Try: correct POSTRIDER_DATABASE_URL.`);
      await refuseLivingNodes(pool, place);
      const source = createPostgresSource(pool, streams, place, newMove);
      // What is refused must not leave a new database behind, on which a server would start, nor change the one that is there.
      // `copyStore` asks again, as it always does with the database open, and finds the mark that is made here.
      const readinessFor = async (move: string) => readinessOfFolder(folder, move);
      const move = await source.leave(folder, readinessFor, options.again ?? false);
      if ((await readinessFor(move)) === "taken") throw notEmpty(folder);
      const kept = await masterKeyOf(masterKey).kept(pool);
      const client = openDatabase({ dataDir, vault: createVault(masterKey), forMove: true });
      try {
        const target = createSqliteTarget(client, folder, place, () =>
          createSqliteKeyCheck(client, createVault(masterKey)).keep(kept),
        );
        const tables = await tablesOf(client, pool);
        return await copyStore({ ...options, tables, source, target, sampled: target, searched: source });
      } finally {
        client.close(true);
      }
    } finally {
      await Promise.all([streams.close(), pool.close()]);
    }
  });

/** @returns false when it was stopped */
function upgradeSource({ onUpgrade, ...options }: MoveOptions): Promise<boolean> {
  return upgradeDatabase({ ...options, forMove: true, onProgress: (progress) => onUpgrade?.(progress) });
}

const newMove = () => newId("move");
const masterKeyOf = (masterKey: Uint8Array) => createMasterKeyCheck(createVault(masterKey));

/** Host, port and database; never the password. */
function placeOf(url: string): string {
  const { host, pathname, searchParams } = new URL(url);
  return `PostgreSQL ${searchParams.get("path") ?? host}${pathname}`;
}

async function openPool(options: MoveOptions, settings: Readonly<Record<string, string>>): Promise<Pool> {
  const { url, clock, durability } = options;
  await checkServer({ url, clock, ...(durability && { durability }) });
  return createPool({ url, size: poolSize, clock, statementTimeoutMs, settings });
}

async function hasSchema(pool: Pool): Promise<boolean> {
  const [row] = await pool.read<{ isThere: boolean }>(`select to_regclass('migration') is not null as "isThere"`);
  return row?.isThere === true;
}

/** An unfinished copy lacks indexes, which an upgrade would take for granted. */
async function refuseEarlierCopy(pool: Pool, place: string): Promise<void> {
  if ((await readMoveMark(pool))?.role !== "arriving") return;
  const [row] = await pool.read<{ schema: number }>("select count(*)::int as schema from migration");
  if ((row?.schema ?? 0) < migrations.length) throw begunByEarlier(place);
}

async function refuseOthersTables(pool: Pool, place: string): Promise<void> {
  const others = await pool.read<{ name: string }>(
    `select relname::text as name from pg_class
      where relnamespace = current_schema()::regnamespace and relkind in ('r', 'p', 'v', 'm', 'f') limit 1`,
  );
  if (others.length === 0) return;
  throw new StartupError(
    `${place} has tables of another program (${others[0]?.name}). Try: create database postrider encoding 'UTF8' template template0.`,
  );
}

/** The tables that both sides have, with SQLite's column order and PostgreSQL's types. */
async function tablesOf(client: Database, pool: Pool): Promise<Table[]> {
  const rows = await pool.read<{ table: string; name: string; type: ColumnType }>(
    `select relname::text as "table", attname::text as name, format_type(atttypid, null) as type
      from pg_attribute join pg_class on pg_class.oid = attrelid
      where relnamespace = current_schema()::regnamespace and relkind in ('r', 'p') and not relispartition
        and attnum > 0 and not attisdropped`,
  );
  const types = new Map(rows.map(({ table, name, type }) => [`${table}.${name}`, type]));
  return tableNames.map((name): Table => {
    const columns = client.query<{ name: string }, []>(`pragma table_info(${name})`).all();
    return {
      name,
      columns: columns
        .filter((column) => !ownColumns[name]?.includes(column.name))
        .map((column): Column => {
          const inOther = name === "delivery" ? "pending" : name === "tenant_usage" ? "usage" : name;
          const type = types.get(`${name}.${column.name}`) ?? types.get(`${inOther}.${column.name}`);
          return { name: column.name, type: type ?? "bigint" };
        }),
    };
  });
}

/** Turns the errors that end a move into plain words; what was copied stays, and the next move continues from there. */
async function explained<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const goesOn =
      "Nothing is lost: the source is unchanged, and the next postrider move goes on where this one ended.";
    if (error instanceof OutcomeUnknown || (error instanceof DomainError && error.code.startsWith("storage_"))) {
      throw new StartupError(`${error.message} ${goesOn} Try: see that the database runs and has room.`);
    }
    if (isDiskFull(error))
      throw new StartupError(`The disk of the data directory is full. ${goesOn} Try: free some space.`);
    if (sqlStateOf(error) === "42P07") {
      throw writtenByAnother();
    }
    if (sqlStateOf(error) !== undefined) {
      const reason = messageOf(error);
      throw new StartupError(
        `The database refuses what is to be copied (${reason}). ${goesOn} Try: report this message.`,
      );
    }
    throw error;
  }
}
