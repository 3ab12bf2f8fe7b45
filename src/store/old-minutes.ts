import { addStored, type Histogram, writeHistogram } from "./latency.ts";

/** Rules, section 7: statistics are kept by the minute for 30 days, and then by the hour, for two years. */
const minutesKept = 30 * 24 * 60;
const hoursKept = 2 * 365 * 24 * 60;

/** Merged in one go: with what several nodes have of them, some hundred rows. */
const hoursAtOnce = 4;
/** Accounts, or webhooks, that are looked at in one go. */
const seriesAtOnce = 10;

export interface StoredMinute {
  readonly minute: number;
  readonly counts: readonly number[];
  readonly latency: string;
}

/** A table of minutes, as whoever thins it out sees it: rows of an account, or of a webhook, lie together. */
export interface OldMinutes {
  /** Whose rows come after those of these keys; null: nobody's. */
  next(after: readonly number[] | null): Promise<readonly number[] | null>;
  first(keys: readonly number[]): Promise<number | null>;
  /** The first minute from `from` up to `to` that begins no hour. */
  firstWithinHour(keys: readonly number[], from: number, to: number): Promise<number | null>;
  rows(keys: readonly number[], from: number, to: number): Promise<readonly StoredMinute[]>;
  /** Puts rows in place of all that are there from `from` up to `to`. */
  replace(keys: readonly number[], from: number, to: number, rows: readonly StoredMinute[]): Promise<void>;
}

/** One way through the tables. */
interface Walk {
  readonly minutesUpTo: number;
  readonly hoursUpTo: number;
  table: number;
  /** Who was looked at last. */
  keys: readonly number[] | null;
}

/**
 * An hour is a row at its first minute, so whoever reads need not know of it.
 *
 * @returns takes a step; true while there is more to do
 */
export function createThinner(tables: readonly OldMinutes[]): (now: number) => Promise<boolean> {
  /** Minutes before that are merged; after a restart nobody knows. */
  let merged = 0;
  let walk: Walk | null = null;

  return async function thin(now) {
    const minute = Math.floor(now / 60_000);
    walk ??= {
      minutesUpTo: hourOf(minute - minutesKept),
      hoursUpTo: hourOf(minute - hoursKept),
      table: 0,
      keys: null,
    };
    const { minutesUpTo, hoursUpTo } = walk;
    for (let looked = 0; looked < seriesAtOnce; looked += 1) {
      const table = tables[walk.table];
      if (!table) {
        merged = minutesUpTo;
        walk = null;
        return false;
      }
      const keys = await table.next(walk.keys);
      if (keys === null) {
        walk.table += 1;
        walk.keys = null;
        continue;
      }
      const oldest = await table.first(keys);
      if (oldest !== null && oldest < hoursUpTo) {
        await table.replace(keys, 0, hoursUpTo, []);
        return true;
      }
      const first = await table.firstWithinHour(keys, merged, minutesUpTo);
      if (first !== null) {
        const from = hourOf(first);
        const to = Math.min(from + hoursAtOnce * 60, minutesUpTo);
        await table.replace(keys, from, to, toHours(await table.rows(keys, from, to)));
        return true;
      }
      walk.keys = keys;
    }
    return true;
  };
}

const hourOf = (minute: number): number => minute - (minute % 60);

function toHours(rows: readonly StoredMinute[]): StoredMinute[] {
  const hours = Map.groupBy(rows, ({ minute }) => hourOf(minute));
  return [...hours].map(([minute, ofHour]) => {
    const latency: Histogram = [];
    for (const row of ofHour) addStored(row.latency, latency);
    const counts = (ofHour[0]?.counts ?? []).map((_, i) => ofHour.reduce((sum, row) => sum + (row.counts[i] ?? 0), 0));
    return { minute, counts, latency: writeHistogram(latency) };
  });
}
