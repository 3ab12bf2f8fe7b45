import { shuttingDown } from "../../domain/errors.ts";
import type { Moment } from "../../domain/moment.ts";
import type { Clock } from "../../lib/clock.ts";
import { createSemaphore } from "../../lib/limiter.ts";
import type { Changes, SharedChange } from "./changes.ts";
import { sqlStateOf } from "./faults.ts";
import { arrayText } from "./parameters.ts";
import type { Pool, Transaction } from "./pool.ts";

/**
 * What is written now and then, each verb in its own transaction: it locks the tenant or the account concerned, loads, checks
 * a rule, writes. A rule that refuses throws, which rolls back. What every event touches goes through the lanes.
 */
export interface Writes {
  /**
   * The job may run more than once. Resolves after every living node has heeded what changed.
   * @throws what the job throws; otherwise as `Pool.transact`
   */
  submit<T>(job: (tx: WriteTransaction) => Promise<T>): Promise<T>;
  /**
   * How long the oldest submitted job has been waiting for its commit, in ms. What comes after that is no fault of this node
   * or of the database: one that does not answer holds up the verbs of all others until its lease has run out.
   */
  lagMs(): number;
  /** Lets submitted jobs finish, until they are answered; later ones are refused. */
  close(): Promise<void>;
}

/** The moment is when the transaction began. */
export interface WriteTransaction extends Transaction, Moment {
  /** Announces changes to every node once the transaction is committed, before the verb is answered. */
  changed(...changes: readonly SharedChange[]): void;
}

/**
 * Makes what nodes keep of these tenants outdated, so that no lane's statement accepts it from now on. For anything announced
 * as a change this is done already.
 */
export async function overtake(tx: Transaction, tenantKeys: ReadonlySet<number>): Promise<void> {
  if (tenantKeys.size === 0) return;
  await tx.run("update tenant set version = version + 1 where key = any($1::bigint[])", [arrayText([...tenantKeys])]);
}

/** Somebody else has inserted what a rule had looked for in vain: it looks again. */
export const uniqueViolation = "23505";
const mostTries = 4;

export interface WritesOptions {
  pool: Pool;
  clock: Pick<Clock, "monotonicMs">;
  /** Concurrent transactions. Any more wait here, where no connection's deadline is running. */
  atOnce: number;
  moment(): Moment;
  changes: Changes;
}

export function createWrites({ pool, clock, atOnce, moment, changes }: WritesOptions): Writes {
  const turns = createSemaphore(atOnce);
  /** Transactions that have not ended, with when each was submitted. */
  const uncommitted = new Map<Promise<unknown>, number>();
  /** Jobs that have not been answered. */
  const unanswered = new Set<Promise<unknown>>();
  let isClosed = false;

  async function transact<T>(job: (tx: WriteTransaction) => Promise<T>): Promise<{ result: T; last: number | null }> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await pool.transact(async (tx) => {
          const made: SharedChange[] = [];
          const result = await job({ ...tx, ...moment(), changed: (...more) => void made.push(...more) });
          if (made.length === 0) return { result, last: null };
          await overtake(tx, new Set(made.flatMap((change) => ("tenantKey" in change ? [change.tenantKey] : []))));
          return { result, last: await changes.write(tx, made) };
        });
      } catch (error) {
        if (sqlStateOf(error) !== uniqueViolation || tries === mostTries) throw error;
      }
    }
  }

  async function write<T>(job: (tx: WriteTransaction) => Promise<T>): Promise<T> {
    const transaction = turns.run(() => transact(job));
    uncommitted.set(transaction, clock.monotonicMs());
    const { result, last } = await transaction.finally(() => uncommitted.delete(transaction));
    if (last !== null) await changes.passed(last);
    return result;
  }

  return {
    submit(job) {
      if (isClosed) return Promise.reject(shuttingDown());
      const done = write(job).finally(() => unanswered.delete(done));
      unanswered.add(done);
      return done;
    },
    lagMs() {
      const [oldest] = uncommitted.values();
      return oldest === undefined ? 0 : clock.monotonicMs() - oldest;
    },
    async close() {
      isClosed = true;
      await Promise.allSettled(unanswered);
    },
  };
}
