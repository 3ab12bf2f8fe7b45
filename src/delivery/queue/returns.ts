import type { DeliveryRef } from "../../domain/delivery.ts";
import type { Clock } from "../../lib/clock.ts";
import { messageOf } from "../../lib/error-message.ts";
import type { Log } from "../../lib/log.ts";
import type { Store } from "../../store/store.ts";

/** What is owned here and will not go out from here goes back to the table, for whoever claims it. */
export interface Returns {
  /** @param dueAt when somebody here may look for it in the table again */
  giveBack(deliveries: readonly DeliveryRef[], dueAt?: number): void;
  /** What could not be given back yet is not owned any more. */
  forget(): void;
  readonly areUnderWay: boolean;
  /** Nothing is tried again. Resolves when nothing is under way. */
  stop(): Promise<void>;
}

export interface ReturnsDeps {
  store: Pick<Store, "release">;
  clock: Clock;
  log: Log;
  /** The table has it. */
  onReturned(delivery: DeliveryRef, dueAt: number): void;
  /** All that was given back at once has been told of. */
  onEnd(): void;
}

/** Of what is due by now: not the time of now, or it would wait for that again when the clock is set back. */
export const already = 0;

/** Pause after the table could not be told. */
const retryMs = 1000;

export function createReturns({ store, clock, log, onReturned, onEnd }: ReturnsDeps): Returns {
  const underWay = new Set<Promise<void>>();
  let stopped = false;
  /** Counts how often everything was forgotten: what is from before is not tried again. */
  let era = 0;

  function giveBack(deliveries: readonly DeliveryRef[], dueAt = already): void {
    if (deliveries.length === 0) return;
    const eraOfCall = era;
    const release = store.release(deliveries).then(
      () => {
        for (const delivery of deliveries) onReturned(delivery, dueAt);
      },
      (error: unknown) => {
        log.write("error", "delivery.release_failed", {
          error: messageOf(error),
        });
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
