import { StartupError } from "../../domain/errors.ts";
import type { Clock } from "../../lib/clock.ts";
import { checksumOf } from "./checksum.ts";
import {
  type Cell,
  keyPlaces,
  type Progress,
  type Row,
  type Sampled,
  type Searched,
  type Source,
  type Table,
  type TableName,
  type Target,
  untouched,
} from "./tables.ts";

/** Rows that are compared in full, over all tables. */
const sampledRows = 100_000;
/** Large tables without foreign keys between them: copied concurrently, so that the two sides wait less for each other. */
const atOnce: ReadonlySet<TableName> = new Set(["event", "delivery", "attempt"]);
/** Copying's share of the total time, measured in both directions. */
const copyingShare = 0.6;

export interface MoveProgress {
  readonly step: "copying" | "indexing" | "checking";
  /** The table, or the index. */
  readonly what: string;
  /** Rows copied so far, over all tables. */
  readonly done: number;
  readonly total: number;
  /** Until everything is checked; null while unknown. */
  readonly secondsLeft: number | null;
}

export interface MoveSummary {
  readonly rows: number;
  readonly events: number;
  /** Rows that were compared in full. */
  readonly compared: number;
  /** Ids of accounts whose counters do not match their records; they did not in the source either. */
  readonly miscounted: readonly string[];
}

export interface CopyOptions {
  source: Source;
  target: Target;
  sampled: Sampled;
  searched: Searched;
  tables: readonly Table[];
  clock: Pick<Clock, "monotonicMs">;
  /** See `Source.leave`. @default false */
  again?: boolean;
  /** Stops the copy between two batches; the next one continues from there. */
  signal?: AbortSignal;
  onProgress?(progress: MoveProgress): void;
}

/**
 * Copies everything in the source, compares the copy with it, and marks both.
 * @returns null when it was stopped
 * @throws StartupError with what to do
 */
export async function copyStore(options: CopyOptions): Promise<MoveSummary | null> {
  const { source, target, tables, clock, again = false, signal, onProgress = () => {} } = options;
  const move = await source.leave(target.place, target.readinessFor, again);
  const before = await target.arrive(move);
  const counts = new Map<TableName, number>();
  for (const table of tables) counts.set(table.name, await source.count(table));
  const total = [...counts.values()].reduce((sum, count) => sum + count, 0);
  const copied = new Map<TableName, Progress>();
  let done = [...before.values()].reduce((sum, { rows }) => sum + rows, 0);
  const startedAt = clock.monotonicMs();
  const doneBefore = done;
  let perMs = 0;

  function tell(step: MoveProgress["step"], what: string): void {
    const spentMs = clock.monotonicMs() - startedAt;
    if (step === "copying") perMs = (done - doneBefore) / spentMs;
    const wholeMs = (total / copyingShare - doneBefore) / perMs;
    const secondsLeft = perMs > 0 ? Math.max(1, Math.ceil((wholeMs - spentMs) / 1000)) : null;
    onProgress({ step, what, done, total, secondsLeft });
  }

  let hasFailed = false;
  const isEnding = () => hasFailed || signal?.aborted === true;

  async function copyTable(table: Table): Promise<void> {
    let progress = before.get(table.name) ?? untouched;
    async function write(rows: readonly Row[], after: Progress): Promise<void> {
      await target.write(table, rows, progress, after);
      progress = after;
      done += rows.length;
      tell("copying", table.name);
    }
    if (!progress.isDone) {
      for await (const { rows, position } of source.read(table, progress.position)) {
        if (isEnding()) return;
        const checksum = progress.checksum + checksumOf(table, rows);
        await write(rows, { position, rows: progress.rows + rows.length, checksum, isDone: false });
      }
      if (isEnding()) return;
      await write([], { ...progress, isDone: true });
    }
    copied.set(table.name, progress);
  }

  for (const table of tables.filter(({ name }) => !atOnce.has(name))) await copyTable(table);
  const copies = tables.filter(({ name }) => atOnce.has(name)).map(copyTable);
  for (const copy of copies) copy.catch(() => (hasFailed = true));
  // The caller closes both sides, and must not do so in the middle of a batch.
  await Promise.allSettled(copies);
  await Promise.all(copies);
  if (signal?.aborted) return null;
  await target.index((name) => tell("indexing", name));

  let compared = 0;
  for (const table of tables) {
    if (signal?.aborted) return null;
    tell("checking", table.name);
    const { rows, checksum } = copied.get(table.name) ?? untouched;
    const found = await target.sum(table);
    const counted = counts.get(table.name) ?? 0;
    if (found.rows !== rows || counted !== rows) {
      throw differs(table, `${counted} rows in ${source.place}, ${found.rows} in ${target.place}`);
    }
    if (found.checksum !== checksum) throw differs(table, "as many rows, and another checksum");
    const share = total <= sampledRows ? Number.POSITIVE_INFINITY : Math.ceil((sampledRows * rows) / total);
    compared += await compare(options, table, share);
  }
  await target.settle(await source.highestKeys());
  const miscounted = await target.miscounted();
  // In this order: in between, no server can start on either side.
  await source.markLeft(move);
  await target.markArrived();
  return { rows: total, events: counts.get("event") ?? 0, compared, miscounted };
}

const differs = (table: Table, how: string) =>
  new StartupError(
    `The copy differs from its source: ${table.name} has ${how}. Nothing was marked as moved. ` +
      "Try: see that no server runs on either, empty the new place, and run postrider move again.",
  );

/** Compares rows from all over the table, in full. @returns how many */
async function compare({ sampled, searched }: CopyOptions, table: Table, atLeast: number): Promise<number> {
  let compared = 0;
  const keys = keyPlaces(table);
  const keyOf = (row: Row) => JSON.stringify(keys.map((place) => row[place]));
  for (const rows of sampled.sample(table, atLeast)) {
    const there = new Map((await searched.find(table, rows)).map((row) => [keyOf(row), row]));
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
