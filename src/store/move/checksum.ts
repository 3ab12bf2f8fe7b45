import { RowWriter, writeRecord } from "./row-bytes.ts";
import type { Row, Table } from "./tables.ts";

/**
 * A sum of hashes, one per row. So the order in which rows are read does not matter, and a copy that resumes after a crash
 * continues with its sum. The program and PostgreSQL compute it in the same way, from the same bytes.
 */
export function checksumOf({ columns }: Table, rows: readonly Row[]): bigint {
  // In two parts that each fit a number: a bigint per row takes longer than the hash.
  let high = 0;
  let low = 0;
  for (const row of rows) {
    record.clear();
    writeRecord(record, columns, row);
    Bun.MD5.hash(record.written(), digest);
    high += digestView.getUint32(0);
    low += digestView.getUint32(4) >>> (32 - lowBits);
  }
  return (BigInt(high) << BigInt(lowBits)) + BigInt(low);
}

/** As many whole hexadecimal digits as fit a PostgreSQL `bigint` without its sign. */
const digits = 15;
const bits = digits * 4;
const lowBits = bits - 32;

const record = new RowWriter();
const digest = new Uint8Array(16);
const digestView = new DataView(digest.buffer);

/** The same in SQL, as an aggregate over rows `v` with the table's columns; the result is text. */
export function checksumText({ columns }: Table): string {
  const row = `row(${columns.map(({ name }) => `v.${name}`).join(", ")})`;
  return `coalesce(sum(('x' || left(md5(record_send(${row})), ${digits}))::bit(${bits})::bigint), 0)::text`;
}
