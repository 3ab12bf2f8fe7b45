import type { Cell, Column, ColumnType, Row } from "./tables.ts";

/**
 * Rows in PostgreSQL's binary format, which COPY reads and writes and checksums are computed from. A cell is its length and
 * its bytes, or the length -1 for null. Inserting with arrays took four times as long.
 */

/** Type ids, which PostgreSQL has never changed. */
const typeIds: Readonly<Record<ColumnType, number>> = {
  boolean: 16,
  bytea: 17,
  bigint: 20,
  smallint: 21,
  integer: 23,
  text: 25,
};

const absent = -1;
const bytesOf16 = 2;
const bytesOf32 = 4;
const bytesOf64 = 8;
const rangeOf32 = 2 ** 32;
/** Most UTF-8 bytes per UTF-16 code unit. */
const bytesPerUnit = 3;
/** Room for a cell with its type, if it is neither text nor a byte string. */
const cellRoom = 16;
const firstRoom = 2 ** 16;

/** A growing byte buffer. */
export class RowWriter {
  #bytes = Buffer.allocUnsafeSlow(firstRoom);
  #view = new DataView(this.#bytes.buffer);
  #length = 0;

  /** What has been written; only valid until more is written. */
  written(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }

  clear(): void {
    this.#length = 0;
  }

  raw(bytes: Uint8Array): void {
    this.#reserve(bytes.length);
    this.#bytes.set(bytes, this.#length);
    this.#length += bytes.length;
  }

  int16(value: number): void {
    this.#reserve(bytesOf16);
    this.#view.setInt16(this.#length, value);
    this.#length += bytesOf16;
  }

  int32(value: number): void {
    this.#reserve(bytesOf32);
    this.#view.setInt32(this.#length, value);
    this.#length += bytesOf32;
  }

  /** Writes a cell with its length. */
  cell(cell: Cell, type: ColumnType): void {
    if (cell === null) this.int32(absent);
    else if (typeof cell === "number") this.#number(cell, type);
    else if (typeof cell === "string") this.#text(cell);
    else if (typeof cell === "boolean") {
      this.int32(1);
      this.raw(cell ? yes : no);
    } else {
      this.int32(cell.length);
      this.raw(cell);
    }
  }

  #reserve(count: number): void {
    if (this.#length + count <= this.#bytes.length) return;
    const grown = Buffer.allocUnsafeSlow(Math.max(this.#bytes.length * 2, this.#length + count));
    grown.set(this.written());
    this.#bytes = grown;
    this.#view = new DataView(grown.buffer);
  }

  #number(value: number, type: ColumnType): void {
    if (type === "bigint") {
      this.int32(bytesOf64);
      this.int32(Math.floor(value / rangeOf32));
      this.int32(value | 0);
    } else if (type === "integer") {
      this.int32(bytesOf32);
      this.int32(value);
    } else {
      this.int32(bytesOf16);
      this.int16(value);
    }
  }

  #text(text: string): void {
    this.#reserve(text.length * bytesPerUnit + cellRoom);
    const length = this.#bytes.write(text, this.#length + bytesOf32, "utf8");
    this.int32(length);
    this.#length += length;
  }
}

const yes = Uint8Array.of(1);
const no = Uint8Array.of(0);

/** Writes a row of these columns as PostgreSQL's `record_send` does. */
export function writeRecord(writer: RowWriter, columns: readonly Column[], row: Row): void {
  writer.int32(columns.length);
  for (const [i, { type }] of columns.entries()) {
    writer.int32(typeIds[type]);
    writer.cell(row[i] ?? null, type);
  }
}

const signature = Buffer.from("PGCOPY\n\xff\r\n\0", "latin1");
/** No flags, and no header extension. */
const header = Buffer.concat([signature, Buffer.alloc(bytesOf64)]);
const end = -1;

/** For `copy … from stdin (format binary)`. */
export class CopyWriter extends RowWriter {
  constructor() {
    super();
    this.raw(header);
  }

  /** Begins a row with this many cells. */
  row(cells: number): void {
    this.int16(cells);
  }

  end(): Uint8Array {
    this.int16(end);
    return this.written();
  }
}

/** The rows of a `copy … to stdout (format binary)`, whose chunks may end anywhere. */
export async function* readCopy(
  chunks: AsyncIterable<Uint8Array>,
  columns: readonly Column[],
): AsyncGenerator<readonly Row[]> {
  let rest: Buffer = Buffer.alloc(0);
  let at = header.length;
  for await (const chunk of chunks) {
    const bytes =
      rest.length === 0 ? Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length) : Buffer.concat([rest, chunk]);
    const { rows, next } = readRows(bytes, at, columns);
    rest = bytes.subarray(Math.min(next, bytes.length));
    at = Math.max(0, next - bytes.length);
    if (rows.length > 0) yield rows;
  }
}

/** The complete rows, and where the next one begins. */
function readRows(bytes: Buffer, from: number, columns: readonly Column[]): { rows: Row[]; next: number } {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const rows: Row[] = [];
  for (let next = from; ; ) {
    let at = next + bytesOf16;
    if (at > bytes.length || view.getInt16(next) === end) return { rows, next };
    const row: Cell[] = [];
    for (const { type } of columns) {
      if (at + bytesOf32 > bytes.length) return { rows, next };
      const length = view.getInt32(at);
      at += bytesOf32;
      if (length === absent) {
        row.push(null);
        continue;
      }
      if (at + length > bytes.length) return { rows, next };
      row.push(readCell(bytes, view, at, length, type));
      at += length;
    }
    rows.push(row);
    next = at;
  }
}

function readCell(bytes: Buffer, view: DataView, at: number, length: number, type: ColumnType): Cell {
  switch (type) {
    case "bigint":
      return view.getInt32(at) * rangeOf32 + view.getUint32(at + bytesOf32);
    case "integer":
      return view.getInt32(at);
    case "smallint":
      return view.getInt16(at);
    case "boolean":
      return bytes[at] === 1;
    case "text":
      return bytes.toString("utf8", at, at + length);
    case "bytea":
      return bytes.subarray(at, at + length);
  }
}
