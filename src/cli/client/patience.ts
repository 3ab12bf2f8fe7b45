import type { Clock } from "../../lib/clock.ts";
import { TemporaryFailure } from "./failure.ts";

/** Told when requests begin to fail for now, and when they succeed again. */
export interface Outage {
  /** @param waitMs until the next try */
  began(failure: TemporaryFailure, waitMs: number): void;
  ended(): void;
}

/** Runs an attempt until it does not end in a `TemporaryFailure`. */
export type Patience = <T>(attempt: () => Promise<T>) => Promise<T>;

export interface PatienceOptions {
  clock: Clock;
  /** Ends the waiting, which then throws its reason. */
  signal: AbortSignal;
  outage: Outage;
  /**
   * How long, from the first failure, the attempt is repeated; then the last failure is thrown.
   * @default for ever
   */
  forMs?: number;
}

const firstPauseMs = 500;
const longestPauseMs = 10_000;

/**
 * The pause before the next try after `failures` in a row: it doubles, and half of it is chance, so that clients whom one
 * outage has cut off do not all come back in the same moment.
 */
export function pauseAfter(failures: number, random = Math.random): number {
  const full = Math.min(longestPauseMs, firstPauseMs * 2 ** Math.min(failures - 1, 10));
  return full * (0.5 + random() / 2);
}

export function createPatience({ clock, signal, outage, forMs = Number.POSITIVE_INFINITY }: PatienceOptions): Patience {
  return async (attempt) => {
    let giveUpAt = Number.POSITIVE_INFINITY;
    for (let failures = 1; ; failures += 1) {
      try {
        const result = await attempt();
        outage.ended();
        return result;
      } catch (error) {
        if (!(error instanceof TemporaryFailure)) throw error;
        if (failures === 1) giveUpAt = clock.monotonicMs() + forMs;
        const waitMs = Math.max(pauseAfter(failures), error.details.retryAfterMs ?? 0);
        if (clock.monotonicMs() + waitMs > giveUpAt) throw error;
        outage.began(error, waitMs);
        await pause(clock, waitMs, signal);
      }
    }
  };
}

/** Resolves after `delayMs`; throws the signal's reason as soon as it is aborted. */
export function pause(clock: Clock, delayMs: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason);
    const onAbort = () => {
      cancel();
      reject(signal.reason);
    };
    const cancel = clock.after(delayMs, () => {
      signal.removeEventListener("abort", onAbort);
      resolve();
    });
    signal.addEventListener("abort", onAbort, { once: true });
  });
}
