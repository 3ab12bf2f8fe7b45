import type { Database } from "bun:sqlite";
import { bytesBeside, type Step, type StepParams } from "../steps.ts";

/** A row of a step, whose columns go from thread to thread. */
export type StepRow = Record<string, string | number | Uint8Array | null>;

function sizeOf(row: StepRow): number {
  let size = bytesBeside;
  for (const value of Object.values(row)) if (value !== null && typeof value !== "number") size += value.length;
  return size;
}

/**
 * Reads rows one by one, by their keys, until they are as large as was asked for: in one statement for all of them SQLite
 * would hold every row for sorting, with its payload.
 */
export function readStep<Row>(client: Database, sql: string, { keys, bytes }: StepParams) {
  const statement = client.query<Row & StepRow, [number]>(sql);
  const rows: Row[] = [];
  let size = 0;
  let taken = 0;
  for (const key of keys) {
    taken += 1;
    const row = statement.get(key);
    if (row === null) continue;
    rows.push(row);
    size += sizeOf(row);
    if (size >= bytes) break;
  }
  return { rows, taken } satisfies Step<Row>;
}
