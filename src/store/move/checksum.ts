import type { Cell, Column, Row, Table } from "./tables.ts";

/**
 * A sum of hashes, one for each row: so it does not matter in which order rows are read, and a copy that goes on after a
 * crash goes on with its sum. The program and PostgreSQL compute it the same way.
 */
export const checksumOf = (rows: readonly Row[]): bigint =>
  rows.reduce((sum, row) => sum + BigInt(`0x${md5(row.map(asText).join(separator)).slice(0, digits)}`), 0n);

const separator = "\u001f";
const nothing = "\u001e";
const digits = 15;
const bitsPerDigit = 4;

const md5 = (what: string | Uint8Array): string => Bun.MD5.hash(what, "hex");

const asText = (cell: Cell): string => {
  if (cell === null) return nothing;
  return cell instanceof Uint8Array ? md5(cell) : String(cell);
};

/** In SQL, over rows that have the table's columns: an aggregate, as text. */
export function checksumText({ columns }: Table): string {
  const row = columns.map(columnText).join(", ");
  const hash = `left(md5(concat_ws(chr(31), ${row})), ${digits})`;
  return `coalesce(sum(('x' || ${hash})::bit(${digits * bitsPerDigit})::bigint), 0)::text`;
}

const columnText = ({ name, type }: Column): string =>
  `coalesce(${type === "bytea" ? `md5(${name})` : `${name}::text`}, chr(30))`;
