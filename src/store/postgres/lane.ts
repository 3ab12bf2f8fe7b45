import { DomainError, shuttingDown } from "../../domain/errors.ts";
import { type Clock, sleep } from "../../lib/clock.ts";
import { isOfRows, OutcomeUnknown, storageUnavailable } from "./faults.ts";
import type { LaneMark } from "./nodes.ts";
import type { Pool } from "./pool.ts";

/**
 * A lane: one connection that writes one statement at a time. What arrives meanwhile forms the next batch, so all who wait
 * share one commit.
 *
 *   submit ─▶ queue ─▶ one statement, which takes the next number of the lane's row ─▶ every waiter gets its answer
 *                        │ it fails                  each job in a statement of its own: a bad one fails alone
 *                        │ the number was not available   fenced, and nothing was written: the node was declared dead, or
 *                        │                                the database has gone back to an earlier state
 *                        └ its connection is lost    the row says whether it happened, and ends its chance
 */
export interface Lane<Job, Result> {
  /** @param heavy whether it writes for milliseconds: then it goes alone, taking turns with all the others */
  submit(job: Job, heavy?: boolean): Promise<Result>;
  /** Resolves when the batch being written now has been answered, if there is one. */
  underWay(): Promise<void>;
  /** Age of the oldest waiting job, in ms. */
  lagMs(): number;
  /** Writes what waits; later jobs are refused. */
  close(): Promise<void>;
}

/**
 * How each batch begins: `with m as (…)`, with the first three parameters of the statement. Everything else it does takes its
 * rows from `m`, which is empty when this lane may not write. No other statement may write for the lane.
 */
export const markText =
  "update lane set batch = $3::bigint where slot = $1::smallint and incarnation = $2::int and batch = $3::bigint - 1 returning 1";

export type MarkValues = readonly [slot: number, incarnation: number, batch: number];

/** The outcome of a job: a rule may refuse it, at no cost to its neighbours. */
export type JobOutcome<Result> = { readonly result: Result } | { readonly error: DomainError };

export interface LaneOptions<Job, Result> {
  /** Has one connection, for this lane alone. */
  pool: Pool;
  mark: LaneMark;
  incarnation: number;
  clock: Clock;
  /** Writes a batch, in one statement that begins with `markText`. @returns null when that found no row */
  write(jobs: readonly Job[], mark: MarkValues): Promise<readonly JobOutcome<Result>[] | null>;
  /**
   * What a batch would have answered that did happen but whose answer was lost.
   * @param isOurs false: the node has been declared dead since
   */
  recall(jobs: readonly Job[], batch: number, isOurs: boolean): Promise<readonly JobOutcome<Result>[]>;
  /** Called when the lane can write no more: the node has to find out why, and to join anew. */
  onFenced(): void;
  /** Since when the program has been ending, by the clock; null while it is not. */
  endingSince(): number | null;
  /** Called for each batch that was written and answered in one go. */
  onCommit?(commit: { jobs: number; durationMs: number }): void;
  /** False: no rest between batches. @default true */
  rests?: boolean;
}

/** The most jobs in one statement. */
const batchLimit = 256;
/** As in the SQLite writer: a rest makes batches larger, and is part of everybody's wait. */
const restPerWork = 2;
const longestRestMs = 4;
/** A rest ends as soon as this many jobs wait. */
const enoughJobs = 64;
/** Pause between two attempts to find out what became of a batch. */
const recoveryPauseMs = 500;
/** How long that goes on once the program is ending: a service manager kills it after 15 s, and attempts in flight take 8. */
const lastRecoveryMs = 5_000;

interface Waiting<Job, Result> {
  job: Job;
  resolve(result: Result): void;
  reject(error: unknown): void;
  since: number;
}

