import type { Database } from "bun:sqlite";
import type { Change } from "../../domain/change.ts";
import type { DomainError } from "../../domain/errors.ts";
import type { Moment } from "../../domain/moment.ts";
import type { Clock } from "../../lib/clock.ts";
import { isDiskFull } from "../../lib/disk-full.ts";
import { codeOf } from "../../lib/error-message.ts";
import { ingestedAtMs } from "../../lib/id.ts";

/**
 * A unit of work within a transaction. A job that a rule refuses has not written anything and returns `refuse(error)` instead
 * of throwing, so that refusals (a tenant over its quota) cost its neighbours nothing.
 */
export type Job<T> = (tx: WriteTransaction) => T | Refusal;

export class Refusal {
  constructor(readonly error: DomainError) {}
}

export const refuse = (error: DomainError) => new Refusal(error);

/** For all jobs, the moment is when the transaction began; the order holds across restarts, too. */
export interface WriteTransaction extends Moment {
  /** The sequence number of the next event: higher than all earlier ones, even if the clock has been set back. */
  nextEventSeq(): number;
  /** Something to write after all jobs, just before COMMIT. */
  beforeCommit(action: () => void): void;
  /** What to undo in memory if it turns out that nothing of this transaction was written. */
  ifUndone(action: () => void): void;
  /** Changes to report to the program once they are on disk, before any job of the transaction is answered. */
  changed(...changes: readonly Change[]): void;
}

/** What a transaction has done. */
export interface Written {
  /** One per job that has run, in the order of the jobs. */
  readonly outcomes: readonly JobOutcome[];
  readonly changes: readonly Change[];
  /** The last sequence number that is used up. */
  readonly seq: number;
  readonly undo: readonly (() => void)[];
}

type JobOutcome = { result: unknown } | { error: unknown };

/** A COMMIT that failed in a way that leaves open whether it is on disk. */
export class UnknownCommit extends Error {
  constructor(
    readonly written: Written,
    override readonly cause: unknown,
  ) {
    super("The outcome of a commit is not known");
  }

  /** SQLite indexes a commit after its frames have been synced, so only the index had no room. */
  get isInLogOnly(): boolean {
    return isDiskFull(this.cause);
  }
}

export interface Transactions {
  /**
   * Runs jobs in one transaction and makes everything they write durable.
   * @param goesOn asked before each job except the first, with its index; if false, commits without the remaining jobs
   * @throws UnknownCommit when it may or may not be on disk, and nothing was undone; otherwise whatever a job or SQLite threw,
   *   with everything undone
   */
  run(jobs: readonly { readonly job: Job<unknown> }[], goesOn?: (next: number) => boolean): Written;
  /**
   * Whether the last transaction, whose commit had an unknown outcome, is on disk. To be asked before anything else is written:
   * the empty commits that follow may be in doubt themselves, and carry the same mark.
   */
  isOnDisk(written: Written): boolean;
  /** To be called when nothing of it was written. */
  takeBack(written: Written): void;
}

export interface TransactionOptions {
  client: Database;
  clock: Pick<Clock, "now">;
  nextSeq(lastSeq: number, now: number): number;
  /** Called for every failed statement, whatever became of it, including those of a batch that is retried job by job. */
  onFailure?(failure: { operation: string; error: unknown }): void;
  /** For each transaction: how far the times in ids are ahead of the clock, as they are after it was set back; otherwise 0. */
  onAhead?(aheadMs: number): void;
  /** Runs instead of the commit statement, which is passed to it; tests make it fail. */
  commit?(commit: () => void): void;
}

/** Each transaction leaves a mark that shows whether it is on disk if its commit did not say so. */
export function createTransactions({
  client,
  clock,
  nextSeq,
  onFailure,
  onAhead,
  commit,
}: TransactionOptions): Transactions {
  const begin = client.prepare("begin immediate");
  const commitStatement = client.prepare("commit");
  const rollback = client.prepare("rollback");
  const mark = client.prepare("update lane set batch = ?1, last_event_seq = ?2 where id = 1");
  const readMark = client.prepare<{ batch: number; last_event_seq: number }, []>(
    "select batch, last_event_seq from lane where id = 1",
  );
  const commitNow = () => void commitStatement.run();
  const runCommit = commit ? () => commit(commitNow) : commitNow;

  // Creates the row in a new database. Without it no commit would leave a mark.
  client.run("insert or ignore into lane (id, batch, last_event_seq) select 1, 0, coalesce(max(seq), 0) from event");
  let { batch, last_event_seq: lastSeq } = readMark.get() ?? { batch: 0, last_event_seq: 0 };

  /** Never throws: on a broken disk the failure that led here is the one to report, and the next transaction tries again. */
  function rollBack(): void {
    if (!client.inTransaction) return;
    try {
      rollback.run();
    } catch {}
  }

  function takeBack({ undo }: Written): void {
    for (const action of undo) action();
  }

  function keep({ seq }: Written): void {
    batch += 1;
    lastSeq = seq;
  }

  return {
    run(jobs, goesOn) {
      const beforeCommit: (() => void)[] = [];
      const now = clock.now();
      const nextSeqNow = nextSeq(lastSeq, now);
      const orderedNow = ingestedAtMs(nextSeqNow);
      onAhead?.(orderedNow - Math.floor(now));
      const outcomes: JobOutcome[] = [];
      const changes: Change[] = [];
      const undo: (() => void)[] = [];
      // The mark also records the time, in the sequence numbers that no event got.
      let seq = nextSeqNow - 1;
      const written = (): Written => ({ outcomes, changes, seq, undo });
      const tx: WriteTransaction = {
        now,
        orderedNow,
        nextEventSeq() {
          seq = nextSeq(seq, now);
          return seq;
        },
        beforeCommit: (action) => void beforeCommit.push(action),
        ifUndone: (action) => void undo.push(action),
        changed: (...told) => void changes.push(...told),
      };
      let operation = "begin";
      try {
        rollBack();
        begin.run();
        operation = "write";
        for (const { job } of jobs) {
          if (outcomes.length > 0 && goesOn?.(outcomes.length) === false) break;
          const result = job(tx);
          outcomes.push(result instanceof Refusal ? { error: result.error } : { result });
        }
        for (const action of beforeCommit) action();
        mark.run(batch + 1, seq);
        operation = "commit";
        runCommit();
      } catch (error) {
        onFailure?.({ operation, error });
        rollBack();
        // After an I/O error the last frame may be in the log. A full disk is a clear case: it was never written.
        if (operation === "commit" && isInputOutputError(error)) throw new UnknownCommit(written(), error);
        takeBack(written());
        throw error;
      }
      const done = written();
      keep(done);
      return done;
    },
    isOnDisk(written) {
      const isThere = readMark.get()?.batch === batch + 1;
      if (isThere) keep(written);
      return isThere;
    },
    takeBack,
  };
}

const isInputOutputError = (error: unknown) => codeOf(error).startsWith("SQLITE_IOERR");
