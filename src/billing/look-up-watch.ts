import type { Clock } from "../lib/clock.ts";
import { createLimiter } from "../lib/limiter.ts";
import type { Log } from "../lib/log.ts";
import type { PaymentProcessor } from "./processor.ts";

export interface LookUpWatchDeps {
  clock: Pick<Clock, "monotonicMs">;
  log: Log;
  /** For metrics: called after every look-up with an inconclusive answer. */
  onUnknown(): void;
}

/** How long the same reason is not reported again. */
const sameReasonPauseMs = 60 * 60_000;

/** Reasons are sentences written by the adapters, and there are few. */
const maxReasons = 100;

/**
 * Warns about look-ups without a conclusive answer. They are retried automatically, so otherwise nobody would notice:
 * payments would wait for as long as the processor, or something on the way to it, gives unreadable answers.
 */
export function watchLookUps(
  processor: PaymentProcessor,
  { clock, log, onUnknown }: LookUpWatchDeps,
): PaymentProcessor {
  const told = createLimiter({ clock, limit: 1, windowMs: sameReasonPauseMs, maxKeys: maxReasons });
  let untold = 0;
  return {
    ...processor,
    async lookUp(reference) {
      const state = await processor.lookUp(reference);
      if (state.kind !== "unknown") return state;
      onUnknown();
      untold += 1;
      if (told.take(state.reason).ok) {
        log.write("warn", "payment.look_up_unknown", {
          processor: processor.name,
          reason: state.reason,
          lookUps: untold,
        });
        untold = 0;
      }
      return state;
    },
  };
}
