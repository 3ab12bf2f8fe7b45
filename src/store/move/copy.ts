import { StartupError } from "../../domain/errors.ts";
import type { Clock } from "../../lib/clock.ts";
import { checksumOf } from "./checksum.ts";
import {
  type Cell,
  keyPlaces,
  type Progress,
  type Row,
  type Source,
  type Table,
  type TableName,
  type Target,
  untouched,
} from "./tables.ts";

/** Rows of a batch, which with how far it got is one transaction. */
const batchRows = 5_000;
/** Rows that are compared in full, of all tables together. */
const sampledRows = 100_000;
/** Large, and of no foreign key between them: they are copied at once, so that the two sides wait less for each other. */
const atOnce: ReadonlySet<TableName> = new Set(["event", "delivery", "attempt"]);

export interface MoveProgress {
  readonly step: "copying" | "checking";
  /** The table. */
  readonly what: TableName;
  /** Rows of all tables. */
  readonly done: number;
  readonly total: number;
  /** Null: not known yet. */
  readonly secondsLeft: number | null;
}

export interface MoveSummary {
  readonly rows: number;
  readonly events: number;
  /** Rows that were compared in full. */
  readonly compared: number;
  /** Ids of accounts whose counters are not what their records say; they were not in the source either. */
  readonly miscounted: readonly string[];
}

export interface CopyOptions {
  source: Source;
  target: Target;
  tables: readonly Table[];
  clock: Pick<Clock, "monotonicMs">;
  /** Ends it between two batches; the next one goes on. */
  signal?: AbortSignal;
  onProgress?(progress: MoveProgress): void;
}

/**
 * Copies all that is in the source, compares the copy with it, and marks both.
 * @returns null when it was stopped
 * @throws StartupError with what to do
 */
export async function copyStore(options: CopyOptions): Promise<MoveSummary | null> {
  const { source, target, tables, clock, signal, onProgress = () => {} } = options;
  const move = await source.leave(target.place);
  const before = await target.arrive(move);
  const counts = new Map<TableName, number>();
  for (const table of tables) counts.set(table.name, await source.count(table));
  const total = [...counts.values()].reduce((sum, count) => sum + count, 0);
  const sums = new Map<TableName, Progress>();
  const starts = new Map<TableName, (string | null)[]>();
  let done = [...before.values()].reduce((sum, { rows }) => sum + rows, 0);
  const startedAt = clock.monotonicMs();
  const doneBefore = done;

  function tell(step: MoveProgress["step"], what: TableName): void {
    const perMs = (done - doneBefore) / (clock.monotonicMs() - startedAt);
    const secondsLeft = step === "copying" && perMs > 0 ? Math.ceil((total - done) / perMs / 1000) : null;
    onProgress({ step, what, done, total, secondsLeft });
  }

  let hasFailed = false;
  const isEnding = () => hasFailed || signal?.aborted === true;

  async function copyTable(table: Table): Promise<void> {
    let progress = before.get(table.name) ?? untouched;
    const known: (string | null)[] = [null];
    starts.set(table.name, known);
    while (!progress.isDone && !isEnding()) {
      const { rows, position } = await source.read(table, progress.position, batchRows);
      progress = {
        position,
        rows: progress.rows + rows.length,
        checksum: progress.checksum + checksumOf(rows),
        isDone: rows.length === 0,
      };
      await target.write(table, rows, progress);
      known.push(position);
      done += rows.length;
      tell("copying", table.name);
    }
    sums.set(table.name, progress);
  }

  for (const table of tables.filter(({ name }) => !atOnce.has(name))) await copyTable(table);
  const copies = tables.filter(({ name }) => atOnce.has(name)).map(copyTable);
  for (const copy of copies) copy.catch(() => (hasFailed = true));
  // Whoever closes the two sides must not do so under a batch.
  await Promise.allSettled(copies);
  await Promise.all(copies);
  if (signal?.aborted) return null;

  let compared = 0;
  for (const table of tables) {
    if (signal?.aborted) return null;
    tell("checking", table.name);
    const { rows, checksum } = sums.get(table.name) ?? untouched;
    const found = await target.sum(table);
    const counted = await source.count(table);
    if (found.rows !== rows || counted !== rows) {
      throw differs(table, `${counted} rows in ${source.place}, ${found.rows} in ${target.place}`);
    }
    if (found.checksum !== checksum) throw differs(table, "as many rows, and another checksum");
    const share = Math.ceil((sampledRows * rows) / Math.max(total, 1));
    compared += await compare(source, target, table, total <= sampledRows ? rows : share, starts.get(table.name) ?? []);
  }
  await target.settle(await source.highestKeys());
  const miscounted = await target.miscounted();
  // In this order: between the two, neither side starts.
  await source.markLeft(move);
  await target.markArrived();
  return { rows: total, events: counts.get("event") ?? 0, compared, miscounted };
}

const differs = (table: Table, how: string) =>
  new StartupError(
    `The copy differs from its source: ${table.name} has ${how}. Nothing was marked as moved. ` +
      "Try: see that no server runs on either, empty the new place, and run postrider move again.",
  );

/** Reads some batches again, from all over the table, and compares each row with that in the target. */
async function compare(
  source: Source,
  target: Target,
  table: Table,
  atLeast: number,
  starts: readonly (string | null)[],
): Promise<number> {
  let compared = 0;
  const step = Math.max(1, Math.floor(starts.length / Math.ceil(Math.max(atLeast, 1) / batchRows)));
  for (let i = 0; i < starts.length && compared < atLeast; i += step) {
    const limit = Math.min(batchRows, atLeast - compared);
    const { rows } = await source.read(table, starts[i] ?? null, limit);
    if (rows.length === 0) continue;
    const keys = keyPlaces(table);
    const keyOf = (row: Row) => JSON.stringify(keys.map((place) => row[place]));
    const there = new Map((await target.find(table, rows)).map((row) => [keyOf(row), row]));
    for (const row of rows) {
      const other = there.get(keyOf(row));
      const differing = table.columns.find((_, i) => !isSame(row[i] ?? null, other?.[i] ?? null));
      if (!other || differing) {
        throw differs(table, `a row ${keyOf(row)} ${differing && other ? `of another ${differing.name}` : "too few"}`);
      }
    }
    compared += rows.length;
  }
  return compared;
}

const isSame = (one: Cell, other: Cell): boolean =>
  one instanceof Uint8Array && other instanceof Uint8Array ? Buffer.compare(one, other) === 0 : one === other;
