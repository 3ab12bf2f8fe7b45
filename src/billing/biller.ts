import type { KeyedLock } from "../lib/keyed-lock.ts";
import { createSemaphore } from "../lib/limiter.ts";
import { createLoop, type Loop } from "../lib/loop.ts";
import { processorId } from "./charging.ts";
import { createLeftOut } from "./left-out.ts";
import { type Call, callOf, nextTask } from "./next-task.ts";
import { createPerform, type PerformDeps } from "./perform.ts";
import { tellFailure } from "./tell-failure.ts";
import { createTurns, type Turns } from "./turns.ts";

export interface BillerDeps extends Omit<PerformDeps, "pause"> {
  /** Serializes work on each account; requests take it too. */
  lock: KeyedLock<number>;
  /** It runs here from now on, so this node may be given the job. */
  offer(): void;
  /** It no longer runs here: the job is another node's. */
  withdraw(): void;
  /** Whether this node holds the job. */
  mayRun(): boolean;
  /** Wakes the node that holds the job. */
  passOn(): void;
}

export interface Biller extends Loop {
  /** Something changed for an account: process it now, however many others are due. */
  hurry(accountKey: number): void;
}

/** Accounts processed at a time. */
const concurrency = 4;
const accountsInOneGo = 100;

/** More steps than an account ever needs in one run, so that a bug cannot loop forever. */
const mostSteps = 1000;

/** Upper bound on the pause, in case a timer is lost because the clock was set back. */
const longestPauseMs = 60_000;

/**
 * Does the pending work of each account: look-ups, month ends, retried charges, refunds, closing charges. The books say
 * what comes next, so it resumes where a crash stopped it and catches up after downtime.
 */
export function createBiller(deps: BillerDeps): Biller {
  const { store, clock, log, processor, lock, offer, withdraw, mayRun, passOn } = deps;
  const id = processorId(processor);
  const leftOut = createLeftOut(clock);
  let cancelTimer = () => {};

  /** Does everything due for one account, once it is not busy, and unless it has to wait for its turn. `turn`: the call it may make. */
  const work = (accountKey: number, turn: Call | null): Promise<void> =>
    lock.run(accountKey, async () => {
      let given = turn;
      for (let step = 0; step < mostSteps; step += 1) {
        // Turns and news also arrive outside the loop. What is left stays due in the books, where the job's next holder
        // finds it.
        if (!mayRun()) return;
        const books = await store.books(accountKey);
        const task = nextTask(books, id, clock.now());
        if (task.kind === "wait") {
          await store.postpone(accountKey, books.version, task.until);
          return;
        }
        const call = callOf(task);
        if (call !== null && call !== given && !turns.isOpen(call)) {
          turns.wait(accountKey, books.version, call);
          return;
        }
        if (call === given) given = null;
        const beginAgainAt = await perform(books, task);
        if (beginAgainAt !== undefined) {
          await store.postpone(accountKey, books.version, beginAgainAt);
          return;
        }
      }
      throw new Error(`Billing account ${accountKey} does not settle`);
    });

  const turns: Turns = createTurns({
    clock,
    chargesPerSecond: processor.chargesPerSecond,
    onTurn: (accountKey, call) => leftOut.run(accountKey, () => work(accountKey, call)).catch(onFailure),
    onEnded(accountKey) {
      if (news.delete(accountKey)) hurry(accountKey);
      // The account's next task may be due before the loop would look again.
      loop.wake();
    },
  });

  const perform = createPerform({ ...deps, pause: turns.pause });

  async function step(): Promise<"more" | "idle"> {
    const now = clock.now();
    const { accounts, nextAt } = await store.dueAccounts(now, accountsInOneGo + turns.size + leftOut.size);
    const due = accounts.filter(({ key, version }) => !turns.isWaiting(key, version) && !leftOut.has(key));
    if (due.length === 0) {
      cancelTimer();
      const pauseMs = Math.min((nextAt ?? Number.POSITIVE_INFINITY) - now, leftOut.nextMs, longestPauseMs);
      cancelTimer = clock.after(pauseMs, () => loop.wake());
      return "idle";
    }
    const queue = due.map(({ key }) => key).values();
    const results = await Promise.allSettled(
      Array.from({ length: concurrency }, () => leftOut.each(queue, (key) => work(key, null))),
    );
    const failed = results.find((result) => result.status === "rejected");
    if (failed) throw failed.reason;
    return "more";
  }

  function onFailure(error: unknown): void {
    tellFailure(log, error);
  }

  const loop = createLoop({ clock, mayStep: mayRun, passOn, step, onFailure });
  const hurried = createSemaphore(concurrency);
  const hurrying = new Set<Promise<void>>();
  /** Accounts for which news arrived during their turn. */
  const news = new Set<number>();
  let isRunning = false;

  function hurry(accountKey: number): void {
    if (!isRunning) return;
    // Waiting for the turn here would hold up the others.
    if (turns.hasTurn(accountKey)) {
      news.add(accountKey);
      return;
    }
    const done = hurried
      .run(() => (isRunning ? leftOut.run(accountKey, () => work(accountKey, null)) : Promise.resolve()))
      .catch(onFailure)
      .finally(() => {
        hurrying.delete(done);
        loop.wake();
      });
    hurrying.add(done);
  }

  return {
    ...loop,
    hurry,
    start() {
      isRunning = true;
      loop.start();
      offer();
    },
    async stop() {
      isRunning = false;
      await Promise.all([loop.stop(), turns.stop(), ...hurrying]);
      withdraw();
    },
  };
}
