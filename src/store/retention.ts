import type { Tenant } from "../domain/tenant.ts";
import { parseEventId } from "../lib/id.ts";
import type { AttemptRef } from "./deliveries.ts";

/** Accounts by their keys: only these, or all except these. */
export interface AccountChoice {
  readonly kind: "only" | "except";
  readonly tenantKeys: readonly number[];
}

/** A scan of events, starting from the oldest. */
export interface OldEventsQuery {
  /** The last event that was looked at. */
  readonly afterSeq: number;
  /** Only events ingested before this time. */
  readonly before: number;
  readonly accounts: AccountChoice;
  /** Only events whose payload is still there. */
  readonly withPayload: boolean;
  /** Maximum number of events to find. */
  readonly limit: number;
}

export interface OldEvents {
  readonly events: readonly { readonly tenantKey: number; readonly seq: number }[];
  /** The last event that was looked at; null when there are no more. */
  readonly lookedTo: number | null;
}

export interface AccountKept
  extends Pick<Tenant, "ownRetentionDays" | "ownPayloadDays" | "ownStorageBytes" | "storageFullAt"> {
  readonly tenantKey: number;
}

export interface KeptAnswersQuery {
  /** The last attempt that was looked at; null when none was. */
  readonly after: AttemptRef | null;
  readonly before: number;
  readonly now: number;
}

export interface KeptAnswers {
  readonly attempts: readonly (AttemptRef & { readonly webhookKey: number })[];
  /** The last attempt that was looked at; null when none was. */
  readonly lookedTo: AttemptRef | null;
  readonly isMore: boolean;
}

/** A delivery that an inbox keeps: a copy of its event's payload, under no more than the event's id. */
export interface InboxCopy {
  readonly key: number;
  readonly eventId: string;
}

/** The keys of the copies that are of these events. */
export function copiesOf(seqs: Iterable<number>, kept: readonly InboxCopy[]): number[] {
  const gone = new Set(seqs);
  return kept.filter(({ eventId }) => gone.has(parseEventId(eventId)?.seq ?? -1)).map(({ key }) => key);
}

/** Attempts that are looked at in one go: takes a few milliseconds. */
export const attemptsInOneLook = 2_000;

/** Events that are looked at in one go, few of which may match: takes some milliseconds. */
export const eventsInOneLook = 5_000;

/**
 * Removes what is too old to keep (`domain/retention.ts`). Counters and failure groups are updated in the same transaction; the
 * results of replays, the statistics and the use of the month's quota stay as they are.
 */
export interface RetentionVerbs {
  /** The next of them, including events that still have deliveries waiting. Damaged parts of the store are skipped. */
  oldEvents(query: OldEventsQuery): Promise<OldEvents>;
  /**
   * Removes those of these events that had ended by `endedBy`, with their records and attempts, and what the account's inbox
   * keeps of them. Does nothing for a deleted account: its rows are erased anyway. @returns how many were removed
   */
  forgetEvents(tenantKey: number, seqs: readonly number[], endedBy: number): Promise<number>;
  /** Like `forgetEvents`, but removes only their payloads, also from the inbox. */
  erasePayloads(tenantKey: number, seqs: readonly number[], endedBy: number): Promise<number>;
  /**
   * The next logged attempts that were acknowledged and whose response body is still kept, in the order of the log. Those that
   * began after `before` may be missing; a later look finds them. Those that began after `now`, by a clock that was ahead, are
   * passed over, as are damaged parts of the store.
   */
  keptAnswers(query: KeptAnswersQuery): Promise<KeptAnswers>;
  /** Removes the response bodies of these attempts. Does nothing for a deleted account. */
  forgetAnswers(tenantKey: number, attempts: readonly AttemptRef[]): Promise<void>;
  /** Accounts for which the operator has set how long or how much they keep. */
  accountsKeptOtherwise(): Promise<readonly AccountKept[]>;
  /**
   * Bytes that the events of an account take, with their records, attempts and index entries. Where there are many events, a
   * sample is measured.
   */
  storageOf(tenantKey: number): Promise<number>;
  /** Notes since when an account has exceeded its storage; null when it does not. Idempotent. */
  noteStorageFull(tenantKey: number, since: number | null): Promise<void>;
  /** Events stored for all accounts together. */
  storedEvents(): Promise<number>;
  /** Bytes that the store takes, without the space that it can reuse. */
  usedBytes(): Promise<number>;
}
