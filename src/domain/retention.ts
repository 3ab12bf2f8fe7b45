import type { DeliveryState } from "./delivery.ts";
import { invalid } from "./errors.ts";

/** What has ended so lately may still be looked at, and an attempt that was under way may still be logged. */
export const endedForMs = 3_600_000;

/** A record of an event that is old. */
export interface OldRecord {
  readonly state: DeliveryState;
  /** Null while it is pending. */
  readonly finishedAt: number | null;
}

/** Whether an event, or its payload, may go: nothing of it waits, and all of it ended by then. */
export const hasEnded = (records: readonly OldRecord[], endedBy: number): boolean =>
  records.every(({ state, finishedAt }) => state !== "PENDING" && finishedAt !== null && finishedAt <= endedBy);

/** There is nothing to send again. */
export const payloadErased = () =>
  invalid(
    "The payload of this event was erased as it had become old, so it cannot be delivered again.",
    "payload_erased",
  );
