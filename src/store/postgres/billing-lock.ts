import { type Clock, sleep } from "../../lib/clock.ts";
import { createKeyedLock, type KeyedLock } from "../../lib/keyed-lock.ts";
import { OutcomeUnknown, storageUnavailable } from "./faults.ts";
import type { Node } from "./nodes.ts";
import type { Pool } from "./pool.ts";

/**
 * Runs one action at a time for a billing account, whichever node it is on: a lease in the account's row, by the database's
 * clock.
 *
 *   free ─ take ─▶ held ─ renew ─▶ held … ─ release ─▶ free
 *                   │ its node has died
 *                   ▼
 *                 free, once the lease has run out
 *
 * Actions on the same node queue in its memory and come here one by one. Those on other nodes ask repeatedly, with longer and
 * longer pauses, so there is no order among nodes. A lease may run out while its node stands still: then two are at work,
 * which the verbs of the books tolerate.
 */
export interface BillingLockOptions {
  pool: Pool;
  clock: Clock;
  /** @throws DomainError `unavailable` while this process is not a node */
  node(): Pick<Node, "incarnation">;
  onFailure(error: unknown): void;
}

const leaseMs = 20_000;
const renewalMs = 5_000;
/** Pauses between checks whether the account is free. */
const firstPauseMs = 10;
const longestPauseMs = 500;

const leaseText = `clock_timestamp() + interval '${leaseMs} milliseconds'`;

export function createBillingLock({ pool, clock, node, onFailure }: BillingLockOptions): KeyedLock<number> {
  const withinNode = createKeyedLock<number>();

  const update = (what: string, values: readonly [accountKey: number, incarnation: number]) =>
    pool.write(`update billing_account set ${what} returning 1`, values);

  /** @returns whether it is held now: what this node could not release earlier is still its own */
  async function take(accountKey: number, incarnation: number): Promise<boolean> {
    const taken = await update(
      `leased_by = $2::int, leased_until = ${leaseText} where key = $1::bigint
        and (leased_by = $2::int or leased_until is null or leased_until < clock_timestamp())`,
      [accountKey, incarnation],
    );
    if (taken.length > 0) return true;
    const found = await pool.read("select 1 from billing_account where key = $1::bigint", [accountKey]);
    if (found.length === 0) throw new Error(`Billing account ${accountKey} does not exist`);
    return false;
  }

  async function waitFor(accountKey: number, incarnation: number): Promise<void> {
    try {
      let pauseMs = firstPauseMs;
      while (!(await take(accountKey, incarnation))) {
        await sleep(clock, pauseMs);
        pauseMs = Math.min(pauseMs * 2, longestPauseMs);
      }
    } catch (error) {
      // Whether it was taken or not, this node can take it again.
      throw error instanceof OutcomeUnknown ? storageUnavailable("passing") : error;
    }
  }

  /** @returns a function that ends it */
  function keep(accountKey: number, incarnation: number): () => void {
    let isOver = false;
    let cancel = () => {};
    function renewLater(): void {
      if (isOver) return;
      cancel = clock.after(renewalMs, () => {
        const renewed = `leased_until = ${leaseText} where key = $1::bigint and leased_by = $2::int`;
        void update(renewed, [accountKey, incarnation]).catch(onFailure).then(renewLater);
      });
    }
    renewLater();
    return () => {
      isOver = true;
      cancel();
    };
  }

  async function release(accountKey: number, incarnation: number): Promise<void> {
    const released = "leased_by = null, leased_until = null where key = $1::bigint and leased_by = $2::int";
    await update(released, [accountKey, incarnation]).catch(onFailure);
  }

  return {
    run: (accountKey, action) =>
      withinNode.run(accountKey, async () => {
        const { incarnation } = node();
        await waitFor(accountKey, incarnation);
        const stop = keep(accountKey, incarnation);
        try {
          return await action();
        } finally {
          stop();
          await release(accountKey, incarnation);
        }
      }),
  };
}
