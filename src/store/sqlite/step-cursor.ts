import type { Cursor } from "../cursor.ts";
import { type Queries, type QueryRun, runHere } from "./queries.ts";
import type { Reader } from "./reader.ts";
import type { Step, StepParams } from "./step.ts";

/** So much may be read on the event loop: under 1 ms. */
const shortStepBytes = 64 * 1024;

/** So many rows are sent from thread to thread, and made into text, in a few ms. */
const mostRows = 500;

/** And so many are looked at, at least. */
const fewestRows = 8;

/** How large rows are taken to be before one was seen. */
const usualRowBytes = 512;

export interface StepSources {
  queries: Queries;
  reader: Reader;
}

export interface StepList<Key, Row> {
  keys: readonly Key[];
  /** The rows are likely to be in memory: a short step of them is not worth a way to the other thread. */
  isNear: boolean;
  /** Reads the next ones, here or on the other thread. */
  read(run: QueryRun, step: StepParams<Key>): Promise<Step<Row>>;
}

/** The list of these keys. */
export function cursorOver<Key, Row, Entry>(
  { queries, reader }: StepSources,
  { keys, isNear, read }: StepList<Key, Row>,
  toEntry: (row: Row) => Entry,
): Cursor<Entry> {
  let at = 0;
  let rowBytes = usualRowBytes;
  const here = runHere(queries);

  return {
    async next(bytes) {
      while (at < keys.length) {
        // Where rows are large, no more are looked at than a step may take.
        const rowsAtMost = Math.min(mostRows, Math.max(fewestRows, Math.floor(bytes / rowBytes)));
        const run = isNear && bytes <= shortStepBytes ? here : reader.run;
        const { rows, taken } = await read(run, { keys: keys.slice(at, at + rowsAtMost), bytes });
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
