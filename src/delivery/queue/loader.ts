import type { DueDelivery } from "../../domain/delivery.ts";
import type { Clock } from "../../lib/clock.ts";
import { messageOf } from "../../lib/error-message.ts";
import type { Log } from "../../lib/log.ts";
import type { Store } from "../../store/store.ts";
import { failureLevel } from "./failure-level.ts";
import type { Hindsight } from "./hindsight.ts";
import { already, type Returns } from "./returns.ts";
import type { WebhookQueue } from "./webhook-queue.ts";
import type { Window } from "./window.ts";

/** Claims the next piece of a webhook's backlog, no larger than memory and its tokens allow. */
export interface Loader {
  load(queue: WebhookQueue): void;
  readonly areUnderWay: boolean;
}

export interface LoaderDeps {
  store: Pick<Store, "claim">;
  clock: Clock;
  log: Log;
  window: Window;
  hindsight: Pick<Hindsight, "isCancelled">;
  returns: Pick<Returns, "giveBack">;
  /** How many attempts to it may start now. */
  tokens(queue: WebhookQueue): number;
  /** Nothing goes out to it from here, for the time being or ever. */
  isClosed(queue: WebhookQueue): boolean;
  isStopping(): boolean;
  onLoaded(queue: WebhookQueue, delivery: DueDelivery): void;
  /** The table has more for it, or will have at that time. */
  onMore(queue: WebhookQueue, at: number): void;
  onEnd(queue: WebhookQueue): void;
}

/** Deliveries claimed in one go for a webhook that answers. */
const loadBatch = 64;
/** The same for any other webhook, or for one that answers while memory is short: the backlogs of a crowd would fill it. */
const smallLoadBatch = 2;
/** While memory is short, any other webhook gets what its next attempt takes; a crowd that hangs would keep the rest there. */
const leastLoadBatch = 1;
/** Claims under way whose size the window does not know yet. */
const maxLargeLoads = 4;
/** Pause after a claim failed. */
const retryMs = 1000;

export function createLoader(deps: LoaderDeps): Loader {
  const { store, clock, log, window, hindsight, returns, tokens, isClosed, isStopping, onLoaded, onMore, onEnd } = deps;
  let underWay = 0;

  function batchFor(queue: WebhookQueue): number {
    const isProven = queue.standingAt(clock.monotonicMs()) === "proven";
    if (window.isHalfFull) return isProven && window.hasRoom ? smallLoadBatch : leastLoadBatch;
    return isProven && underWay <= maxLargeLoads ? loadBatch : smallLoadBatch;
  }

  function keep(queue: WebhookQueue, due: readonly DueDelivery[]): void {
    // Their replay was cancelled while they were on their way.
    returns.giveBack(due.filter(hindsight.isCancelled));
    for (const delivery of due) {
      if (hindsight.isCancelled(delivery)) continue;
      onLoaded(queue, delivery);
      queue.addStored(delivery);
      window.hold(delivery);
    }
  }

  return {
    load(queue) {
      queue.loading = true;
      queue.isLoadPostponed = false;
      queue.dueAt = null;
      underWay += 1;
      const { edition } = queue;
      const now = clock.now();
      // What could not go out would wait in memory, taking the place of others.
      const batch = Math.max(1, Math.min(batchFor(queue), tokens(queue)));
      store
        .claim(queue, now, batch)
        .then(
          ({ due, nextDueAt }) => {
            if (queue.surrendered) return;
            if (isClosed(queue) || queue.edition !== edition) returns.giveBack(due);
            else keep(queue, due);
            if (nextDueAt !== null) onMore(queue, nextDueAt <= now ? already : nextDueAt);
          },
          (error: unknown) => {
            log.write(failureLevel(error, isStopping()), "delivery.load_failed", { error: messageOf(error) });
            queue.isLoadPostponed = true;
            onMore(queue, now + retryMs);
          },
        )
        .finally(() => {
          underWay -= 1;
          queue.loading = false;
          onEnd(queue);
        })
        .catch(() => {});
    },
    get areUnderWay() {
      return underWay > 0;
    },
  };
}
