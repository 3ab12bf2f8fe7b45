import type { Database } from "bun:sqlite";
import { readSync } from "node:fs";

/** The write-ahead log file, as specified in https://www.sqlite.org/fileformat2.html#walformat. */
const logHeaderBytes = 32;
export const frameHeaderBytes = 24;

interface Frame {
  /** Offset in the file. */
  readonly position: number;
  readonly page: number;
  readonly endsCommit: boolean;
}

export interface LogFrames {
  /** How often the log has been restarted, counted from an arbitrary number. */
  readonly generation: number;
  /** The consecutive frames with the log's own salts. */
  own(from: number): Iterable<Frame>;
  /** What is left of an earlier log: the consecutive frames with the salts of the first. Null if there are none. */
  earlier(from: number): { readonly generation: number; readonly frames: Iterable<Frame> } | null;
  pageOf(frame: Frame): Buffer;
}

/** Null when nothing has been written to the log yet. */
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

/** The end of the log as SQLite knows it, in frames. "noop" copies nothing back. */
export const endOfLog = (client: Database): number =>
  Math.max(0, client.query<{ log: number }, []>("pragma wal_checkpoint(noop)").get()?.log ?? 0);
