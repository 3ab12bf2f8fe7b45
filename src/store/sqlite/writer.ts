import type { Database } from "bun:sqlite";
import type { Change } from "../../domain/change.ts";
import { type DomainError, shuttingDown, unavailable } from "../../domain/errors.ts";
import type { Moment } from "../../domain/moment.ts";
import type { Clock } from "../../lib/clock.ts";
import { sleep } from "../../lib/clock.ts";
import { isDiskFull } from "../../lib/disk-full.ts";
import { ingestedAtMs } from "../../lib/id.ts";
import { isDamage, storageDamaged } from "./damage.ts";

/**
 * The writer: the one place that commits. What arrives while a batch is being written goes into the next one, so the
 * price of a sync to disk is shared by all who wait for it (one row a commit: 5,000/s; a hundred: 80,000/s).
 *
 *   submit ─▶ queue ─▶ BEGIN IMMEDIATE, job, job, job, COMMIT ─▶ every waiter gets its answer
 *                          │ one throws
 *                          └─▶ ROLLBACK, then each job in a transaction of its own: a bad one fails alone
 *
 * A heavy job (a batch of 1,000 events takes some 25 ms) goes alone, and before the next heavy one go all the others that
 * wait. In one commit with them, 16 batches of one account held up everybody's events for seconds.
 *
 * A patient job (the settlement of an attempt for which nothing waits) goes with the next one that somebody waits for. At 200
 * events a second that makes one commit of two, each of which costs a sync.
 *
 * Settlements have a queue of their own, and each commit takes as many as it can write in a few milliseconds: when 3,300 attempts
 * to silent receivers end in the same moment, those who post need not wait until all of them are written.
 *
 * A job that is refused by a rule has not written anything and returns `refuse(error)` instead of throwing, so that
 * refusals (a tenant over its quota) cost their neighbours nothing.
 */
export interface Writer {
  /** @param pace @default "soon" */
  submit<T>(job: Job<T>, pace?: Pace): Promise<T>;
  /** Age of the oldest write that waits, in ms. */
  lagMs(): number;
  /** Commits what waits; later submissions are `unavailable`. */
  close(): Promise<void>;
}

/**
 * `heavy`: it writes for milliseconds, and gets a commit of its own, in turn with those that all the others share.
 * `settlement`: of an attempt; nobody's request waits for it, so it leaves room for those for which somebody does.
 * `patient`: a settlement that may wait for others to share a commit with, for `patienceMs`.
 */
export type Pace = "soon" | "heavy" | "settlement" | "patient";

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

/** Longest pause between two attempts to bring a writer back whose last commit has an unknown outcome. */
const recoveryPauseMs = 500;

/**
 * Most jobs in one commit, and enough to end a pause. More would let the first wait for the last without making a job cheaper.
 * Fewer cost more: with 64 a server on two cores carried a tenth fewer events.
 */
const batchLimit = 512;

/**
 * For so long a commit goes on taking settlements, in ms, and no more than that many. By number alone it would not do: the
 * outcome of an attempt that failed takes ten times as long to write as a delivery, and 128 of them were seen to take 65 ms.
 */
const settlingMs = 5;
const settlementLimit = 128;

/**
 * After a commit the writer pauses for twice the time that it took, so that syncing takes a third of the event loop at most,
 * and no longer than this: the wait is part of every ingestion's latency.
 */
const pausePerWork = 2;
const longestPauseMs = 2;

/** As long as two events a hundred a second are apart: with fewer, commits are not what costs. */
const patienceMs = 20;

interface Waiting {
  job: Job<unknown>;
  resolve(value: unknown): void;
  reject(error: unknown): void;
  since: number;
}

type JobOutcome = { result: unknown } | { error: unknown };

interface Written {
  outcomes: JobOutcome[];
  changes: Change[];
  seq: number;
  undo: (() => void)[];
}

