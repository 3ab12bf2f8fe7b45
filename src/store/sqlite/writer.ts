import type { Change } from "../../domain/change.ts";
import { shuttingDown, unavailable } from "../../domain/errors.ts";
import { type Clock, sleep } from "../../lib/clock.ts";
import { isDiskFull } from "../../lib/disk-full.ts";
import { codeOf } from "../../lib/error-message.ts";
import { threadCpuMs } from "../../lib/threads.ts";
import { storageDamaged } from "../unless-damaged.ts";
import { isDamage } from "./damage.ts";
import { createTransactions, type Job, type TransactionOptions, UnknownCommit, type Written } from "./transaction.ts";

/**
 * The writer: the only place that commits. Jobs that arrive while a batch is being written go into the next one, so all that
 * wait for a sync to disk share its cost (one row per commit: 5,000/s; a hundred: 80,000/s).
 *
 *   submit ─▶ queue ─▶ BEGIN IMMEDIATE, job, job, job, COMMIT ─▶ every waiter gets its answer
 *                          │ one throws
 *                          └─▶ ROLLBACK, then each job in a transaction of its own: a bad one fails alone
 *
 * A heavy job (a batch of 1,000 events takes about 25 ms) is committed alone, and all other waiting jobs go before the next
 * heavy one. In one commit with them, 16 batches of one account held up everybody's events for seconds.
 *
 * A patient job (the settlement of an attempt that nothing waits for) is committed with the next job that someone waits for. At
 * 200 events a second that turns two commits into one, and each costs a sync.
 *
 * Settlements have a queue of their own, and each commit takes as many as it can write in a few milliseconds: when 3,300 attempts
 * to silent receivers end at the same moment, clients that post events need not wait until all of them are written.
 */
export interface Writer {
  /** @param pace @default "soon" */
  submit<T>(job: Job<T>, pace?: Pace): Promise<T>;
  /** Age of the oldest waiting write, in ms. */
  lagMs(): number;
  /** Commits what is waiting; later submissions fail with `unavailable`. */
  close(): Promise<void>;
}

/**
 * `heavy`: writes for milliseconds, and gets a commit of its own, in turn with those that all the others share.
 * `settlement`: settles an attempt; no request waits for it, so it makes way for jobs that a request waits for.
 * `patient`: a settlement that may wait up to `patienceMs` for others to share a commit with.
 */
export type Pace = "soon" | "heavy" | "settlement" | "patient";

/** Longest pause between two attempts to bring back a writer whose last commit has an unknown outcome. */
const recoveryPauseMs = 500;

/** How long a writer that is closed goes on with that: a disk that is broken for good must not keep the program from ending. */
const closingPatienceMs = 5_000;

/**
 * Most jobs in one commit, and enough to end a pause. With more, the first would wait for the last without any job becoming
 * cheaper. Fewer cost more: with 64, a server on two cores handled a tenth fewer events.
 */
const batchLimit = 512;

/**
 * How long a commit keeps taking settlements, in ms, and how many at most. A number alone would not do: the outcome of a failed
 * attempt takes ten times as long to write as a delivery, and 128 of them were seen to take 65 ms.
 */
const settlingMs = 5;
const settlementLimit = 128;

/**
 * After a commit the writer pauses for twice the time that it took, so that syncing takes at most a third of the event loop,
 * but no longer than `longestPauseMs`: the wait is part of every ingestion's latency.
 */
const pausePerWork = 2;
const longestPauseMs = 2;

/** How long two events take to come in at a hundred a second: with fewer, commits are not what costs. */
const patienceMs = 20;

interface Waiting {
  job: Job<unknown>;
  resolve(value: unknown): void;
  reject(error: unknown): void;
  since: number;
}

/** What became of a commit whose outcome was unknown. `told`: nothing of it was written, and the waiters have been told. */
type Fate = "unknown" | "on disk" | "lost" | "told";

export interface WriterOptions extends TransactionOptions {
  clock: Clock;
  /** Called for each change, in order. Must not throw. */
  onChange(change: Change): void;
  /** For metrics: called after every commit. */
  onCommit?(commit: { jobs: number; durationMs: number }): void;
  /** Told how long this thread stood still for the disk in a commit, in ms. */
  onStandstill?(ms: number): void;
  /** Called after every batch, when nothing is being written: the moment for a quick look at the log. */
  betweenBatches?(): void;
  /** A job ran into a damaged page; its submitter is told as well. */
  onDamage?(error: Error): void;
  /** False: no pause between commits, so that no real time passes in a simulation. @default true */
  pauses?: boolean;
}

