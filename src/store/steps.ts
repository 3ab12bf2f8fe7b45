import type { Cursor } from "./cursor.ts";

/** How a backend reads a list that it hands out as a `Cursor`: the set of rows is fixed, and they are read in steps. */

/** Which rows of a list come next, and how many bytes of them. */
export interface StepParams<Key = number> {
  keys: readonly Key[];
  bytes: number;
}

/** Rows in the order of their keys. */
export interface Step<Row> {
  rows: Row[];
  /** How many keys were looked at, including those whose rows are gone. */
  taken: number;
}

/** What a row takes besides its texts and bytes. */
export const bytesBeside = 300;

/** This many rows take a few ms to turn into text. */
const mostRows = 500;

/** At least this many are looked at. */
const fewestRows = 8;

/** How large rows are assumed to be before any has been seen. */
const usualRowBytes = 512;

/** The list of the rows with these keys. */
export function cursorInSteps<Key, Row, Entry>(
  keys: readonly Key[],
  read: (step: StepParams<Key>) => Promise<Step<Row>>,
  toEntry: (row: Row) => Entry,
): Cursor<Entry> {
  let at = 0;
  let rowBytes = usualRowBytes;

  return {
    async next(bytes) {
      while (at < keys.length) {
        // Where rows are large, only as many are looked at as a step may return.
        const rowsAtMost = Math.min(mostRows, Math.max(fewestRows, Math.floor(bytes / rowBytes)));
        const { rows, taken } = await read({ keys: keys.slice(at, at + rowsAtMost), bytes });
        at += taken;
        rowBytes = Math.max(usualRowBytes, bytes / (4 * taken));
        if (rows.length > 0) return rows.map(toEntry);
      }
      return [];
    },
    get ended() {
      return at >= keys.length;
    },
  };
}