/** A COMMIT that failed in a way that leaves open whether it will be found on disk. */
class UnknownCommit extends Error {
  constructor(
    readonly written: Written,
    override readonly cause: unknown,
  ) {
    super("The outcome of a commit is not known");
  }
}

/** SQLite indexes what it commits after the frames have been synced, so only the index had no room. */
const isInLogOnly = (error: unknown) => error instanceof UnknownCommit && isDiskFull(error.cause);

export interface WriterOptions {
  client: Database;
  clock: Clock;
  nextSeq(lastSeq: number, now: number): number;
  /** Of each change, in their order. Must not throw. */
  onChange(change: Change): void;
  /** For metrics: after every commit. */
  onCommit?(commit: { jobs: number; durationMs: number }): void;
  /** Told of every statement that failed, whatever became of it; of a batch that is tried again one by one, too. */
  onFailure?(failure: { operation: string; error: unknown }): void;
  /** For each transaction: by how much the times of ids are ahead of the clock, as they are after it was set back; else 0. */
  onAhead?(aheadMs: number): void;
  /** After every batch, when nothing is being written: the moment for a quick look at the log. */
  betweenBatches?(): void;
  /** A job met a damaged page; its submitter is told as well. */
  onDamage?(error: Error): void;
  /** Runs instead of the commit statement, which it is given; tests make it fail. */
  commit?(commit: () => void): void;
  /** False: no pause between commits, so that no real time passes in a simulation. @default true */
  pauses?: boolean;
}

