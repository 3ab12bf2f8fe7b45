import type { FailureCode } from "../domain/failure.ts";

/** `from` and `to` are ingestion times; the whole hours that they fall into are counted. */
export interface FailureQuery {
  readonly tenantKey: number;
  readonly from: number;
  readonly to: number;
  /** Id or URL of a webhook, possibly a removed one. */
  readonly webhookId?: string;
}

/** Records that have failed, or wait after a failure, in the same way (`domain/failure-groups.ts`). */
export interface FailureGroup {
  /** Possibly a removed one. Null when none was registered. */
  readonly webhook: { readonly id: string; readonly url: string } | null;
  readonly code: FailureCode;
  readonly status: number | null;
  /** As `lineOf` returns it. */
  readonly line: string;
  readonly waiting: number;
  readonly failed: number;
  readonly lastFailedAt: number;
  /** When its first and last event came in. */
  readonly firstEventAt: number;
  readonly lastEventAt: number;
  /** A few of its events, newest first. */
  readonly eventIds: readonly string[];
  /** The types among its latest records, most frequent first, at most ten. */
  readonly types: readonly FailedType[];
  /** Hashes of all types among those records. */
  readonly typeHashes: readonly (number | null)[];
}

/** A group that is not among the largest: its answer and its events are left out. */
export type UnlistedGroup = Omit<FailureGroup, "line" | "eventIds" | "types">;

/** An event type among the latest records of a group (`newestLooked`); null for events without one. */
export interface FailedType {
  readonly type: string | null;
  readonly records: number;
}

export interface FailureReport {
  /** The first and the last millisecond counted. */
  readonly from: number;
  readonly to: number;
  /** Largest first, at most a hundred. */
  readonly groups: readonly FailureGroup[];
  /** All others that have a kind. */
  readonly unlisted: readonly UnlistedGroup[];
  /** Of both. */
  readonly total: number;
  /** Records whose ways of failing are too many to be told apart. */
  readonly others: { readonly waiting: number; readonly failed: number };
}

export interface FailureVerbs {
  /** Records with a failure, in groups, by their present state. Records stored by earlier programs are in no group. */
  failures(query: FailureQuery): Promise<FailureReport>;
}
