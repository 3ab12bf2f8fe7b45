import type { Cursor } from "./cursor.ts";

/** How a backend reads a list that is handed out as a `Cursor`: which rows it has is fixed, and they are read in steps. */

/** Which rows of a list come next, and how much of them. */
export interface StepParams<Key = number> {
  keys: readonly Key[];
  bytes: number;
}

/** Rows in the order of their keys. */
export interface Step<Row> {
  rows: Row[];
  /** Keys that were looked at, those that are gone among them. */
  taken: number;
}

/** What a row takes beside its texts and bytes. */
export const bytesBeside = 300;

/** So many rows are made into text in a few ms. */
const mostRows = 500;

/** And so many are looked at, at least. */
const fewestRows = 8;

/** How large rows are taken to be before one was seen. */
const usualRowBytes = 512;

/** The list of these keys. */
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
        // Where rows are large, no more are looked at than a step may take.
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
