import { SQL } from "bun";
import { DrizzleQueryError } from "drizzle-orm/errors";
import { PgDialect, type PreparedQueryConfig } from "drizzle-orm/pg-core";
import { PgRemoteDatabase, PgRemoteSession, type PreparedQuery } from "drizzle-orm/pg-proxy";
import { shuttingDown } from "../../domain/errors.ts";
import type { Clock } from "../../lib/clock.ts";
import { DeadlinePassed, type Fault, faultOf, OutcomeUnknown, refuseZero, storageUnavailable } from "./faults.ts";
import { hasZero } from "./parameters.ts";
import { byIndexes } from "./planner.ts";

/**
 * Connections to PostgreSQL, through Bun's own client. That has no deadline: a server that stands still, or a network that
 * swallows packets, would hold a call forever. So each call gets ours, a little longer than the server's for a statement;
 * when it passes, all connections are abandoned, and the next call opens new ones.
 *
 * The client's rules: `bigint` arrives as text (cast it to `float8`), arrays go as text with a cast and many byte strings as
 * one (`parameters.ts`), prepared statements are kept by their text, so a text must never be built from values.
 */
export interface Pool {
  /** Statements that write nothing, through drizzle's builder. Errors are those of `read`. */
  readonly db: PgRemoteDatabase;
  /**
   * A statement that writes nothing. By a text with U+0000 it finds no rows, as in SQLite.
   * @throws DomainError `unavailable`, whatever happened to the connection
   */
  read<Row>(text: string, values?: readonly Value[]): Promise<Row[]>;
  /**
   * A statement that is a transaction in itself. One that conflicted with another is repeated.
   * @throws DomainError `unavailable` when nothing was written; OutcomeUnknown when that is not known
   */
  write<Row>(text: string, values?: readonly Value[]): Promise<Row[]>;
  /**
   * Several statements in one transaction (READ COMMITTED: each sees what was committed before it began). It may run more
   * than once, and rolls back when it throws. If the connection is lost before the commit, nothing was written.
   * @throws as `write`
   */
  transact<T>(work: (tx: Transaction) => Promise<T>): Promise<T>;
  /** Several reads as of one moment: all see what was committed before the first one. @throws as `read` */
  snapshot<T>(work: (tx: Transaction) => Promise<T>): Promise<T>;
  /** The output of a `copy … to stdout`, as it arrives; the statement has no parameters. @throws as `read` */
  copyOut(text: string): AsyncIterable<Uint8Array>;
  /** Ends every connection, whatever is in progress; later calls are refused. */
  close(): Promise<void>;
}

export interface Transaction {
  /** Statements through drizzle's builder. */
  readonly db: PgRemoteDatabase;
  run<Row>(text: string, values?: readonly Value[]): Promise<Row[]>;
  /** Gives a `copy … from stdin` all its bytes; the statement has no parameters. */
  copyIn(text: string, bytes: Uint8Array): Promise<void>;
}

export type Value = string | number | boolean | null | Uint8Array;

export interface PoolOptions {
  url: string;
  /** The most connections. With one, statements run in the order of their calls (a lane). */
  size: number;
  clock: Pick<Clock, "after">;
  /** Called with every failure as it came from the client or the server, whatever comes of it. */
  onFailure?(error: unknown): void;
  /** How long the server may work on a statement; 0: any time, and then without a deadline of ours either. @default 10 s */
  statementTimeoutMs?: number;
  /** Settings of each of its connections. */
  settings?: Readonly<Record<string, string>>;
}

export const statementTimeoutMs = 10_000;
/** How long the server's answer may take beyond its own deadline before it is taken for lost. */
const answerGraceMs = 2_000;
const connectionTimeoutSeconds = 5;

/** How often a transaction is tried in all when others conflict with it. */
const mostTries = 4;