export function createWriter({
  clock,
  onChange,
  onCommit,
  onStandstill,
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
  /** In terms of `performance.now()`. A lone write after a pause is committed immediately; under load, several share a commit. */
  let pauseUntil = 0;
  let pausing: ReturnType<typeof setTimeout> | null = null;
  /** Only patient jobs wait for the end of this pause. */
  let isPatient = false;
  let closedAt: number | null = null;
  /** Set while the outcome of a commit is unknown: nothing may be written, and new work is turned away. */
  let recovering: { since: number } | null = null;
  let whenIdle: (() => void) | null = null;

  /** Lets settlements be written until their time is up, and the first of them in any case. */
  function haveTime(firstSettlement: number): (next: number) => boolean {
    let endsAt = performance.now() + settlingMs;
    return (next) => {
      if (next === firstSettlement) endsAt = performance.now() + settlingMs;
      return next <= firstSettlement || performance.now() <= endsAt;
    };
  }

  function write(jobs: readonly Waiting[], firstSettlement = jobs.length): void {
    const startedAt = clock.monotonicMs();
    const cpuBefore = threadCpuMs();
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
    const cpuMs = (threadCpuMs() ?? 0) - (cpuBefore ?? 0);
    if (pauses) pauseUntil = performance.now() + Math.min(durationMs * pausePerWork, longestPauseMs);
    putBack(jobs, written);
    answer(jobs, written);
    onCommit?.({ jobs: written.outcomes.length, durationMs });
    onStandstill?.(Math.max(0, durationMs - cpuMs));
  }

  /** Settlements for which there was no time come first in the next commit. */
  function putBack(jobs: readonly Waiting[], { outcomes }: Written): void {
    if (outcomes.length < jobs.length) settlements.unshift(...jobs.slice(outcomes.length));
  }

  /** Jobs of a failed batch are written one at a time; if one stops the writer, the rest are turned away like new work. */
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
   * Until another commit has gone through, a crash could still bring the failed one back to life. So the writer stops, reads
   * back what the database holds, overwrites the doubtful frames, and only then tells the waiters what happened.
   *
   * If only the log's index had no room for such an overwriting commit, that is in the log all the same, and nothing is left of
   * the doubtful one. So its waiters are told; until there is room, which may take days, the writer stays stopped.
   *
   * If a closed writer gives up, its waiters are told nothing, because nothing is known: their connections end with the program.
   */
  async function recover(jobs: readonly Waiting[], { written, cause }: UnknownCommit): Promise<void> {
    recovering = { since: jobs[0]?.since ?? clock.monotonicMs() };
    let fate = "unknown" as Fate;
    const turnAway = () => {
      fate = "told";
      transactions.takeBack(written);
      for (const job of jobs.slice(0, written.outcomes.length)) job.reject(translate(cause));
    };
    let isBack = false;
    while (!isBack && !mayGiveUp(fate)) {
      try {
        if (fate === "unknown") fate = transactions.isOnDisk(written) ? "on disk" : "lost";
        transactions.run([]);
        isBack = true;
      } catch (error) {
        if (fate === "lost" && error instanceof UnknownCommit && error.isInLogOnly) turnAway();
        await sleep(clock, recoveryPauseMs);
      }
    }
    recovering = null;
    if (isBack && fate === "on disk") answer(jobs, written);
    else if (isBack && fate === "lost") turnAway();
    schedule();
  }

  const mayGiveUp = (fate: Fate): boolean =>
    closedAt !== null && (fate === "told" || clock.monotonicMs() - closedAt >= closingPatienceMs);

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
    // Real time, not the injected clock: the pause depends on the machine, and a clock that a test stops would stop the writer.
    if (restMs <= 0) flushSoon();
    else pausing = setTimeout(flushSoon, restMs);
  }

  /** Runs after the requests read in this turn of the loop: timers run before those, and so would a heavy job. */
  function flushSoon(): void {
    pausing = null;
    setImmediate(flush);
  }

  return {
    submit<T>(job: Job<T>, pace: Pace = "soon") {
      if (closedAt !== null) return Promise.reject(shuttingDown());
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
      closedAt ??= clock.monotonicMs();
      if (isWaiting() || scheduled || recovering) await new Promise<void>((resolve) => (whenIdle = resolve));
    },
  };
}

const storageRetrySeconds = 5;

const laneStopped = () =>
  unavailable("The storage cannot be written at the moment; retry later.", "storage_unavailable", storageRetrySeconds);

/** Translates what SQLite says about its disk into the errors of the seam; anything else is a defect and passes through. */
function translate(error: unknown): unknown {
  const code = codeOf(error);
  if (isDiskFull(error)) {
    return unavailable("The server's disk is full; retry later.", "storage_full", storageRetrySeconds);
  }
  if (code.startsWith("SQLITE_IOERR") || code.startsWith("SQLITE_BUSY") || code.startsWith("SQLITE_READONLY")) {
    return laneStopped();
  }
  return isDamage(error) ? storageDamaged() : error;
}