export function createWriter({
  client,
  clock,
  nextSeq,
  onChange,
  onCommit,
  onFailure,
  onAhead,
  betweenBatches,
  onDamage,
  commit,
  pauses = true,
}: WriterOptions): Writer {
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
  const queue: Waiting[] = [];
  const heavyQueue: Waiting[] = [];
  const settlements: Waiting[] = [];
  let lastWasHeavy = false;
  let scheduled = false;
  /** By `performance.now()`. A lone write after a pause goes at once; under load more of them share a commit. */
  let pauseUntil = 0;
  let pausing: ReturnType<typeof setTimeout> | null = null;
  /** Only patient jobs wait for the end of this pause. */
  let isPatient = false;
  let closed = false;
  /** Set while the outcome of a commit is not known: nothing may be written, and new work is turned away. */
  let recovering: { since: number } | null = null;
  let whenIdle: (() => void) | null = null;

  /**
   * Runs jobs in one transaction; throws with everything rolled back, or leaves everything on disk. From the settlements on, it
   * stops when their time is up: `outcomes` says how many jobs have run.
   */
  function transact(jobs: readonly Waiting[], firstSettlement = jobs.length): Written {
    const beforeCommit: (() => void)[] = [];
    const now = clock.now();
    const nextSeqNow = nextSeq(lastSeq, now);
    onAhead?.(ingestedAtMs(nextSeqNow) - Math.floor(now));
    // The mark keeps the time as well, in the numbers that no event got.
    const written: Written = { outcomes: [], changes: [], seq: nextSeqNow - 1, undo: [] };
    const tx: WriteTransaction = {
      now,
      orderedNow: ingestedAtMs(nextSeqNow),
      nextEventSeq() {
        written.seq = nextSeq(written.seq, tx.now);
        return written.seq;
      },
      beforeCommit: (action) => void beforeCommit.push(action),
      ifUndone: (action) => void written.undo.push(action),
      changed: (...changes) => void written.changes.push(...changes),
    };
    let operation = "begin";
    try {
      rollBack();
      begin.run();
      operation = "write";
      let endsAt = Number.POSITIVE_INFINITY;
      for (let i = 0; i < jobs.length; i += 1) {
        if (i === firstSettlement && pauses) endsAt = performance.now() + settlingMs;
        else if (i > firstSettlement && performance.now() > endsAt) break;
        const result = jobs[i]?.job(tx);
        written.outcomes.push(result instanceof Refusal ? { error: result.error } : { result });
      }
      for (const action of beforeCommit) action();
      mark.run(batch + 1, written.seq);
      operation = "commit";
      try {
        runCommit();
      } catch (error) {
        // After an I/O error the last frame may be in the log. A full disk is clear: it was never written.
        throw errorCode(error).startsWith("SQLITE_IOERR") ? new UnknownCommit(written, error) : error;
      }
      keep(written);
      return written;
    } catch (error) {
      onFailure?.({ operation, error: error instanceof UnknownCommit ? error.cause : error });
      rollBack();
      if (!(error instanceof UnknownCommit)) takeBack(written);
      throw error;
    }
  }

  /** Never throws: on a broken disk the failure that led here is the one to tell, and the next batch tries again. */
  function rollBack(): void {
    if (!client.inTransaction) return;
    try {
      rollback.run();
    } catch {}
  }

  function takeBack({ undo }: Written): void {
    for (const action of undo) action();
  }

  function keep(written: Written): void {
    batch += 1;
    lastSeq = written.seq;
  }

  function write(jobs: readonly Waiting[], firstSettlement?: number): void {
    const startedAt = clock.monotonicMs();
    let written: Written;
    try {
      written = transact(jobs, firstSettlement);
    } catch (error) {
      if (jobs.length === 1 && error instanceof Error && isDamage(error)) onDamage?.(error);
      if (error instanceof UnknownCommit) {
        putBack(jobs, error.written);
        void recover(jobs, error);
      } else if (jobs.length === 1) jobs[0]?.reject(translate(error));
      else for (const job of jobs) writeAlone(job);
      return;
    }
    const endedAt = clock.monotonicMs();
    const durationMs = endedAt - startedAt;
    if (pauses) pauseUntil = performance.now() + Math.min(durationMs * pausePerWork, longestPauseMs);
    putBack(jobs, written);
    answer(jobs, written);
    onCommit?.({ jobs: written.outcomes.length, durationMs });
  }

  /** The settlements for which there was no time are the first of the next commit. */
  function putBack(jobs: readonly Waiting[], { outcomes }: Written): void {
    if (outcomes.length < jobs.length) settlements.unshift(...jobs.slice(outcomes.length));
  }

  /** Jobs of a failed batch go one at a time; when that stops the writer, the others are turned away like new work. */
  function writeAlone(job: Waiting): void {
    if (recovering) job.reject(laneStopped());
    else write([job]);
  }

  function answer(jobs: readonly Waiting[], written: Written): void {
    for (const change of written.changes) onChange(change);
    written.outcomes.forEach((outcome, i) => {
      if ("error" in outcome) jobs[i]?.reject(outcome.error);
      else jobs[i]?.resolve(outcome.result);
    });
  }

  /**
   * Until another commit has gone through, a crash could still bring the failed one to life. So the writer stands, reads
   * back what the database holds, writes over the doubtful frames, and only then tells the waiters what happened.
   *
   * It is read once, before anything else is written: the empty commits that follow may be in doubt themselves, and bear
   * the same mark.
   *
   * Where only the index of the log had no room for such a commit, it is in the log all the same, and nothing is left of the one
   * in doubt. So its waiters are told; until there is room, which may be days, the writer goes on standing.
   */
  async function recover(jobs: readonly Waiting[], { written, cause }: UnknownCommit): Promise<void> {
    recovering = { since: jobs[0]?.since ?? clock.monotonicMs() };
    let happened: boolean | null = null;
    let areTurnedAway = false;
    const turnAway = () => {
      if (areTurnedAway) return;
      areTurnedAway = true;
      takeBack(written);
      for (const job of jobs.slice(0, written.outcomes.length)) job.reject(translate(cause));
    };
    while (!(closed && areTurnedAway)) {
      try {
        if (happened === null) {
          happened = readMark.get()?.batch === batch + 1;
          if (happened) keep(written);
        }
        transact([]);
        break;
      } catch (error) {
        if (happened === false && isInLogOnly(error)) turnAway();
        await sleep(clock, recoveryPauseMs);
      }
    }
    recovering = null;
    if (happened) answer(jobs, written);
    else turnAway();
    schedule();
  }

  function flush(): void {
    scheduled = false;
    if (recovering) return;
    const { jobs, firstSettlement } = takeJobs();
    if (jobs.length > 0) {
      write(jobs, firstSettlement);
      if (!recovering) betweenBatches?.();
    }
    if (recovering) return;
    if (isWaiting()) schedule();
    else whenIdle?.();
  }

  const isWaiting = () => queue.length > 0 || settlements.length > 0 || heavyQueue.length > 0;

  function queueFor(pace: Pace): Waiting[] {
    if (pace === "soon") return queue;
    return pace === "heavy" ? heavyQueue : settlements;
  }

  function takeJobs(): { jobs: readonly Waiting[]; firstSettlement: number } {
    const othersWait = queue.length > 0 || settlements.length > 0;
    const heavy = !othersWait || !lastWasHeavy ? heavyQueue.shift() : undefined;
    lastWasHeavy = heavy !== undefined;
    if (heavy) return { jobs: [heavy], firstSettlement: 1 };
    const settling = settlements.splice(0, settlementLimit);
    const urgent = queue.splice(0, batchLimit - settling.length);
    return { jobs: [...urgent, ...settling], firstSettlement: urgent.length };
  }

  function schedule(pace: Pace = "soon"): void {
    if (!scheduled) {
      scheduled = true;
      rest(pace);
    } else if (pausing !== null && queue.length + settlements.length >= batchLimit) {
      clearTimeout(pausing);
      flushSoon();
    } else if (pausing !== null && isPatient && pace !== "patient") {
      clearTimeout(pausing);
      rest(pace);
    }
  }

  function rest(pace: Pace): void {
    isPatient = pauses && pace === "patient";
    const restMs = isPatient ? patienceMs : Math.min(pauseUntil - performance.now(), longestPauseMs);
    // Real time, not the injected one: a pause is about the machine, and a clock that a test holds would hold the writer.
    if (restMs <= 0) flushSoon();
    else pausing = setTimeout(flushSoon, restMs);
  }

  /** After the requests that were read in this turn of the loop: timers come before them, and a heavy job would too. */
  function flushSoon(): void {
    pausing = null;
    setImmediate(flush);
  }

  return {
    submit<T>(job: Job<T>, pace: Pace = "soon") {
      if (closed) return Promise.reject(shuttingDown());
      if (recovering) return Promise.reject(laneStopped());
      return new Promise<T>((resolve, reject) => {
        queueFor(pace).push({
          job,
          resolve: resolve as (value: unknown) => void,
          reject,
          since: clock.monotonicMs(),
        });
        schedule(pace);
      });
    },
    lagMs() {
      const waiting = [recovering, queue[0], settlements[0], heavyQueue[0]].flatMap((one) => (one ? [one.since] : []));
      return waiting.length === 0 ? 0 : clock.monotonicMs() - Math.min(...waiting);
    },
    async close() {
      closed = true;
      if (isWaiting() || scheduled || recovering) await new Promise<void>((resolve) => (whenIdle = resolve));
    },
  };
}

const storageRetrySeconds = 5;

const laneStopped = () =>
  unavailable("The storage cannot be written at the moment; retry later.", "storage_unavailable", storageRetrySeconds);

function errorCode(error: unknown): string {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return typeof code === "string" ? code : "";
}

/** What SQLite says of its disk, in the words of the seam; anything else is a defect and passes through. */
function translate(error: unknown): unknown {
  const code = errorCode(error);
  if (isDiskFull(error)) {
    return unavailable("The server's disk is full; retry later.", "storage_full", storageRetrySeconds);
  }
  if (code.startsWith("SQLITE_IOERR") || code.startsWith("SQLITE_BUSY") || code.startsWith("SQLITE_READONLY")) {
    return laneStopped();
  }
  return isDamage(error) ? storageDamaged() : error;
}