export function createPool(options: PoolOptions): Pool {
  const { url, size, clock, onFailure, settings, statementTimeoutMs: timeoutMs = statementTimeoutMs } = options;
  const deadlineMs = timeoutMs === 0 ? null : timeoutMs + answerGraceMs;
  let current: SQL | null = null;
  let closed = false;

  function open(): SQL {
    if (closed) throw shuttingDown();
    current ??= new SQL(url, {
      adapter: "postgres",
      max: size,
      connectionTimeout: connectionTimeoutSeconds,
      connection: {
        application_name: "postrider",
        statement_timeout: timeoutMs,
        idle_in_transaction_session_timeout: timeoutMs,
        ...byIndexes,
        ...settings,
      },
    });
    return current;
  }

  function giveUp(sql: SQL): void {
    if (current === sql) current = null;
    sql.close({ timeout: 0 }).catch(() => {});
  }

  /** @param run is given a function that restarts the deadline */
  function withDeadline<T>(sql: SQL, run: (extend: () => void) => PromiseLike<T>): Promise<T> {
    const { promise: passed, reject } = Promise.withResolvers<never>();
    let cancel = () => {};
    function extend(): void {
      cancel();
      if (deadlineMs === null) return;
      cancel = clock.after(deadlineMs, () => {
        reject(new DeadlinePassed(`The database has not answered for ${deadlineMs} ms`));
        giveUp(sql);
      });
    }
    extend();
    return Promise.race([run(extend), passed]).finally(() => cancel());
  }

  async function attempt<T>(run: (sql: SQL) => Promise<T>, judge: (error: unknown) => Fault): Promise<T> {
    for (let tries = 1; ; tries += 1) {
      const sql = open();
      try {
        return await run(sql);
      } catch (error) {
        const fault = judge(error);
        if (fault !== "conflict" || tries === mostTries) throw refusalOf(sql, error, fault);
        onFailure?.(error);
      }
    }
  }

  /** The error that the caller gets. */
  function refusalOf(sql: SQL, error: unknown, fault: Fault): unknown {
    if (fault === "defect") return error;
    onFailure?.(error);
    if (fault === "standby") giveUp(sql);
    return fault === "lost" ? new OutcomeUnknown(error) : storageUnavailable(fault, error);
  }

  const queryValues = (text: string, values: readonly Value[]) => (sql: SQL) =>
    withDeadline(sql, () => sql.unsafe(text, [...values]).values());

  const query =
    <Row>(text: string, values: readonly Value[]) =>
    (sql: SQL): Promise<Row[]> =>
      withDeadline(sql, () => sql.unsafe<Row[]>(text, [...values]));

  /** A statement without effects can always be repeated. */
  const harmless = (error: unknown): Fault => {
    const fault = faultOf(error);
    return fault === "lost" ? "passing" : fault;
  };

  /** Nothing is found by a text that the server cannot even be asked for. */
  const find = async <Row>(values: readonly Value[], run: (sql: SQL) => Promise<Row[]>): Promise<Row[]> =>
    hasZero(values) ? [] : attempt(run, harmless);

  const inTransaction =
    <T>(isolation: "read committed" | "repeatable read read only", work: (tx: Transaction) => Promise<T>) =>
    (sql: SQL): Promise<T> =>
      withDeadline(sql, (extend) =>
        sql.begin(`isolation level ${isolation}`, (tx): Promise<T> => {
          return work({
            db: builderOver(async (text, values) => {
              const rows = await tx
                .unsafe(text, [...values])
                .values()
                .catch(refuseZero);
              extend();
              return rows;
            }),
            async run<Row>(text: string, values: readonly Value[] = []) {
              const rows = await tx.unsafe<Row[]>(text, [...values]).catch(refuseZero);
              extend();
              return rows;
            },
            async copyIn(text, bytes) {
              const writer = tx.unsafe(text).writable().getWriter();
              await writer.write(bytes);
              await writer.close();
              extend();
            },
          });
        }),
      ) as Promise<T>;

  return {
    db: builderOver((text, values) => find(values, queryValues(text, values))),
    read: (text, values = []) => find(values, query(text, values)),
    write: (text, values = []) => attempt(query(text, values), faultOf),
    transact<T>(work: (tx: Transaction) => Promise<T>) {
      let isCommitting = false;
      const begin = inTransaction("read committed", async (tx) => {
        const result = await work(tx);
        isCommitting = true;
        return result;
      });
      const run = (sql: SQL) => {
        isCommitting = false;
        return begin(sql);
      };
      return attempt(run, (error) => (isCommitting ? faultOf(error) : harmless(error)));
    },
    snapshot: <T>(work: (tx: Transaction) => Promise<T>) =>
      attempt(
        inTransaction("repeatable read read only", (tx) =>
          work({ ...tx, run: async (text, values = []) => (hasZero(values) ? [] : tx.run(text, values)) }),
        ),
        harmless,
      ),
    async *copyOut(text) {
      const sql = open();
      const reader = sql.unsafe(text).readable().getReader();
      try {
        for (;;) {
          const { done, value } = await withDeadline(sql, () => reader.read());
          if (done) return;
          yield value;
        }
      } catch (error) {
        throw refusalOf(sql, error, harmless(error));
      } finally {
        // A consumer that stops early ends the statement.
        await reader.cancel().catch(() => {});
      }
    },
    async close() {
      closed = true;
      await current?.close({ timeout: 0 });
      current = null;
    },
  };
}

/** Drizzle's builder on top of whatever runs its statements, so that they have the same deadlines as all others. */
function builderOver(run: (text: string, values: Value[]) => Promise<unknown[][]>): PgRemoteDatabase {
  const dialect = new PgDialect();
  const session = new BareSession(async (text, values) => ({ rows: await run(text, values) }), dialect, undefined);
  return new PgRemoteDatabase(dialect, session, undefined);
}

/**
 * Throws the original errors of what runs the statements: drizzle wraps them in one of its own, which would tell us nothing.
 */
class BareSession extends PgRemoteSession<Record<string, never>, Record<string, never>> {
  override prepareQuery<T extends PreparedQueryConfig>(
    ...given: Parameters<PgRemoteSession<Record<string, never>, Record<string, never>>["prepareQuery"]>
  ): PreparedQuery<T> {
    const prepared = super.prepareQuery<T>(...given);
    const execute = prepared.execute.bind(prepared);
    prepared.execute = (values) =>
      execute(values).catch((error: unknown) => {
        throw error instanceof DrizzleQueryError ? error.cause : error;
      });
    return prepared;
  }
}
