import { constants, Database } from "bun:sqlite";
import { closeSync, existsSync, fstatSync, openSync, readSync } from "node:fs";
import { dirname, join } from "node:path";
import { StartupError } from "../../domain/errors.ts";
import { standingOf } from "../sqlite/migrations.ts";
import { refuseMoved } from "../sqlite/move-mark.ts";
import { databaseFile, inWords, orInWords } from "../sqlite/open.ts";
import { applyPragma, leaveLogAlone, usesLog, waitForLocks } from "../sqlite/pragma.ts";
import { realPath } from "../sqlite/written-by.ts";
import { type Books, readBooks } from "./books.ts";
import { isSameHeader, type LogHeader, latestFrames, readFramesCopied, readLogHeader } from "./write-ahead-log.ts";

/** A database as it was at one moment, while others write to it. */
export interface Snapshot {
  /** Of the database itself and its log, wherever the data directory is. */
  readonly folder: string;
  readonly bytes: number;
  /** How many migrations it has been through. */
  readonly schema: number;
  /** @throws StartupError when what it counts is damaged */
  books(): Books;
  /** The file that SQLite would have made of it, in order. A chunk is good until the next one is asked for. */
  chunks(): Generator<Uint8Array>;
  /** Of the log at present: it grows for as long as the snapshot is open. */
  logBytes(): number;
  close(): void;
}

const chunkBytes = 2 ** 20;
/** Under load a commit comes each millisecond, and the moment between two reads of a header is much shorter. */
const mostTries = 1_000;
/** SQLite locks bytes of the page at 1 GiB, which holds nothing. Windows would refuse to read them. */
const lockByte = 2 ** 30;

/**
 * Takes a snapshot of the database of a data directory, whether or not a server runs on it. None of its data is changed, and
 * what it takes of memory does not grow with the database: SQLite's own ways would either write all of it to
 * the disk first (`VACUUM INTO`), or begin again at each commit of another process (its backup interface).
 *
 *   a read transaction holds the moment: until it ends, no frame of the log that it sees is overwritten, and only those
 *   frames are copied into the file
 *     page in the log, up to the last frame of the moment  ─▶ that frame
 *     any other page                                       ─▶ as it is in the file, where nobody changes it
 *
 * Only for a process that has no other connection to the file: closing the files that are read here takes away the locks
 * of every connection of the same process.
 * @throws StartupError when there is no database, it cannot be read, or its data was moved elsewhere
 */
export function openSnapshot(dataDir: string): Snapshot {
  // SQLite keeps the log beside the file itself.
  const path = realPath(join(dataDir, databaseFile));
  if (!existsSync(path)) {
    throw new StartupError(`There is no database in ${dataDir}. Try: name the server's folder with --data-dir.`);
  }
  const files: number[] = [];
  const open = (name: string) => {
    const file = openSync(name, "r");
    files.push(file);
    return file;
  };
  let client: Database | null = null;
  const close = () => {
    // In this order, and by force: a connection that lingers would go on without its locks.
    client?.close(true);
    client = null;
    for (const file of files.splice(0)) closeSync(file);
  };
  try {
    const file = open(path);
    const connection = new Database(path, { readwrite: true, create: false, strict: true });
    client = connection;
    // At its end it would remove the log by name, which may be another one's by then: somebody has put a new database there.
    connection.fileControl(constants.SQLITE_FCNTL_PERSIST_WAL, 1);
    waitForLocks(connection);
    leaveLogAlone(connection);
    // A database that was compacted or recovered has no log until a server starts on it. Without one, whoever reads keeps a
    // server from starting.
    applyPragma(connection, usesLog);
    // Makes the log and its index, if there are none.
    connection.query("select count(*) from sqlite_schema").get();
    refuseMoved(connection, path);
    const log = open(`${path}-wal`);
    const index = open(`${path}-shm`);
    const { header, copied } = holdMoment(connection, index);
    const pageBytes = pragma(connection, "page_size");
    const pages = pragma(connection, "page_count");
    // A log that is all in the file is not read: it may begin anew.
    const frames = copied >= header.lastFrame ? new Map<number, number>() : latestFrames(log, header, pageBytes);
    return {
      folder: dirname(path),
      bytes: pageBytes * pages,
      schema: standingOf(connection).schema,
      books: () => orInWords(dataDir, () => readBooks(connection)),
      chunks: () => readChunks({ file, log, pageBytes, pages, frames }),
      logBytes: () => fstatSync(log).size,
      close,
    };
  } catch (error) {
    close();
    throw inWords(path, error);
  }
}

/** Begins a read transaction of which it is known which commit it sees. */
function holdMoment(client: Database, index: number): { header: LogHeader; copied: number } {
  for (let tries = 0; tries < mostTries; tries++) {
    const before = readLogHeader(index);
    client.run("begin");
    client.query("select count(*) from sqlite_schema").get();
    const copied = readFramesCopied(index);
    if (before !== null && isSameHeader(before, readLogHeader(index))) return { header: before, copied };
    client.run("rollback");
  }
  throw new StartupError("The database changes too fast for a backup to begin. Try: again.");
}

const pragma = (client: Database, name: "page_size" | "page_count"): number =>
  Number(client.query(`pragma ${name}`).values()[0]?.[0]);

interface Pages {
  readonly file: number;
  readonly log: number;
  readonly pageBytes: number;
  readonly pages: number;
  /** Where in the log a page is, by its number. */
  readonly frames: ReadonlyMap<number, number>;
}

function* readChunks({ file, log, pageBytes, pages, frames }: Pages): Generator<Uint8Array> {
  const pagesInChunk = chunkBytes / pageBytes;
  const buffer = Buffer.alloc(chunkBytes);
  for (let first = 0; first < pages; first += pagesInChunk) {
    const count = Math.min(pagesInChunk, pages - first);
    const chunk = buffer.subarray(0, count * pageBytes);
    const start = first * pageBytes;
    const isLocked = start === lockByte;
    const from = isLocked ? pageBytes : 0;
    if (isLocked) chunk.fill(0, 0, pageBytes);
    const read = readFully(file, chunk.subarray(from), start + from) + from;
    // As SQLite reads it: a page that was freed before it was ever written may lie behind the end.
    chunk.fill(0, read);
    for (let n = 0; n < count; n++) {
      const frame = frames.get(first + n + 1);
      if (frame !== undefined) readFully(log, chunk.subarray(n * pageBytes, (n + 1) * pageBytes), frame);
    }
    yield chunk;
  }
}

function readFully(file: number, into: Uint8Array, position: number): number {
  let done = 0;
  while (done < into.length) {
    const count = readSync(file, into, done, into.length - done, position + done);
    if (count === 0) break;
    done += count;
  }
  return done;
}
