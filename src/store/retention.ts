import type { Tenant } from "../domain/tenant.ts";
import type { AttemptRef } from "./deliveries.ts";

/** Accounts by their keys: those, or all but those. */
export interface AccountChoice {
  readonly kind: "only" | "except";
  readonly tenantKeys: readonly number[];
}

/** A look at events, from the oldest on. */
export interface OldEventsQuery {
  /** The last one that was looked at. */
  readonly afterSeq: number;
  /** Those that were ingested before this time. */
  readonly before: number;
  readonly accounts: AccountChoice;
  /** Only those whose payload is still there. */
  readonly withPayload: boolean;
  /** Most that are found. */
  readonly limit: number;
}

export interface OldEvents {
  readonly events: readonly { readonly tenantKey: number; readonly seq: number }[];
  /** The last one that was looked at; null: there are no more of them. */
  readonly lookedTo: number | null;
}

export interface AccountKept
  extends Pick<Tenant, "ownRetentionDays" | "ownPayloadDays" | "ownStorageBytes" | "storageFullAt"> {
  readonly tenantKey: number;
}

export interface KeptAnswersQuery {
  /** The attempt that was looked at last; null: none was. */
  readonly after: AttemptRef | null;
  readonly before: number;
}

export interface KeptAnswers {
  readonly attempts: readonly (AttemptRef & { readonly webhookKey: number })[];
  /** The attempt that was looked at last; null: none was. */
  readonly lookedTo: AttemptRef | null;
  readonly isMore: boolean;
}

/** Attempts that are looked at in one go: a few milliseconds. */
export const attemptsInOneLook = 2_000;

/** Events that are looked at in one go, of which few may be what is looked for: some milliseconds. */
export const eventsInOneLook = 5_000;

/**
 * What has become old goes (`domain/retention.ts`). Counters and groups of failures follow in the same transaction; what a replay
 * has done, statistics and what the month's quota has given stay as they are.
 */
export interface RetentionVerbs {
  /** Some of them; what waits is among them. A part of the store that is damaged is passed over. */
  oldEvents(query: OldEventsQuery): Promise<OldEvents>;
  /**
   * Removes those of these events that have ended by then, with their records and attempts. None of an account that is gone:
   * its rows are erased. @returns how many went
   */
  forgetEvents(tenantKey: number, seqs: readonly number[], endedBy: number): Promise<number>;
  /** As `forgetEvents`, of their payloads alone. */
  erasePayloads(tenantKey: number, seqs: readonly number[], endedBy: number): Promise<number>;
  /**
   * The next logged attempts that were acknowledged and of which the answer's body is kept, in the order of the log. Those that
   * began after `before` may be missing, and are when a later look comes to them.
   */
  keptAnswers(query: KeptAnswersQuery): Promise<KeptAnswers>;
  /** Removes the bodies of the answers to these attempts. None of an account that is gone. */
  forgetAnswers(tenantKey: number, attempts: readonly AttemptRef[]): Promise<void>;
  /** Accounts for which the operator has said how long or how much they keep. */
  accountsKeptOtherwise(): Promise<readonly AccountKept[]>;
  /**
   * Bytes that the events of an account take, with their records, attempts and what they are found by. Of many events a sample
   * is measured.
   */
  storageOf(tenantKey: number): Promise<number>;
  /** Notes since when an account takes more than it may; null: it does not. Idempotent. */
  noteStorageFull(tenantKey: number, since: number | null): Promise<void>;
  /** Of all accounts. */
  storedEvents(): Promise<number>;
  /** Bytes that the store takes, without the room that can be used again. */
  usedBytes(): Promise<number>;
}
