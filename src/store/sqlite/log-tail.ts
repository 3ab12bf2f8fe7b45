import { Database } from "bun:sqlite";
import { closeSync, existsSync, openSync, readSync, writeSync } from "node:fs";
import { leaveLogAlone, waitForLocks } from "./pragma.ts";

const logHeaderBytes = 32;
const frameHeaderBytes = 24;

/**
 * Takes a commit out of the log that never came about: SQLite writes it, syncs the log, and only then tells the other
 * connections where the log ends. A process that is killed during the sync leaves it behind, and the next commit is written
 * over it:
 *
 *   log:  │ what has been committed │ a commit that never came about │
 *                                   ▲ its end, as SQLite knows it
 *
 * When nobody else has the database open, SQLite reads the log anew and takes it for good. But Litestream has it open. It
 * reads the log by itself and has copied all of it, and goes on behind the end of what never came about, although the next
 * commits come before it: they would be copied back and never to the replica. Now it finds that the frame that it has read
 * last is gone, and copies the whole database.
 *
 * @returns how many frames it took out
 */
export function clearLogTail(client: Database, path: string): number {
  const log = `${path}-wal`;
  if (!existsSync(log)) return 0;
  const file = openSync(log, "r+");
  try {
    // Nearly always there is none, which is seen without a lock.
    if (!hasTail(file, endOfLog(client))) return 0;
    const writing = new Database(path, { readwrite: true, create: false, strict: true });
    try {
      waitForLocks(writing);
      leaveLogAlone(writing);
      // Nobody else writes meanwhile; so what has no end yet is no commit that is just being written.
      writing.run("begin immediate");
      const cleared = clear(file, endOfLog(client));
      writing.run("rollback");
      return cleared;
    } finally {
      writing.close(true);
    }
  } finally {
    closeSync(file);
  }
}

/** In frames. "noop" copies nothing back. */
const endOfLog = (client: Database): number =>
  Math.max(0, client.query<{ log: number }, []>("pragma wal_checkpoint(noop)").get()?.log ?? 0);

const hasTail = (file: number, end: number): boolean => tailFrames(file, end).next().done !== true;

function clear(file: number, end: number): number {
  let cleared = 0;
  for (const position of tailFrames(file, end)) {
    writeSync(file, Buffer.alloc(frameHeaderBytes), 0, frameHeaderBytes, position);
    cleared += 1;
  }
  return cleared;
}

/** Where the frames behind the end are that look as if they belonged to the log: what is left of an earlier one has other salts. */
function* tailFrames(file: number, end: number): Generator<number> {
  const header = Buffer.alloc(logHeaderBytes);
  if (readSync(file, header, 0, logHeaderBytes, 0) < logHeaderBytes) return;
  const frameBytes = frameHeaderBytes + header.readUInt32BE(8);
  const frame = Buffer.alloc(frameHeaderBytes);
  for (let position = logHeaderBytes + end * frameBytes; ; position += frameBytes) {
    if (readSync(file, frame, 0, frameHeaderBytes, position) < frameHeaderBytes) return;
    if (!frame.subarray(8, 16).equals(header.subarray(16, 24))) return;
    yield position;
  }
}
