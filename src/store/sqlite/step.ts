import type { Database } from "bun:sqlite";
import { bytesBeside, type Step, type StepParams } from "../steps.ts";

/** A row of a step, whose columns are passed between threads. */
export type StepRow = Record<string, string | number | Uint8Array | null>;

/** A row that is not this tenant's is passed over, whatever its key. */
export interface OwnStepParams<Key = number> extends StepParams<Key> {
  tenantKey: number;
}

function sizeOf(row: StepRow): number {
  let size = bytesBeside;
  for (const value of Object.values(row)) if (value !== null && typeof value !== "number") size += value.length;
  return size;
}

/**
 * Reads rows one by one, by key, until they add up to the requested size: in a single statement, SQLite would hold every row
 * with its payload for sorting.
 * @param sql with the key as its first parameter and the tenant's as its second
 */
export function readStep<Row>(client: Database, sql: string, { tenantKey, keys, bytes }: OwnStepParams) {
  const statement = client.query<Row & StepRow, [number, number]>(sql);
  const rows: Row[] = [];
  let size = 0;
  let taken = 0;
  for (const key of keys) {
    taken += 1;
    const row = statement.get(key, tenantKey);
    if (row === null) continue;
    rows.push(row);
    size += sizeOf(row);
    if (size >= bytes) break;
  }
  return { rows, taken } satisfies Step<Row>;
}
