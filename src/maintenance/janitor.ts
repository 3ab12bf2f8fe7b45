import type { Clock } from "../lib/clock.ts";
import type { Log } from "../lib/log.ts";
import type { Store } from "../store/store.ts";

/** Rows in one go: a few milliseconds, so that live traffic does not feel it. */
const chunk = 200;
const pruneEveryMs = 60_000;
const retryAfterMs = 5000;

/** What clears up in the background, in small steps, across restarts: the table says what is left to do. */
export interface Janitor {
  start(): void;
  /** Something was removed: an account or a webhook. */
  wake(): void;
  stop(): Promise<void>;
  /** Resolves when nothing is left to clear up. */
  whenIdle(): Promise<void>;
}

export interface JanitorDeps {
  store: Store;
  clock: Clock;
  log: Log;
}

export function createJanitor({ store, clock, log }: JanitorDeps): Janitor {
  let running: Promise<void> | null = null;
  let again = false;
  let stopped = false;
  let cancel: (() => void) | null = null;

  async function work(): Promise<void> {
    let erased = false;
    while (!stopped) {
      const failing = await store.failDeliveriesOfRemoved(chunk);
      const erasing = await store.eraseDeleted(chunk);
      erased ||= erasing;
      if (!failing && !erasing) break;
    }
    while (!stopped && (await store.prune(clock.now(), chunk)));
    while (!stopped && erased && (await store.releaseSpace(chunk)));
  }

  function run(): void {
    if (stopped) return;
    if (running !== null) {
      again = true;
      return;
    }
    cancel?.();
    let pause = pruneEveryMs;
    running = work()
      .catch((error: unknown) => {
        pause = retryAfterMs;
        log.write("warn", "maintenance.failed", { error: error instanceof Error ? error.message : String(error) });
      })
      .finally(() => {
        running = null;
        if (stopped) return;
        if (again) {
          again = false;
          run();
        } else {
          cancel = clock.after(pause, run);
        }
      });
  }

  return {
    start: run,
    wake: run,
    async stop() {
      stopped = true;
      cancel?.();
      await running;
    },
    async whenIdle() {
      while (running !== null) await running;
    },
  };
}
