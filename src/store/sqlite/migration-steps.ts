import type { Database } from "bun:sqlite";

/**
 * A migration that rebuilds large tables. In one transaction, two million events took 620 MB of memory and two and a half
 * times their disk space. So it runs statement by statement, each in its own transaction, and the rows move a few at a time:
 *
 *   INSERT INTO __new_event … SELECT … FROM event   ─▶   some rows are copied and deleted, commit, some rows, commit, …
 *
 * A row is always in exactly one of the two tables, and the space it leaves is reused by the rows that follow. The mark
 * (`pragma user_version`) is written in the same transactions: after a crash the migration resumes after the last one, and an
 * earlier program refuses the database from the first one on.
 */
export interface SteppedMigration {
  client: Database;
  statements: readonly string[];
  /** By an earlier run that did not finish. */
  statementsDone: number;
  /** Values of `pragma user_version`: after a given number of statements, and at the end. */
  marks: { at(statementsDone: number): number; end: number };
  /** Tables whose rows move, with the word for them. */
  moves?: Readonly<Record<string, string>>;
  watch: MigrationWatch;
}

/** What watches an upgrade: a person, a log, and whatever may stop it. */
export interface MigrationWatch {
  /** Called between steps. */
  progress(progress: MigrationProgress): void;
  /** Asked between steps. */
  isStopped(): boolean;
  monotonicMs(): number;
  /** False when another program copies the log back. @default true */
  readonly copiesLog?: boolean;
}

export interface MigrationProgress {
  /** What is in progress: rows of a kind, an index, or a migration. */
  readonly what: string;
  /** Rows carried over, and of how many; null for anything without such a count. */
  readonly done: number | null;
  readonly total: number | null;
  /** What is counted, if not rows. */
  readonly unit?: string;
  /** Null while there is no estimate. */
  readonly secondsLeft: number | null;
}

export const unwatched: MigrationWatch = { progress() {}, isStopped: () => false, monotonicMs: () => 0 };

/** What drizzle-kit puts between two statements. */
const breakpoint = "--> statement-breakpoint";

export const statementsOf = (sql: string): string[] =>
  sql.split(breakpoint).filter((statement) => statement.trim() !== "");

/** How long one step should take: the upgrade can be stopped between two, and the log stays short. */
const stepMs = 100;
const fewestRows = 16;
const mostRows = 20_000;
/** 4 MiB: the log is copied back each time it gets this long, so it does not grow with the database. */
const logPages = 1_000;

/** Cost of adding a row to an index, relative to carrying it over. */
const indexCost = 0.25;
/** Before this much has been measured, an estimate would only jump around. */
const leastMeasuredMs = 1_000;

/** Keeps the row counts across restarts; dropped at the end. */
const countTable = "__upgrade_count";

interface Step {
  readonly statement: string;
  readonly what: string;
  /** The table whose rows it moves. */
  readonly moves: string | null;
  readonly cost: number;
}

/** @returns false when it was stopped */
export function migrateInSteps(migration: SteppedMigration): boolean {
  const { client, statements, statementsDone, marks, moves = {}, watch } = migration;
  if (watch.copiesLog !== false) client.run(`pragma wal_autocheckpoint = ${logPages}`);
  if (statementsDone === 0) countRows(client, Object.keys(moves));
  const counts = readCounts(client);
  const steps = statements.map((statement) => readStep(statement, moves, counts));
  const startedAt = watch.monotonicMs();
  let costDone = 0;

  /** Extrapolated from the work done since the start and the time it took. */
  function secondsLeft(from: number, ofStep: number): number | null {
    const elapsedMs = watch.monotonicMs() - startedAt;
    if (elapsedMs < leastMeasuredMs || costDone === 0) return null;
    const left = steps.slice(from).reduce((sum, { cost }) => sum + cost, 0) - ofStep;
    return Math.ceil((left * elapsedMs) / costDone / 1000);
  }

  for (const [at, step] of steps.entries()) {
    if (at < statementsDone) continue;
    if (watch.isStopped()) return false;
    const mark = at + 1 === steps.length ? marks.end : marks.at(at + 1);
    if (step.moves === null) {
      watch.progress({ what: step.what, done: null, total: null, secondsLeft: secondsLeft(at, 0) });
      inTransaction(client, () => {
        client.run(step.statement);
        if (mark === marks.end) client.run(`drop table ${countTable}`);
        client.run(`pragma user_version = ${mark}`);
      });
      costDone += step.cost;
    } else {
      const progress = (rows: number, done: number) => {
        costDone += rows;
        watch.progress({ what: step.what, done, total: step.cost, secondsLeft: secondsLeft(at, done) });
      };
      if (!moveRows(client, step.moves, step.statement, mark, watch, progress)) return false;
    }
  }
  return true;
}

