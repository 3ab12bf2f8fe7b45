import type { DeliveryState } from "./delivery.ts";
import type { FailureCode } from "./failure.ts";

/**
 * A text that may be long, as it stands in JSON: its UTF-8 in quotes, with what has to be escaped, to be sent as it is. A
 * list of such texts is made without a string of each, which on the event loop would be garbage of three times its length.
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
  /** "" when no webhook was registered as the event arrived. */
  readonly targetWebhook: string;
  readonly errorReason: string | null;
  /** Of the same failure; null also for those that earlier programs stored. */
  readonly errorCode: FailureCode | null;
  /** What that failure was answered with; null when it had no answer. */
  readonly statusCode: number | null;
  /** The very bytes that the tenant submitted; as much of them as a list was asked for. */
  readonly payload: Uint8Array | null;
  /** It went before the event (`retention.ts`). */
  readonly payloadErased?: true;
  readonly attempts: number;
  /** Of these, those that are no longer in the log. */
  readonly attemptsForgotten: number;
  readonly lastAttemptAt: number | null;
  /** How long that attempt took; null also of those that earlier programs stored. */
  readonly lastDurationMs: number | null;
  /** Null also of one that is held back (`order.ts`). */
  readonly nextAttemptAt: number | null;
  readonly replayGroupId: JsonText | null;
  /** It lies on a damaged page of the storage: there is no payload, and what else is lost stands as if it had none. */
  readonly unreadable?: true;
}

/** What a list of records may be narrowed by, all together. */
export interface RecordFilters {
  readonly state?: DeliveryState;
  /** Id or URL of a webhook, also of a removed one. */
  readonly webhookId?: string;
  /** Of the event, as it was given. */
  readonly type?: string;
  readonly code?: FailureCode;
  readonly status?: number;
  /** Id of the replay that began the latest run of the records. */
  readonly replayId?: string;
  /** Ingestion times, both inclusive. */
  readonly from?: number;
  readonly to?: number;
}

/** Of what is asked for by its state alone there are counters. */
export const isFiltered = ({ webhookId, type, code, status, replayId, from, to }: RecordFilters): boolean =>
  [webhookId, type, code, status, replayId, from, to].some((given) => given !== undefined);

/** Records that have failed, or wait after a failure, with one code, of answers perhaps with one status. */
export interface FailureSelection {
  readonly code: FailureCode;
  readonly status: number | null;
}

/**
 * The failures that are asked for by code, by status or by both. Only answers have a status, and what was delivered has no
 * failure any more.
 * @returns undefined: by neither; null: there is no such record
 */
export function selectFailures({
  state,
  code,
  status,
}: {
  readonly [Field in "state" | "code" | "status"]?: RecordFilters[Field] | undefined;
}): FailureSelection | null | undefined {
  if (code === undefined && status === undefined) return undefined;
  if (state === "DELIVERED") return null;
  if (status === undefined) return code && { code, status: null };
  const answered: FailureCode = "http_status";
  return code === undefined || code === answered ? { code: answered, status } : null;
}

/** Rules, section 7: a filtered list is counted so far and no further. */
export const filteredCountLimit = 10_000;

/** @param counted up to one more than the limit */
export const totalOf = (counted: number): { total: number; totalIsExact: boolean } => ({
  total: Math.min(counted, filteredCountLimit),
  totalIsExact: counted <= filteredCountLimit,
});
