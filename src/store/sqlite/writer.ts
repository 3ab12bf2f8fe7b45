import type { Change } from "../../domain/change.ts";
import { shuttingDown, unavailable } from "../../domain/errors.ts";
import { type Clock, sleep } from "../../lib/clock.ts";
import { isDiskFull } from "../../lib/disk-full.ts";
import { isDamage, storageDamaged } from "./damage.ts";
import {
  createTransactions,
  errorCode,
  type Job,
  type TransactionOptions,
  UnknownCommit,
  type Written,
} from "./transaction.ts";

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

/** What became of a commit whose outcome was not known. `told`: nothing of it was written, and those who waited know. */
type Fate = "unknown" | "on disk" | "lost" | "told";

export interface WriterOptions extends TransactionOptions {
  clock: Clock;
  /** Of each change, in their order. Must not throw. */
  onChange(change: Change): void;
  /** For metrics: after every commit. */
  onCommit?(commit: { jobs: number; durationMs: number }): void;
  /** After every batch, when nothing is being written: the moment for a quick look at the log. */
  betweenBatches?(): void;
  /** A job met a damaged page; its submitter is told as well. */
  onDamage?(error: Error): void;
  /** False: no pause between commits, so that no real time passes in a simulation. @default true */
  pauses?: boolean;
}

export function createWriter({
  clock,
  onChange,
  onCommit,
  betweenBatches,
  onDamage,
  pauses = true,
  ...options
}: WriterOptions): Writer {
  const transactions = createTransactions({ clock, ...options });
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

  /** Settlements are written until their time is up, and the first of them in any case. */
  function haveTime(firstSettlement: number): (next: number) => boolean {
    let endsAt = performance.now() + settlingMs;
    return (next) => {
      if (next === firstSettlement) endsAt = performance.now() + settlingMs;
      return next <= firstSettlement || performance.now() <= endsAt;
    };
  }

  function write(jobs: readonly Waiting[], firstSettlement = jobs.length): void {
    const startedAt = clock.monotonicMs();
    let written: Written;
    try {
      written = transactions.run(jobs, pauses ? haveTime(firstSettlement) : undefined);
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
   * Where only the index of the log had no room for such a commit, it is in the log all the same, and nothing is left of the one
   * in doubt. So its waiters are told; until there is room, which may be days, the writer goes on standing.
   */
  async function recover(jobs: readonly Waiting[], { written, cause }: UnknownCommit): Promise<void> {
    recovering = { since: jobs[0]?.since ?? clock.monotonicMs() };
    let fate = "unknown" as Fate;
    const turnAway = () => {
      fate = "told";
      transactions.takeBack(written);
      for (const job of jobs.slice(0, written.outcomes.length)) job.reject(translate(cause));
    };
    while (!(closed && fate === "told")) {
      try {
        if (fate === "unknown") fate = transactions.isOnDisk(written) ? "on disk" : "lost";
        transactions.run([]);
        break;
      } catch (error) {
        if (fate === "lost" && error instanceof UnknownCommit && error.isInLogOnly) turnAway();
        await sleep(clock, recoveryPauseMs);
      }
    }
    recovering = null;
    if (fate === "on disk") answer(jobs, written);
    else if (fate === "lost") turnAway();
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
