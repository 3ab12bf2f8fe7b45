import type { Origin } from "../domain/audit.ts";
import { StartupError } from "../domain/errors.ts";
import type { Clock } from "../lib/clock.ts";
import { messageOf } from "../lib/error-message.ts";
import type { Log } from "../lib/log.ts";
import type { Store } from "../store/store.ts";

export interface FailPendingDeps {
  store: Pick<Store, "cancelReplays" | "returnCancelled" | "failUndeliverable" | "failPending">;
  clock: Clock;
  log: Log;
  /** Interrupts it; the next start carries on. */
  signal: AbortSignal;
  /** Records per transaction. No clients are served meanwhile, so it may take its time. @default 1,000 */
  chunk?: number;
}

const byRestore: Origin = { actor: "operator", via: "restore --pending fail", address: null };

/** How often progress is logged. */
const logEveryMs = 5_000;

/**
 * Fails whatever is pending in a restored store, as its operator requested, before the server answers or delivers anything. So
 * what is pending then is exactly what was pending in the backup, however often this is started over. Replays come first,
 * because records that wait for one return to their previous state; next come deliveries that fail for reasons of their own.
 *
 * @returns false when the signal came first
 * @throws StartupError with what to do
 */
export async function failPending({ store, clock, log, signal, chunk = 1_000 }: FailPendingDeps): Promise<boolean> {
  const startedAt = clock.monotonicMs();
  let loggedAt = Number.NEGATIVE_INFINITY;
  let replays = 0;
  let deliveries = 0;

  /** Repeats a step until there is nothing left to do. @returns false when the signal came first */
  async function all(step: () => Promise<boolean>): Promise<boolean> {
    while (!signal.aborted) {
      if (clock.monotonicMs() - loggedAt >= logEveryMs) {
        log.write("info", "restore.failing_pending", { deliveries });
        loggedAt = clock.monotonicMs();
      }
      if (!(await step())) return true;
    }
    return false;
  }

  const steps: (() => Promise<boolean>)[] = [
    async () => {
      const cancelled = await store.cancelReplays(chunk, clock.now(), byRestore);
      replays += cancelled;
      return cancelled > 0;
    },
    async () => {
      const returned = await store.returnCancelled(chunk, clock.now());
      return returned !== null && returned !== "owned";
    },
    () => store.failUndeliverable(chunk),
    async () => {
      const failed = await store.failPending(chunk);
      deliveries += failed;
      return failed > 0;
    },
  ];
  try {
    for (const step of steps) if (!(await all(step))) return false;
  } catch (error) {
    throw new StartupError(
      `What was pending in the backup cannot be failed as --pending fail has asked (${messageOf(error)}), and nothing is ` +
        "delivered. Try: see that the disk has room and start again, which goes on with it.",
    );
  }
  const tookMs = Math.round(clock.monotonicMs() - startedAt);
  log.write("info", "restore.pending_failed", { deliveries, replaysCancelled: replays, tookMs });
  return true;
}
