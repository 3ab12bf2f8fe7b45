import { RowWriter, writeRecord } from "./row-bytes.ts";
import type { Row, Table } from "./tables.ts";

/**
 * A sum of hashes, one for each row: so it does not matter in which order rows are read, and a copy that goes on after a
 * crash goes on with its sum. The program and PostgreSQL compute it the same way, from the same bytes.
 */
export function checksumOf({ columns }: Table, rows: readonly Row[]): bigint {
  // In two parts that a number holds: a bigint for each row takes longer than the hash.
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

/** As many bits as a `bigint` of PostgreSQL holds without its sign, in whole hexadecimal digits. */
const digits = 15;
const bits = digits * 4;
const lowBits = bits - 32;

const record = new RowWriter();
const digest = new Uint8Array(16);
const digestView = new DataView(digest.buffer);

/** In SQL, over rows `v` that have the table's columns: an aggregate, as text. */
export function checksumText({ columns }: Table): string {
  const row = `row(${columns.map(({ name }) => `v.${name}`).join(", ")})`;
  return `coalesce(sum(('x' || left(md5(record_send(${row})), ${digits}))::bit(${bits})::bigint), 0)::text`;
}
