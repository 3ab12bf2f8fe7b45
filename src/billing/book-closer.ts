import type { Clock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import { createLoop, type Loop } from "../lib/loop.ts";
import type { Jobs } from "../store/jobs.ts";
import type { Store } from "../store/store.ts";
import { createLeftOut } from "./left-out.ts";
import { tellFailure } from "./tell-failure.ts";

export interface BookCloserDeps {
  jobs: Pick<Jobs, "isHeld" | "wake">;
  store: Pick<Store, "accountsToClose" | "books" | "cardForgotten" | "closeBooks">;
  clock: Clock;
  log: Log;
}

const accountsInOneGo = 100;

/**
 * Stands in for the biller where nobody pays: what a deleted account leaves is erased all the same, without a last charge. Where
 * another server of the database bills, that one is told instead.
 *
 * No processor is asked, so our own copy of a card is all that goes, and a charge whose outcome is unknown stays as it is, with
 * its reference: once there is a biller again, it is looked up, and given back if it was paid.
 */
export function createBookCloser({ store, jobs, clock, log }: BookCloserDeps): Loop {
  const leftOut = createLeftOut(clock);
  let cancelTimer = () => {};

  async function close(accountKey: number): Promise<void> {
    const { card, cardsToForget } = await store.books(accountKey);
    for (const { key } of [...(card ? [card] : []), ...cardsToForget]) await store.cardForgotten(key, clock.now());
    await store.closeBooks(accountKey, clock.now());
  }

  const loop = createLoop({
    clock,
    // What one node has erased, another one only finds erased.
    mayStep: () => true,
    passOn() {},
    async step() {
      if (await jobs.isHeld("biller")) {
        jobs.wake("biller");
        return "idle";
      }
      const limit = accountsInOneGo + leftOut.size;
      const accountKeys = await store.accountsToClose(limit);
      await leftOut.each(
        accountKeys.filter((key) => !leftOut.has(key)),
        close,
      );
      if (accountKeys.length === limit) return "more";
      cancelTimer();
      if (leftOut.size > 0) cancelTimer = clock.after(leftOut.nextMs, () => loop.wake());
      return "idle";
    },
    onFailure: (error) => tellFailure(log, error),
  });
  return loop;
}
