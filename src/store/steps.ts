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

/** A list, and how many entries it had when it was fixed. */
export interface FixedList<Entry> {
  readonly entries: Cursor<Entry>;
  readonly length: number;
}

/** Each time but the first, something was replaced in the few ms before. */
const mostFixings = 3;

/**
 * A list whose entries may be replaced by others between the read that fixes which they are and the one that reads them. If it
 * ends with its first step and lacks an entry, it is fixed again, so that the new ones are in it. Empty when nothing is left.
 *
 * @param fix null: there is no such list
 */
export async function completeList<Entry>(fix: () => Promise<FixedList<Entry> | null>): Promise<Cursor<Entry> | null> {
  const first = await fix();
  if (!first) return null;
  let { entries, length } = first;
  let isBegun = false;

  return {
    async next(bytes) {
      let step = await entries.next(bytes);
      for (let fixings = 1; !isBegun && entries.ended && step.length < length && fixings < mostFixings; fixings++) {
        const again = await fix();
        if (!again) break;
        ({ entries, length } = again);
        step = await entries.next(bytes);
      }
      isBegun = true;
      return step;
    },
    get ended() {
      return entries.ended;
    },
  };
}
