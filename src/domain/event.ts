import type { DeliveryState } from "./delivery.ts";
import type { FailureCode } from "./failure.ts";

/**
 * A text that may be long, in its JSON form: its UTF-8 in quotes, escaped where needed, ready to be sent as it is. A list
 * of such texts is built without a string for each, which on the event loop would be garbage of three times its length.
 */
export type JsonText = Uint8Array;

/** A record as the events endpoints show it (specification, "Event record"; rules, section 7). */
export interface EventRecord {
  readonly eventId: string;
  readonly state: DeliveryState;
  readonly ingestedAt: number;
  /** Null: it has none. */
  readonly type: string | null;
  /** Null: it has none. It is read with the payload, and is null without that. */
  readonly orderingKey: string | null;
  /** "" when no webhook was registered when the event arrived. */
  readonly targetWebhook: string;
  readonly errorReason: string | null;
  /** The code of that failure; null also for those stored by earlier releases. */
  readonly errorCode: FailureCode | null;
  /** The status of that failure; null if it had no answer. */
  readonly statusCode: number | null;
  /** The exact bytes that the tenant submitted, or as many of them as a list was asked for. */
  readonly payload: Uint8Array | null;
  /** The payload was erased before the event (`retention.ts`). */
  readonly payloadErased?: true;
  readonly attempts: number;
  /** How many of these are no longer in the log. */
  readonly attemptsForgotten: number;
  readonly lastAttemptAt: number | null;
  /** How long that attempt took; null also for those stored by earlier releases. */
  readonly lastDurationMs: number | null;
  /** Null also if it is held back (`order.ts`). */
  readonly nextAttemptAt: number | null;
  /** Id of the event whose delivery it is held back by. It is read with the payload, and absent without that. */
  readonly heldBackBy?: string;
  readonly replayGroupId: JsonText | null;
  /** It lies on a damaged page of the storage: there is no payload, and anything else that is lost appears as if it had none. */
  readonly unreadable?: true;
}

/** Filters for a list of records; all of them apply together. */
export interface RecordFilters {
  readonly state?: DeliveryState;
  /** Id or URL of a webhook, even a removed one. */
  readonly webhookId?: string;
  /** The event's type, as it was given. */
  readonly type?: string;
  readonly code?: FailureCode;
  readonly status?: number;
  /** Id of the replay that began the latest run of the records. */
  readonly replayId?: string;
  /** Ingestion times, both inclusive. */
  readonly from?: number;
  readonly to?: number;
}

/** Records selected by state alone have counters. */
export const isFiltered = ({ webhookId, type, code, status, replayId, from, to }: RecordFilters): boolean =>
  [webhookId, type, code, status, replayId, from, to].some((given) => given !== undefined);

/** Records that have failed, or wait after a failure, with one code; for answers perhaps with one status. */
export interface FailureSelection {
  readonly code: FailureCode;
  readonly status: number | null;
}

/**
 * The failures selected by code, by status or by both. Only answers have a status; what was delivered no longer has a
 * failure, and what was skipped never had one.
 * @returns undefined: neither was given; null: no record can match
 */
export function selectFailures({
  state,
  code,
  status,
}: {
  readonly [Field in "state" | "code" | "status"]?: RecordFilters[Field] | undefined;
}): FailureSelection | null | undefined {
  if (code === undefined && status === undefined) return undefined;
  if (state === "DELIVERED" || state === "SKIPPED") return null;
  if (status === undefined) return code && { code, status: null };
  const answered: FailureCode = "http_status";
  return code === undefined || code === answered ? { code: answered, status } : null;
}

/** Rules, section 7: a filtered list is counted up to here and no further. */
export const filteredCountLimit = 10_000;

/** @param counted up to one more than the limit */
export const totalOf = (counted: number): { total: number; totalIsExact: boolean } => ({
  total: Math.min(counted, filteredCountLimit),
  totalIsExact: counted <= filteredCountLimit,
});
