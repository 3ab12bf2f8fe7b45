import type { FailureCode } from "../domain/failure.ts";

/** Ingestion times; what is counted are the whole hours that they lie in. */
export interface FailureQuery {
  readonly tenantKey: number;
  readonly from: number;
  readonly to: number;
  /** Id or URL of a webhook, also of a removed one. */
  readonly webhookId?: string;
}

/** Records that have failed, or wait after a failure, in the same way (`domain/failure-groups.ts`). */
export interface FailureGroup {
  /** Also a removed one. Null: none was registered. */
  readonly webhook: { readonly id: string; readonly url: string } | null;
  readonly code: FailureCode;
  readonly status: number | null;
  /** As `lineOf` has it. */
  readonly line: string;
  readonly waiting: number;
  readonly failed: number;
  readonly lastFailedAt: number;
  /** When its events came. */
  readonly firstEventAt: number;
  readonly lastEventAt: number;
  /** A few of its events, the newest first. */
  readonly eventIds: readonly string[];
  /** Of its latest records, ten at most, the most frequent first. */
  readonly types: readonly FailedType[];
  /** Of all of these. */
  readonly typeHashes: readonly (number | null)[];
}

/** A type of events among the latest records of a group (`newestLooked`); null: without one. */
export interface FailedType {
  readonly type: string | null;
  readonly records: number;
}

export interface FailureReport {
  /** The first and the last millisecond that was counted. */
  readonly from: number;
  readonly to: number;
  /** The largest first, a hundred at most. */
  readonly groups: readonly FailureGroup[];
  readonly total: number;
  /** Records that fail in so many other ways that these are not told apart. */
  readonly others: { readonly waiting: number; readonly failed: number };
}

export interface FailureVerbs {
  /** Records with a failure, in groups, as each stands now. Those that earlier programs stored are in none. */
  failures(query: FailureQuery): Promise<FailureReport>;
}
