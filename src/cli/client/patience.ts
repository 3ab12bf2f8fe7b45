import type { Clock } from "../../lib/clock.ts";
import { TemporaryFailure } from "./failure.ts";

/** Notified when requests begin to fail temporarily, and when they succeed again. */
export interface Outage {
  /** @param waitMs until the next try */
  began(failure: TemporaryFailure, waitMs: number): void;
  ended(): void;
}

/** Repeats an attempt until it ends in anything but a `TemporaryFailure`. */
export type Patience = <T>(attempt: () => Promise<T>) => Promise<T>;

export interface PatienceOptions {
  clock: Clock;
  /** Ends the waiting, which then throws the signal's reason. */
  signal: AbortSignal;
  outage: Outage;
  /**
   * How long the attempt is repeated, counted from the first failure; after that, the last failure is thrown.
   * @default for ever
   */
  forMs?: number;
}

const firstPauseMs = 500;
const longestPauseMs = 10_000;

/**
 * The pause before the next try after `failures` in a row: it doubles each time, and half of it is random, so that clients
 * cut off by the same outage do not all come back at the same moment.
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
