import { Database } from "bun:sqlite";
import { closeSync, existsSync, openSync, writeSync } from "node:fs";
import { endOfLog, frameHeaderBytes, readLogFrames } from "./log-frames.ts";
import { leaveLogAlone, waitForLocks } from "./pragma.ts";

/**
 * Takes a commit out of the log that never came about: SQLite writes it, syncs the log, and only then tells the other
 * connections where the log ends. A process that is killed during the sync leaves it behind, and the next commit is written
 * over it:
 *
 *   log:  │ what has been committed │ a commit that never came about │
 *                                   ▲ its end, as SQLite knows it     ▲ Litestream goes on here
 *
 * When nobody else has the database open, SQLite reads the log anew and takes it for good. But Litestream has it open. It
 * reads the log by itself and has copied all of it, and what is written before its place would never be copied. It finds out
 * only if the frame before its place is another one than it has read; and a commit of the same kind as the killed one may
 * well end with the same page. So the frames are cleared, and covered with commits that are like none of ours. Litestream
 * then copies the whole database.
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
      cover(writing, cleared);
      return cleared;
    } finally {
      writing.close(true);
    }
  } finally {
    closeSync(file);
  }
}

/** With a frame a commit, of the table by which Litestream itself makes frames. Without it, Litestream has copied nothing yet. */
function cover(writing: Database, frames: number): void {
  if (!writing.query("select 1 from sqlite_schema where type = 'table' and name = '_litestream_seq'").get()) return;
  // They are worth no sync of their own.
  writing.run("pragma synchronous = normal");
  for (let covered = 0; covered < frames; covered++) {
    writing.run("insert into _litestream_seq (id, seq) values (1, 1) on conflict (id) do update set seq = seq + 1");
  }
}

const tailFrames = (file: number, end: number) => readLogFrames(file)?.own(end) ?? [];

const hasTail = (file: number, end: number): boolean => [...tailFrames(file, end)].length > 0;

function clear(file: number, end: number): number {
  let cleared = 0;
  for (const { position } of tailFrames(file, end)) {
    writeSync(file, Buffer.alloc(frameHeaderBytes), 0, frameHeaderBytes, position);
    cleared += 1;
  }
  return cleared;
}
