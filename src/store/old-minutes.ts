import { addStored, type Histogram, writeHistogram } from "./latency.ts";

/** Rules, section 7: statistics are kept by the minute for 30 days, and by the hour for two years. */
const minutesKept = 30 * 24 * 60;
const hoursKept = 2 * 365 * 24 * 60;

/** Hours merged in one step: a few hundred rows, counting those of several nodes. */
const hoursAtOnce = 4;
/** Accounts, or webhooks, that are looked at in one step. */
const seriesAtOnce = 10;

export interface StoredMinute {
  readonly minute: number;
  readonly counts: readonly number[];
  readonly latency: string;
}

/** A table of minutes, as the thinner sees it: the rows of an account, or of a webhook, lie together. */
export interface OldMinutes {
  /** The keys whose rows come after those of the given ones; null when there are none. */
  next(after: readonly number[] | null): Promise<readonly number[] | null>;
  first(keys: readonly number[]): Promise<number | null>;
  /** The first minute from `from` up to `to` that is not the first of an hour. */
  firstWithinHour(keys: readonly number[], from: number, to: number): Promise<number | null>;
  rows(keys: readonly number[], from: number, to: number): Promise<readonly StoredMinute[]>;
  /** Replaces all rows from `from` up to `to` with the given ones. */
  replace(keys: readonly number[], from: number, to: number, rows: readonly StoredMinute[]): Promise<void>;
}

/** One pass through the tables. */
interface Walk {
  readonly minutesUpTo: number;
  readonly hoursUpTo: number;
  table: number;
  /** The keys that were looked at last. */
  keys: readonly number[] | null;
}

/**
 * An hour is stored as a row at its first minute, so readers need not know about merging.
 *
 * @returns a function that takes one step and answers true while there is more to do
 */
export function createThinner(tables: readonly OldMinutes[]): (now: number) => Promise<boolean> {
  /** Minutes before this one are merged; forgotten on a restart. */
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
