import { isGrowing, queueWatch } from "../domain/growing-queue.ts";
import type { Clock } from "../lib/clock.ts";
import type { Store } from "../store/store.ts";

export interface QueueWatch {
  start(): void;
  stop(): void;
}

export interface QueueWatchDeps {
  store: Pick<Store, "queueDepth">;
  clock: Clock;
  /** Of several servers, only one looks. */
  mayRun(): boolean;
  onGrowing(found: { waiting: number; minutes: number }): void;
}

/** Checks periodically how many deliveries wait. */
export function createQueueWatch({ store, clock, mayRun, onGrowing }: QueueWatchDeps): QueueWatch {
  let depths: number[] = [];
  let cancel: (() => void) | null = null;

  function schedule(): void {
    cancel = clock.after(queueWatch.everyMs, () => {
      schedule();
      // A store that cannot be asked reports that itself.
      void look().catch(() => {});
    });
  }

  async function look(): Promise<void> {
    if (!mayRun()) {
      depths = [];
      return;
    }
    const { pending } = await store.queueDepth();
    depths = [...depths, pending].slice(-queueWatch.looks);
    if (isGrowing(depths)) {
      onGrowing({ waiting: pending, minutes: ((queueWatch.looks - 1) * queueWatch.everyMs) / 60_000 });
    }
  }

  return {
    start: schedule,
    stop: () => cancel?.(),
  };
}
