import { readSync } from "node:fs";

/**
 * What SQLite keeps beside a database in WAL mode, as far as a snapshot needs it (sqlite.org/walformat.html): the log, of
 * frames that are each a page and a head, and the head of its index, which tells how much of the log has been committed.
 */

/** The commit that a transaction sees. */
export interface LogHeader {
  readonly lastFrame: number;
  readonly bytes: Buffer;
}

const headerBytes = 48;
const initialised = 12;
const lastFrame = 16;
const salt = 32;
/** Behind two copies of the header. */
const framesCopied = 96;

const logHeadBytes = 32;
const logSalt = 16;
const frameHeadBytes = 24;
const frameSalt = 8;

/** Null while somebody is writing it. The index is in the byte order of the machine, which is little-endian on all of ours. */
export function readLogHeader(index: number): LogHeader | null {
  const both = Buffer.alloc(2 * headerBytes);
  if (readSync(index, both, 0, both.length, 0) < both.length) return null;
  const bytes = both.subarray(0, headerBytes);
  if (!bytes.equals(both.subarray(headerBytes)) || bytes.readUInt8(initialised) === 0) return null;
  return { lastFrame: bytes.readUInt32LE(lastFrame), bytes };
}

export const isSameHeader = (one: LogHeader, other: LogHeader | null): boolean =>
  other !== null && one.bytes.equals(other.bytes);

/** How many frames of the log are in the file as well. It goes back to 0 after the header has changed, and not before. */
export function readFramesCopied(index: number): number {
  const number = Buffer.alloc(4);
  readSync(index, number, 0, number.length, framesCopied);
  return number.readUInt32LE(0);
}

/** Where in the log the page of the latest frame is, by page number. */
export function latestFrames(log: number, header: LogHeader, pageBytes: number): Map<number, number> {
  const head = Buffer.alloc(logHeadBytes);
  readSync(log, head, 0, head.length, 0);
  const salts = head.subarray(logSalt, logSalt + 8);
  if (!salts.equals(header.bytes.subarray(salt, salt + 8))) throw new Error("The log is not that of its index");
  const frames = new Map<number, number>();
  const frame = Buffer.alloc(frameHeadBytes);
  for (let n = 0; n < header.lastFrame; n++) {
    const position = logHeadBytes + n * (frameHeadBytes + pageBytes);
    readSync(log, frame, 0, frame.length, position);
    if (!frame.subarray(frameSalt, frameSalt + 8).equals(salts)) throw new Error("The log has been begun anew");
    frames.set(frame.readUInt32BE(0), position + frameHeadBytes);
  }
  return frames;
}
