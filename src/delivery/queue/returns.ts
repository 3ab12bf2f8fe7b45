import type { DeliveryRef } from "../../domain/delivery.ts";
import type { Clock } from "../../lib/clock.ts";
import { messageOf } from "../../lib/error-message.ts";
import type { Log } from "../../lib/log.ts";
import type { Store } from "../../store/store.ts";
import { failureLevel } from "./failure-level.ts";

/** Gives what is owned here but will not go out from here back to the table, for any process to claim. */
export interface Returns {
  /** @param dueAt when this process may look for it in the table again */
  giveBack(deliveries: readonly DeliveryRef[], dueAt?: number): void;
  /** What could not be given back yet is no longer owned. */
  forget(): void;
  readonly areUnderWay: boolean;
  /** Stops retrying. Resolves when nothing is under way. */
  stop(): Promise<void>;
}

export interface ReturnsDeps {
  store: Pick<Store, "release">;
  clock: Clock;
  log: Log;
  /** The table has it back. */
  onReturned(delivery: DeliveryRef, dueAt: number): void;
  /** Everything that was given back in one call has been reported. */
  onEnd(): void;
}

/**
 * The due time of what is due already: not the current time, or it would have to wait for that again if the clock is set back.
 */
export const already = 0;

/** Pause after a failed release. */
const retryMs = 1000;

export function createReturns({ store, clock, log, onReturned, onEnd }: ReturnsDeps): Returns {
  const underWay = new Set<Promise<void>>();
  let stopped = false;
  /** Counts how often everything was forgotten: anything from before is not retried. */
  let era = 0;

  function giveBack(deliveries: readonly DeliveryRef[], dueAt = already): void {
    if (deliveries.length === 0) return;
    const eraOfCall = era;
    const release = store.release(deliveries).then(
      () => {
        for (const delivery of deliveries) onReturned(delivery, dueAt);
      },
      (error: unknown) => {
        log.write(failureLevel(error, stopped), "delivery.release_failed", { error: messageOf(error) });
        if (!stopped) clock.after(retryMs, () => eraOfCall === era && giveBack(deliveries, dueAt));
      },
    );
    underWay.add(release);
    void release.finally(() => {
      underWay.delete(release);
      onEnd();
    });
  }

  return {
    giveBack,
    forget() {
      era += 1;
    },
    get areUnderWay() {
      return underWay.size > 0;
    },
    async stop() {
      stopped = true;
      await Promise.all(underWay);
    },
  };
}