export function createLane<Job, Result>(options: LaneOptions<Job, Result>): Lane<Job, Result> {
  const { pool, mark, incarnation, clock, write, recall, onFenced, endingSince, onCommit, rests = true } = options;
  type Waiter = Waiting<Job, Result>;
  let { batch } = mark;
  let queue: Waiter[] = [];
  const heavyQueue: Waiter[] = [];
  let lastWasHeavy = false;
  let running: Promise<void> | null = null;
  let writing: Promise<void> = Promise.resolve();
  let state: "open" | "closed" | "fenced" = "open";
  /** Since when the outcome of a batch has been unknown: meanwhile nothing else may be written. */
  let recoveringSince: number | null = null;
  let endRest = () => {};

  const isWaiting = () => queue.length > 0 || heavyQueue.length > 0;

  function takeJobs(): Waiter[] {
    const heavy = queue.length === 0 || !lastWasHeavy ? heavyQueue.shift() : undefined;
    lastWasHeavy = heavy !== undefined;
    if (heavy) return [heavy];
    const jobs = queue.slice(0, batchLimit);
    queue = queue.slice(batchLimit);
    return jobs;
  }

  /** Runs until nothing waits. */
  async function work(): Promise<void> {
    // Whatever is submitted in this turn of the event loop goes together.
    await new Promise<void>((resolve) => setImmediate(resolve));
    while (isWaiting()) {
      const startedAt = clock.monotonicMs();
      writing = writeBatch(takeJobs());
      await writing;
      if (rests) await rest((clock.monotonicMs() - startedAt) * restPerWork);
    }
    running = null;
  }

  async function rest(ms: number): Promise<void> {
    if (queue.length >= enoughJobs) return;
    await new Promise<void>((resolve) => {
      const cancel = clock.after(Math.min(ms, longestRestMs), resolve);
      endRest = () => {
        cancel();
        resolve();
      };
    });
    endRest = () => {};
  }

  async function writeBatch(jobs: readonly Waiter[]): Promise<void> {
    if (state === "fenced") {
      rejectAll(jobs, storageUnavailable("passing"));
      return;
    }
    const startedAt = clock.monotonicMs();
    try {
      const outcomes = await write(bare(jobs), [mark.slot, incarnation, batch + 1]);
      if (outcomes === null) {
        rejectAll(jobs, storageUnavailable("passing"));
        fence();
        return;
      }
      batch += 1;
      answer(jobs, outcomes);
      onCommit?.({ jobs: jobs.length, durationMs: clock.monotonicMs() - startedAt });
    } catch (error) {
      if (error instanceof OutcomeUnknown) await recover(jobs, error);
      else if (jobs.length === 1 || (error instanceof DomainError && !isOfRows(error))) rejectAll(jobs, error);
      else for (const job of jobs) await writeBatch([job]);
    }
  }

  const bare = (jobs: readonly Waiter[]) => jobs.map(({ job }) => job);

  function rejectAll(jobs: readonly Waiter[], error: unknown): void {
    for (const { reject } of jobs) reject(error);
  }

  function answer(jobs: readonly Waiter[], outcomes: readonly JobOutcome<Result>[]): void {
    jobs.forEach(({ resolve, reject }, i) => {
      const outcome = outcomes[i];
      if (outcome && "result" in outcome) resolve(outcome.result);
      else reject(outcome?.error ?? new Error("A batch answered fewer jobs than it was given"));
    });
  }

  /** From now on this lane writes nothing. */
  function fence(): void {
    if (state !== "fenced") onFenced();
    state = "fenced";
  }

  /**
   * The batch may have happened, may still be running, or may not have reached the server yet. Its row is locked while it
   * runs, so this waits for it; the number it wants is skipped, so that it cannot happen any more. That is itself a statement
   * whose answer may be lost, and it may be repeated: each time it finds what it left.
   */
  async function recover(jobs: readonly Waiter[], failure: OutcomeUnknown): Promise<void> {
    const doubtful = batch + 1;
    recoveringSince = clock.monotonicMs();
    try {
      const found = await persist(() => settle(doubtful));
      if (found === "unknown") {
        rejectAll(jobs, failure);
        fence();
        return;
      }
      batch = found.batch;
      if (!found.isOurs || found.hasGoneBack) fence();
      if (found.batch < doubtful || found.batch === doubtful + 1) rejectAll(jobs, storageUnavailable("passing"));
      else answer(jobs, await persist(() => recall(bare(jobs), doubtful, found.isOurs)));
    } catch (error) {
      // The program is ending, or the statement is wrong: nobody will ever know.
      rejectAll(jobs, error instanceof DomainError ? failure : error);
    } finally {
      recoveringSince = null;
    }
  }

  /**
   * @returns where the lane stands, and whether the database no longer has batches that it had confirmed; or that another
   * node has taken the lane over, so that nobody can tell any more
   */
  async function settle(
    doubtful: number,
  ): Promise<{ batch: number; isOurs: boolean; hasGoneBack: boolean } | "unknown"> {
    const [ours] = await pool.write<{ before: number; batch: number }>(
      `update lane set batch = case when before < $3::bigint then $3::bigint + 1 else before end
        from (select slot as of_slot, batch as before from lane
              where slot = $1::smallint and incarnation = $2::int for update) held
        where slot = of_slot returning before::float8 as before, batch::float8 as batch`,
      [mark.slot, incarnation, doubtful],
    );
    if (ours) return { batch: ours.batch, isOurs: true, hasGoneBack: ours.before < doubtful - 1 };
    const [row] = await pool.read<{ batch: number; incarnation: number | null }>(
      "select batch::float8 as batch, incarnation from lane where slot = $1::smallint",
      [mark.slot],
    );
    return row?.incarnation === null ? { batch: row.batch, isOurs: false, hasGoneBack: false } : "unknown";
  }

  /** Retries until the database answers. @throws anything but a failure of the connection; that too once time has run out */
  async function persist<T>(run: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await run();
      } catch (error) {
        const isPassing =
          error instanceof OutcomeUnknown || (error instanceof DomainError && error.code !== "shutting_down");
        if (!isPassing || hasRunOut()) throw error;
        await sleep(clock, recoveryPauseMs);
      }
    }
  }

  function hasRunOut(): boolean {
    const since = endingSince();
    return since !== null && clock.monotonicMs() - since >= lastRecoveryMs;
  }

  return {
    submit(job, heavy = false) {
      if (state === "closed") return Promise.reject(shuttingDown());
      if (state === "fenced" || recoveringSince !== null) return Promise.reject(storageUnavailable("passing"));
      return new Promise<Result>((resolve, reject) => {
        (heavy ? heavyQueue : queue).push({ job, resolve, reject, since: clock.monotonicMs() });
        if (queue.length >= enoughJobs) endRest();
        running ??= work();
      });
    },
    underWay: () => writing,
    lagMs() {
      const waiting = [recoveringSince, queue[0]?.since, heavyQueue[0]?.since].filter(
        (since) => typeof since === "number",
      );
      return waiting.length === 0 ? 0 : clock.monotonicMs() - Math.min(...waiting);
    },
    async close() {
      if (state === "open") state = "closed";
      await running;
    },
  };
}
