import { isUnavailable } from "../../domain/errors.ts";
import type { Clock } from "../../lib/clock.ts";
import { messageOf } from "../../lib/error-message.ts";
import type { Log } from "../../lib/log.ts";
import type { DueLane, DueRange } from "../../store/deliveries.ts";
import type { Store } from "../../store/store.ts";
import { failureLevel } from "./failure-level.ts";

/** Finds the webhooks with something in the table that waits and has no owner. */
export interface Discovery {
  /**
   * Looks for all of them, later if the table is unavailable right now; then, where other processes write to it too,
   * keeps looking for what they leave, until it is stopped.
   */
  start(): Promise<void>;
  /** Looks for all of them now, or as soon as the table is available. */
  look(): void;
  stop(): void;
}

export interface DiscoveryDeps {
  store: Pick<Store, "discover" | "isShared">;
  clock: Clock;
  log: Log;
  onFound(lane: DueLane): void;
  /** Everything that a look found has been reported. */
  onEnd(): void;
}

/** Pause after the table could not be read. */
const retryMs = 1000;

/** How often to look for what others have left that has since fallen due. */
const pollMs = 1000;
/** What falls due may be committed only later: by other processes, as late as their statements may take. */
const overlapMs = 15_000;
/** How often to look for everything: for what fell due before its owner let go of it. */
const lookAgainMs = 5 * 60_000;

export function createDiscovery({ store, clock, log, onFound, onEnd }: DiscoveryDeps): Discovery {
  let cancelPoll = () => {};
  let cancelLook = () => {};
  let stopped = false;
  let lookedAt = 0;
  let seenUntil = 0;

  async function find(range?: DueRange): Promise<void> {
    for (const lane of await store.discover(range)) onFound(lane);
    onEnd();
  }

  function logFailure(error: unknown): void {
    log.write(failureLevel(error, stopped), "delivery.load_failed", { error: messageOf(error) });
  }

  function look(): void {
    find().catch(lookLater);
  }

  function lookLater(error: unknown): void {
    logFailure(error);
    cancelLook();
    if (!stopped) cancelLook = clock.after(retryMs, look);
  }

  async function poll(): Promise<void> {
    const [now, monotonicMs] = [clock.now(), clock.monotonicMs()];
    const isTimeForAll = monotonicMs - lookedAt >= lookAgainMs;
    try {
      await find(isTimeForAll ? undefined : { after: Math.min(seenUntil, now) - overlapMs, until: now });
      seenUntil = now;
      if (isTimeForAll) lookedAt = monotonicMs;
    } catch (error) {
      logFailure(error);
    }
  }

  function pollLater(): void {
    if (!stopped) cancelPoll = clock.after(pollMs, () => void poll().then(pollLater));
  }

  return {
    async start() {
      seenUntil = clock.now();
      lookedAt = clock.monotonicMs();
      await find().catch((error: unknown) => {
        if (!isUnavailable(error)) throw error;
        lookLater(error);
      });
      if (store.isShared) pollLater();
    },
    look,
    stop() {
      stopped = true;
      cancelPoll();
      cancelLook();
    },
  };
}
