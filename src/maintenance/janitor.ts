import { isUnavailable } from "../domain/errors.ts";
import type { WebhookRef } from "../domain/webhook.ts";
import type { Clock } from "../lib/clock.ts";
import { messageOf } from "../lib/error-message.ts";
import type { Log } from "../lib/log.ts";
import { createLoop, type Loop } from "../lib/loop.ts";
import type { Store } from "../store/store.ts";
import { unlessDamaged } from "../store/unless-damaged.ts";

/** Rows per step: a few milliseconds, so that live traffic does not feel it. */
const chunk = 200;

/** Space given back per step: milliseconds, too. */
const reclaimedBytes = 800 * 1024;

/**
 * Clean-up takes at most a third of the time, as long as a step takes no more than 25 ms. Without pauses, deleting an account with 5.2 million of 10 million events
 * raised the p99 of a concurrent 1,000 ingested events a second from 15 to 34 ms; with them, from 13 to 17.
 */
const pausePerWork = 2;

const pruneEveryMs = 60_000;

/** Each look walks through the events of every account that has removed webhooks. */
const judgeWebhooksEveryMs = 10 * 60_000;

/** An hour of each account is merged by then. */
const thinStatsEveryMs = 60 * 60_000;

const failurePauseMs = 5000;

export interface JanitorDeps {
  store: Pick<
    Store,
    | "isShared"
    | "failUndeliverable"
    | "endOrder"
    | "eraseDeleted"
    | "prune"
    | "forgetWebhooks"
    | "thinStats"
    | "reclaim"
  >;
  deliveries: {
    /** Called when these webhooks have something due. */
    wake(webhooks: readonly WebhookRef[]): void;
  };
  clock: Clock;
  log: Log;
  /** Whether the job is assigned to this node. */
  mayRun(): boolean;
  /** Wakes the node that has the job. */
  passOn(): void;
  /** Called when records were failed: the replay they belonged to may have ended with them. */
  onFailed(): void;
}

/**
 * Cleans up in the background, in small steps, across restarts: the tables say what is left to do. Records that wait for a
 * removed or disabled webhook come first, then those held back for a webhook that is no longer ordered, then the rows of
 * deleted accounts, then anything that has outlived its use, then removed webhooks that nothing refers to, then old
 * statistics, then the space that all this has freed.
 *
 * `wake` it when a webhook was removed or is no longer ordered, or when an account was deleted.
 */
export interface Janitor extends Loop {
  /** Called when others have freed space: it is given back to the disk. */
  giveBack(): void;
}

export function createJanitor({ store, deliveries, clock, log, mayRun, passOn, onFailed }: JanitorDeps): Janitor {
  let hasFreedSpace = true;

  /** Work that comes up again after a while. @returns a function that takes one step, and answers true while there is more */
  function every(ms: number, step: () => Promise<boolean>): () => Promise<boolean> {
    let isDue = true;
    return async () => {
      if (!isDue) return false;
      if (await unlessDamaged(step(), false)) return true;
      isDue = false;
      // The timer decides, not the wall clock: measured by that, the timer may fire early, by a hair or after the clock was
      // set back.
      clock.after(ms, () => {
        isDue = true;
        loop.wake();
      });
      return false;
    };
  }

  const prune = every(pruneEveryMs, () => store.prune(clock.now(), chunk));
  const forgetWebhooks = every(judgeWebhooksEveryMs, () => store.forgetWebhooks(clock.now(), chunk));
  const thinStats = every(thinStatsEveryMs, () => store.thinStats(clock.now()));

  const loop = createLoop({
    clock,
    mayStep: mayRun,
    passOn,
    failurePauseMs,
    pausePerWork,
    async step() {
      const isMoreToFail = await unlessDamaged(store.failUndeliverable(chunk), false);
      onFailed();
      if (isMoreToFail) return "more";
      const released = await unlessDamaged(store.endOrder(chunk), null);
      if (released !== null) {
        deliveries.wake(released);
        return "more";
      }
      if (await unlessDamaged(store.eraseDeleted(chunk), false)) {
        hasFreedSpace = true;
        return "more";
      }
      if (await prune()) return "more";
      if ((await forgetWebhooks()) || (await thinStats())) {
        hasFreedSpace = true;
        return "more";
      }
      // Others may free space at any time.
      if (hasFreedSpace || store.isShared) {
        hasFreedSpace = await unlessDamaged(store.reclaim(reclaimedBytes), false);
      }
      return hasFreedSpace ? "more" : "idle";
    },
    onFailure(error) {
      // A storage that is away says so itself, once.
      log.write(isUnavailable(error) ? "debug" : "warn", "maintenance.failed", { error: messageOf(error) });
    },
  });
  return {
    ...loop,
    giveBack() {
      hasFreedSpace = true;
      loop.wake();
    },
  };
}
