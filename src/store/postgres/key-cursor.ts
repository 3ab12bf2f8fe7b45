import type { Cursor } from "../cursor.ts";

/** A row of a list, and which of the keys it was read by, from 1 on; a key whose row is gone has none. */
export interface KeyedRow {
  readonly nth: number;
  /** About what it takes, in bytes. */
  readonly size: number;
}

export interface KeyList<Row extends KeyedRow, Entry> {
  readonly keys: readonly number[];
  /** Reads rows by their keys, in their order. */
  read(keys: readonly number[]): Promise<readonly Row[]>;
  toEntry(row: Row): Entry;
}

/** So many rows are read in one go, at most, and at least. */
const mostRows = 500;
const fewestRows = 8;
/** How large rows are taken to be before one was seen. */
const usualRowBytes = 512;

/** A list whose keys are known, and whose rows are read as they are asked for. */
export function cursorOver<Row extends KeyedRow, Entry>({ keys, read, toEntry }: KeyList<Row, Entry>): Cursor<Entry> {
  let at = 0;
  let rowBytes = usualRowBytes;

  return {
    async next(bytes) {
      while (at < keys.length) {
        const some = keys.slice(at, at + Math.min(mostRows, Math.max(fewestRows, Math.floor(bytes / rowBytes))));
        const rows = await read(some);
        let size = 0;
        const fitting = rows.filter((row) => {
          const fits = size < bytes;
          if (fits) size += row.size;
          return fits;
        });
        at += fitting.length < rows.length ? (fitting.at(-1)?.nth ?? 0) : some.length;
        rowBytes = Math.max(usualRowBytes, size / Math.max(1, fitting.length));
        if (fitting.length > 0) return fitting.map(toEntry);
      }
      return [];
    },
    get ended() {
      return at >= keys.length;
    },
  };
}
