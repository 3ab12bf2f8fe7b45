import type { DeliveryState } from "./delivery.ts";
import { invalid } from "./errors.ts";
import type { Tenant } from "./tenant.ts";

/** What ended within this time may still be looked at, and an attempt that was under way may still be logged. */
export const endedForMs = 3_600_000;

/** A record of an event that is old. */
export interface OldRecord {
  readonly state: DeliveryState;
  /** Null while it is pending. */
  readonly finishedAt: number | null;
}

/** Whether an event, or its payload, may go: none of its records waits, and all of them ended by then. */
export const hasEnded = (records: readonly OldRecord[], endedBy: number): boolean =>
  records.every(({ state, finishedAt }) => state !== "PENDING" && finishedAt !== null && finishedAt <= endedBy);

/** How long a server keeps the events of any account; null: forever. */
export interface UsualAges {
  readonly retentionMs: number | null;
  /** How long it keeps their payloads; null: as long as the events. */
  readonly retentionPayloadsMs: number | null;
}

const dayMs = 86_400_000;

/** How long an account's events and their payloads are kept, in ms; null: forever. */
export function keptFor(
  { ownRetentionDays, ownPayloadDays }: Pick<Tenant, "ownRetentionDays" | "ownPayloadDays">,
  usual: UsualAges,
): { readonly events: number | null; readonly payloads: number | null } {
  const events = ageOf(ownRetentionDays, usual.retentionMs);
  const payloads = ageOf(ownPayloadDays, usual.retentionPayloadsMs);
  return { events, payloads: events !== null && (payloads === null || payloads > events) ? events : payloads };
}

/** @param days 0: forever; null: as for any account */
function ageOf(days: number | null, usualMs: number | null): number | null {
  if (days === null) return usualMs;
  return days === 0 ? null : days * dayMs;
}

/** There is nothing left to send again. */
export const payloadErased = () =>
  invalid(
    "The payload of this event was erased as it had become old, so it cannot be delivered again.",
    "payload_erased",
  );