function inTransaction(client: Database, write: () => void): void {
  client.run("begin immediate");
  write();
  client.run("commit");
}

/** Counting needs the indexes that a table's first step drops, so it is done once and the counts are kept. */
function countRows(client: Database, tables: readonly string[]): void {
  inTransaction(client, () => {
    client.run(`create table if not exists ${countTable} (name text primary key, total integer, moved integer)`);
    for (const table of tables) {
      client.run(`insert or replace into ${countTable} select '${table}', count(*), 0 from \`${table}\``);
    }
  });
}

const readCounts = (client: Database) =>
  new Map(
    client
      .query<{ name: string; total: number }, []>(`select name, total from ${countTable}`)
      .all()
      .map(({ name, total }) => [name, total]),
  );

function readStep(statement: string, moves: Readonly<Record<string, string>>, counts: Map<string, number>): Step {
  const [, source] = /^\s*INSERT INTO `__new_\w+`[^;]* FROM `(\w+)`;?\s*$/im.exec(statement) ?? [];
  const what = source === undefined ? undefined : moves[source];
  if (source !== undefined && what !== undefined)
    return { statement, what, moves: source, cost: counts.get(source) ?? 0 };
  const [, index, table] = /^\s*CREATE (?:UNIQUE )?INDEX `(\w+)` ON `(\w+)`/i.exec(statement) ?? [];
  const cost = index === undefined ? 0 : indexCost * (counts.get(table ?? "") ?? 0);
  return { statement, what: index === undefined ? "tables" : `the index ${index}`, moves: null, cost };
}

/** Moves all rows of a table into the one that `statement` copies to. @returns false when it was stopped */
function moveRows(
  client: Database,
  table: string,
  statement: string,
  mark: number,
  watch: MigrationWatch,
  progress: (rows: number, done: number) => void,
): boolean {
  dropIndexes(client, table);
  const last = client.prepare<{ last: number | null }, [number]>(
    `select max(rowid) as last from (select rowid from \`${table}\` order by rowid limit ?1)`,
  );
  const copy = client.prepare(`${statement.trim().replace(/;$/, "")} WHERE rowid <= ?1`);
  const remove = client.prepare(`delete from \`${table}\` where rowid <= ?1`);
  const count = client.prepare<{ moved: number }, [number, string]>(
    `update ${countTable} set moved = moved + ?1 where name = ?2 returning moved`,
  );
  let rows = fewestRows;
  for (;;) {
    const startedAt = watch.monotonicMs();
    let moved = 0;
    let done = 0;
    inTransaction(client, () => {
      const bound = last.get(rows)?.last ?? null;
      if (bound === null) return void client.run(`pragma user_version = ${mark}`);
      moved = copy.run(bound).changes;
      const removed = remove.run(bound).changes;
      if (moved !== removed) throw new Error(`${removed} rows of ${table} made ${moved}`);
      done = count.get(moved, table)?.moved ?? 0;
    });
    if (moved === 0) break;
    progress(moved, done);
    if (watch.isStopped()) return false;
    const tookMs = Math.max(watch.monotonicMs() - startedAt, 1);
    rows = Math.round(Math.min(Math.max((rows * stepMs) / tookMs, fewestRows), rows * 2, mostRows));
  }
  for (const prepared of [last, copy, remove, count]) prepared.finalize();
  return true;
}

/** They would go with the table at the end anyway; until then every deletion would have to update each of them. */
function dropIndexes(client: Database, table: string): void {
  const own = client.query<{ name: string }, [string]>(
    "select name from sqlite_schema where type = 'index' and tbl_name = ?1 and sql is not null",
  );
  // They contain only keys and numbers, nothing that was sent, and overwriting their pages would be one long step.
  client.run("pragma secure_delete = off");
  try {
    for (const { name } of own.all(table)) client.run(`drop index \`${name}\``);
  } finally {
    client.run("pragma secure_delete = on");
  }
}
