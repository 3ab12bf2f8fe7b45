import type { Database } from "bun:sqlite";
import { readSync } from "node:fs";

/** The file of the write-ahead log, as https://www.sqlite.org/fileformat2.html#walformat has it. */
const logHeaderBytes = 32;
export const frameHeaderBytes = 24;

interface Frame {
  /** In the file. */
  readonly position: number;
  readonly page: number;
  readonly endsCommit: boolean;
}

export interface LogFrames {
  /** How often the log has begun anew, counted from any number. */
  readonly generation: number;
  /** Of the log's own salts, in a row. */
  own(from: number): Iterable<Frame>;
  /** In a row, with the salts of the first: what is left of an earlier log. Null if there is none. */
  earlier(from: number): { readonly generation: number; readonly frames: Iterable<Frame> } | null;
  pageOf(frame: Frame): Buffer;
}

/** Null: nothing has been written into the log yet. */
export function readLogFrames(file: number): LogFrames | null {
  const header = Buffer.alloc(logHeaderBytes);
  if (readSync(file, header, 0, logHeaderBytes, 0) < logHeaderBytes) return null;
  const pageSize = header.readUInt32BE(8);
  const ownSalts = header.subarray(16, 24);

  const read = (position: number): Buffer | null => {
    const frame = Buffer.alloc(frameHeaderBytes);
    return readSync(file, frame, 0, frameHeaderBytes, position) < frameHeaderBytes ? null : frame;
  };
  const positionOf = (index: number) => logHeaderBytes + index * (frameHeaderBytes + pageSize);

  function* framesWith(salts: Buffer, from: number): Generator<Frame> {
    for (let index = from; ; index++) {
      const position = positionOf(index);
      const frame = read(position);
      if (!frame?.subarray(8, 16).equals(salts)) return;
      yield { position, page: frame.readUInt32BE(0), endsCommit: frame.readUInt32BE(4) !== 0 };
    }
  }

  return {
    generation: ownSalts.readUInt32BE(0),
    own: (from) => framesWith(ownSalts, from),
    earlier(from) {
      const salts = read(positionOf(from))?.subarray(8, 16);
      if (!salts || salts.equals(ownSalts)) return null;
      return { generation: salts.readUInt32BE(0), frames: framesWith(salts, from) };
    },
    pageOf({ position }) {
      const page = Buffer.alloc(pageSize);
      readSync(file, page, 0, pageSize, position + frameHeaderBytes);
      return page;
    },
  };
}

/** Where SQLite knows the log to end, in frames. "noop" copies nothing back. */
export const endOfLog = (client: Database): number =>
  Math.max(0, client.query<{ log: number }, []>("pragma wal_checkpoint(noop)").get()?.log ?? 0);
