import type { Database } from "bun:sqlite";
import type { Change } from "../../domain/change.ts";
import type { DomainError } from "../../domain/errors.ts";
import type { Moment } from "../../domain/moment.ts";
import type { Clock } from "../../lib/clock.ts";
import { isDiskFull } from "../../lib/disk-full.ts";
import { ingestedAtMs } from "../../lib/id.ts";

/**
 * What is written in one transaction. A job that is refused by a rule has not written anything and returns `refuse(error)`
 * instead of throwing, so that refusals (a tenant over its quota) cost their neighbours nothing.
 */
export type Job<T> = (tx: WriteTransaction) => T | Refusal;

export class Refusal {
  constructor(readonly error: DomainError) {}
}

export const refuse = (error: DomainError) => new Refusal(error);

/** The moment is that at which the transaction began, for all its jobs; its order holds across restarts too. */
export interface WriteTransaction extends Moment {
  /** The sequence number of the next event: ahead of all earlier ones, also when the clock has stepped back. */
  nextEventSeq(): number;
  /** Something to write after all jobs, just before COMMIT. */
  beforeCommit(action: () => void): void;
  /** What to take back in memory, should it turn out that nothing of this transaction was written. */
  ifUndone(action: () => void): void;
  /** Told to the program once it is on disk, before anybody in the transaction is answered. */
  changed(...changes: readonly Change[]): void;
}

/** What a transaction has done. */
export interface Written {
  /** Of its jobs, in their order: as many as have run. */
  readonly outcomes: readonly JobOutcome[];
  readonly changes: readonly Change[];
  /** The last number that is used up. */
  readonly seq: number;
  readonly undo: readonly (() => void)[];
}

type JobOutcome = { result: unknown } | { error: unknown };

/** A COMMIT that failed in a way that leaves open whether it will be found on disk. */
export class UnknownCommit extends Error {
  constructor(
    readonly written: Written,
    override readonly cause: unknown,
  ) {
    super("The outcome of a commit is not known");
  }

  /** SQLite indexes what it commits after the frames have been synced, so only the index had no room. */
  get isInLogOnly(): boolean {
    return isDiskFull(this.cause);
  }
}

export interface Transactions {
  /**
   * Runs jobs in one transaction, and leaves all that they write on disk.
   * @param goesOn asked before each job but the first, by its place; without the rest it is committed
   * @throws UnknownCommit when it may be on disk or not, and nothing was taken back; else what a job or SQLite threw, with
   *   everything taken back
   */
  run(jobs: readonly { readonly job: Job<unknown> }[], goesOn?: (next: number) => boolean): Written;
  /**
   * Whether the last transaction, the outcome of whose commit was not known, is on disk. To be asked before anything else is
   * written: the empty commits that follow may be in doubt themselves, and bear the same mark.
   */
  isOnDisk(written: Written): boolean;
  /** Nothing of it was written. */
  takeBack(written: Written): void;
}

export interface TransactionOptions {
  client: Database;
  clock: Pick<Clock, "now">;
  nextSeq(lastSeq: number, now: number): number;
  /** Told of every statement that failed, whatever became of it; of a batch that is tried again one by one, too. */
  onFailure?(failure: { operation: string; error: unknown }): void;
  /** For each transaction: by how much the times of ids are ahead of the clock, as they are after it was set back; else 0. */
  onAhead?(aheadMs: number): void;
  /** Runs instead of the commit statement, which it is given; tests make it fail. */
  commit?(commit: () => void): void;
}

/** Each transaction leaves a mark, by which it is found out whether it is on disk when its commit did not say so. */
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

  // The row of a new database. Without it no commit would leave a mark.
  client.run("insert or ignore into lane (id, batch, last_event_seq) select 1, 0, coalesce(max(seq), 0) from event");
  let { batch, last_event_seq: lastSeq } = readMark.get() ?? { batch: 0, last_event_seq: 0 };

  /** Never throws: on a broken disk the failure that led here is the one to tell, and the next transaction tries again. */
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
      // The mark keeps the time as well, in the numbers that no event got.
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
        // After an I/O error the last frame may be in the log. A full disk is clear: it was never written.
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

/** SQLite's extended code; empty for what is not its error. */
export function errorCode(error: unknown): string {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return typeof code === "string" ? code : "";
}

const isInputOutputError = (error: unknown) => errorCode(error).startsWith("SQLITE_IOERR");
