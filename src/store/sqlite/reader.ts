import type { Database } from "bun:sqlite";
import { requestAbandoned, shuttingDown } from "../../domain/errors.ts";
import { faultOf, type StartThread, startWorker, type Thread } from "../../lib/threads.ts";
import { createTurnstile } from "../../lib/turnstile.ts";
import { type PackedStep, unpackStep } from "./packed-step.ts";
import { type Queries, type QueryName, type QueryRun, runHere } from "./queries.ts";

/**
 * A second thread on the same database: the queries of `queries.ts` on a read-only connection, and checkpoints. Accounts take
 * turns: two hundred lists of one, at 150 ms each, kept everybody else's charts waiting for half a minute.
 */
export interface Reader {
  readonly run: QueryRun;
  /**
   * Like `run`, for a client that may leave: those of two hundred lists whose connections were cut would go on for minutes.
   * @throws invalid `request_abandoned` when it has left by its turn
   */
  runFor(isAbandoned: (() => boolean) | undefined): QueryRun;
  /** Copies what has been committed from the log into the database file; waits for no query that has not reached the thread. */
  checkpoint(): Promise<void>;
  /** Ends the thread and its connections; requests not answered by then fail with `unavailable`. */
  close(): Promise<void>;
}

export type ReaderRequest =
  | { id: number; kind: "query"; name: QueryName; params: unknown }
  | { id: number; kind: "checkpoint" };

export type ReaderMessage = { kind: "open"; databasePath: string } | { kind: "close" } | ReaderRequest;

export type ReaderAnswer =
  | { id: number; result: unknown }
  | { id: number; step: PackedStep }
  | { id: number; error: string; code: string };

/** A query that takes longer than this is cut off at the end: SQLite holds no state that a reader could leave behind. */
const closingPatienceMs = 2_000;

/** Queries that have been sent to the thread: one that it works on, and one so that it need not wait for the next. */
const queriesAtOnce = 2;

type Unnumbered<Request> = Request extends unknown ? Omit<Request, "id"> : never;

/**
 * Starts its thread on the first request: a store opened for a single command does without it.
 * @param startThread tests give it one that has been used before
 */
export function createReader(databasePath: string, startThread: StartThread = startWorker): Reader {
  let worker: Thread | null = null;
  let closing: Promise<void> | null = null;
  let lastId = 0;
  const waiting = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>();
  const turns = createTurnstile<number | undefined>(queriesAtOnce);

  function send(message: ReaderMessage): void {
    worker?.postMessage(message);
  }

  function start(): Thread {
    // A small heap: it holds one step at a time, and should keep as little garbage as possible.
    const started = startThread(new URL("./reader-worker.ts", import.meta.url), { smol: true });
    started.onmessage = ({ data }: MessageEvent<ReaderAnswer>) => {
      const waiter = waiting.get(data.id);
      waiting.delete(data.id);
      if (waiting.size === 0) started.unref();
      if ("error" in data) waiter?.reject(Object.assign(new Error(data.error), { code: data.code }));
      else waiter?.resolve("step" in data ? unpackStep(data.step) : data.result);
    };
    started.onerror = (event) => {
      if (worker === started) worker = null;
      rejectAll(new Error(`The reader stopped: ${faultOf(event)}`));
    };
    return started;
  }

  function rejectAll(error: Error): void {
    for (const waiter of waiting.values()) waiter.reject(error);
    waiting.clear();
  }

  function ask<Answer>(request: Unnumbered<ReaderRequest>): Promise<Answer> {
    if (closing !== null) return Promise.reject(shuttingDown());
    if (!worker) {
      worker = start();
      send({ kind: "open", databasePath });
    }
    worker.ref();
    lastId += 1;
    const id = lastId;
    const answer = new Promise<Answer>((resolve, reject) =>
      waiting.set(id, { resolve: resolve as (value: unknown) => void, reject }),
    );
    send({ ...request, id });
    return answer;
  }

  async function end(): Promise<void> {
    const ending = worker;
    if (!ending) return;
    let patience: ReturnType<typeof setTimeout> | undefined;
    await new Promise<void>((resolve) => {
      ending.addEventListener("close", () => resolve(), { once: true });
      ending.ref();
      send({ kind: "close" });
      patience = setTimeout(resolve, closingPatienceMs);
    });
    clearTimeout(patience);
    ending.terminate();
    worker = null;
    rejectAll(shuttingDown());
  }

  const runFor =
    (isAbandoned?: () => boolean): QueryRun =>
    async (name, params) => {
      const turn = turns.pass(accountIn(params), 1);
      if (turn !== null) await turn;
      try {
        if (isAbandoned?.()) throw requestAbandoned();
        return await ask({ kind: "query", name, params });
      } finally {
        turns.leave(1);
      }
    };

  return {
    run: runFor(),
    runFor,
    async checkpoint() {
      await ask({ kind: "checkpoint" });
    },
    close() {
      closing ??= end();
      return closing;
    },
  };
}

/** Whom a query is for; undefined: the server itself. */
function accountIn(params: unknown): number | undefined {
  const { tenantKey, filter } = (params ?? {}) as { tenantKey?: number; filter?: { tenantKey?: number } };
  return tenantKey ?? filter?.tenantKey;
}

/** The same without the second thread: answers come at reproducible moments, and nothing else happens in between. */
export function createSameThreadReader(client: Database, queries: Queries): Reader {
  return {
    run: runHere(queries),
    runFor: () => runHere(queries),
    checkpoint: async () => void client.run("pragma wal_checkpoint(passive)"),
    close: async () => {},
  };
}
