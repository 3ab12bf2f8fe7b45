import { Database } from "bun:sqlite";
import { closeSync, existsSync, openSync, writeSync } from "node:fs";
import { endOfLog, frameHeaderBytes, readLogFrames } from "./log-frames.ts";
import { leaveLogAlone, waitForLocks } from "./pragma.ts";

/**
 * Removes a commit that never completed from the log. SQLite writes a commit, syncs the log, and only then tells the other
 * connections where the log ends. A process that is killed during the sync leaves the commit behind, and the next commit is
 * written over it:
 *
 *   log:  │ what has been committed │ a commit that never completed │
 *                                   ▲ its end, as SQLite knows it   ▲ Litestream continues here
 *
 * If no other process had the database open, SQLite would read the log again and accept the commit as valid. But Litestream has
 * it open. It reads the log by itself and has copied all of it, so anything written before its position would never be copied.
 * It notices only if the frame before its position is not the one it has read, and a commit of the same kind as the killed one
 * may well end with the same page. So the frames are cleared and covered with commits that are unlike any of ours. Litestream
 * then copies the whole database.
 *
 * @returns how many frames it removed
 */
export function clearLogTail(client: Database, path: string): number {
  const log = `${path}-wal`;
  if (!existsSync(log)) return 0;
  const file = openSync(log, "r+");
  try {
    // There hardly ever is one, and that can be seen without a lock.
    if (!hasTail(file, endOfLog(client))) return 0;
    const writing = new Database(path, { readwrite: true, create: false, strict: true });
    try {
      waitForLocks(writing);
      leaveLogAlone(writing);
      // This keeps other writers out, so whatever lies beyond the end is not a commit that is just being written.
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

/**
 * One frame per commit, in the table that Litestream itself uses to make frames. If that does not exist, Litestream has not
 * copied anything yet.
 */
function cover(writing: Database, frames: number): void {
  if (!writing.query("select 1 from sqlite_schema where type = 'table' and name = '_litestream_seq'").get()) return;
  // These commits are not worth a sync each.
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
