import type { Cursor } from "../cursor.ts";
import { cursorInSteps, type Step, type StepParams } from "../steps.ts";
import { type Queries, type QueryRun, runHere } from "./queries.ts";
import type { Reader } from "./reader.ts";

/** This much may be read on the event loop: takes under 1 ms. */
const shortStepBytes = 64 * 1024;

export interface StepSources {
  queries: Queries;
  reader: Reader;
}

export interface StepList<Key, Row> {
  keys: readonly Key[];
  /** The rows are likely to be in memory: a short step of them is not worth a round trip to the other thread. */
  isNear: boolean;
  /** Reads the next rows, on this thread or the other one. */
  read(run: QueryRun, step: StepParams<Key>): Promise<Step<Row>>;
}

/** The list of the rows with these keys. */
export function cursorOver<Key, Row, Entry>(
  { queries, reader }: StepSources,
  { keys, isNear, read }: StepList<Key, Row>,
  toEntry: (row: Row) => Entry,
): Cursor<Entry> {
  const here = runHere(queries);
  return cursorInSteps(keys, (step) => read(isNear && step.bytes <= shortStepBytes ? here : reader.run, step), toEntry);
}
