import { Database } from "bun:sqlite";
import { drizzle } from "drizzle-orm/bun-sqlite";
import { messageOf } from "../../lib/error-message.ts";
import { sqliteCodeOf } from "./damage.ts";
import { isStep, packStep } from "./packed-step.ts";
import { waitForLocks } from "./pragma.ts";
import { createQueries, type Queries } from "./queries.ts";
import type { ReaderAnswer, ReaderMessage, ReaderRequest } from "./reader.ts";

/** The other end of `reader.ts`. The build lists this file as a separate entry point. */
declare const self: Worker;

interface Opened {
  reading: Database;
  queries: Queries;
  /** Writes only what is already in the log. Null until asked for: the log may belong to another program. */
  checkpointing: Database | null;
  databasePath: string;
}

let opened: Opened | null = null;

self.onmessage = ({ data }: MessageEvent<ReaderMessage>) => {
  if (data.kind === "open") opened = open(data.databasePath);
  else if (data.kind === "close") close();
  else send(answer(data));
};

function send(answer: ReaderAnswer): void {
  self.postMessage(answer, "step" in answer ? answer.step.buffers : []);
}

function open(databasePath: string): Opened {
  const reading = new Database(databasePath, { readonly: true, strict: true });
  // In WAL mode a reader never waits for the writer, except for the moment in which the log is reset.
  waitForLocks(reading);
  return { reading, queries: createQueries(drizzle({ client: reading })), checkpointing: null, databasePath };
}

function openForCheckpoints(databasePath: string): Database {
  const checkpointing = new Database(databasePath, { readwrite: true, strict: true });
  checkpointing.run("pragma wal_autocheckpoint = 0");
  return checkpointing;
}

function close(): void {
  opened?.reading.close(true);
  opened?.checkpointing?.close(true);
  opened = null;
  process.exit();
}

function answer(request: ReaderRequest): ReaderAnswer {
  try {
    const result = work(request);
    return isStep(result) ? { id: request.id, step: packStep(result) } : { id: request.id, result };
  } catch (error) {
    return { id: request.id, error: messageOf(error), code: sqliteCodeOf(error) };
  }
}

function work(request: ReaderRequest): unknown {
  if (!opened) throw new Error("The reader has no database");
  if (request.kind === "checkpoint") {
    opened.checkpointing ??= openForCheckpoints(opened.databasePath);
    return void opened.checkpointing.run("pragma wal_checkpoint(passive)");
  }
  const query = opened.queries[request.name] as (params: unknown) => unknown;
  return query(request.params);
}
