import type { DeliveryState } from "./delivery.ts";
import type { FailureCode } from "./failure.ts";
import type { Moment } from "./moment.ts";
import type { PlaceInLine } from "./order.ts";
import type { SettledRecord } from "./settlement.ts";

/**
 * What a record was before a replay began a run of it. This is kept with the record while that run waits, so that it can
 * return to it when the replay is cancelled (rules, section 10):
 *
 *   DELIVERED, FAILED ──▶ is so again
 *   PENDING, in the run that its event began ──▶ goes on with that, where it was
 *   there was none ──▶ goes
 *
 * A run that was overtaken is over: a record that was waiting for another replay returns to what it was before that one.
 */
export type RecordBefore = { readonly state: "NONE" } | KnownBefore;

interface KnownBefore extends KnownRecord {
  /** When it had ended; null: it waited. Undefined, like the other, if an earlier program kept this. */
  readonly finishedAt?: number | null;
  /** When the replay began its run. */
  readonly replayedAt?: number;
}

interface KnownRecord {
  readonly state: DeliveryState;
  readonly attemptsInRun: number;
  readonly nextAttemptAt: number | null;
  readonly errorReason: string | null;
  readonly errorCode: FailureCode | null;
  readonly statusCode: number | null;
  /** Key of the group that counts its failure. */
  readonly failureKey: number | null;
  /** The replay that began the run; null for a run that waits. */
  readonly replayKey: number | null;
}

/** A record as its row has it. */
export interface RecordNow extends KnownRecord {
  readonly finishedAt: number | null;
  /** Kept by the run that waits; null if no replay began it, or an earlier program did. */
  readonly before: RecordBefore | null;
}

/** What to remember about a record when a replay begins a new run. */
export function beforeRun(record: RecordNow, { orderedNow: replayedAt }: Pick<Moment, "orderedNow">): RecordBefore {
  const { state, attemptsInRun, nextAttemptAt, errorReason, errorCode, statusCode, failureKey } = record;
  const { finishedAt, replayKey, before } = record;
  const ended = { finishedAt, replayedAt };
  const known = { state, attemptsInRun, nextAttemptAt, errorReason, errorCode, statusCode, failureKey, ...ended };
  return state === "PENDING" ? (before ?? { ...known, replayKey: null }) : { ...known, replayKey };
}

export interface ReturnedRecord extends SettledRecord, Pick<KnownBefore, "attemptsInRun" | "replayKey" | "failureKey"> {
  /** When the failure came that it has again, if it has one; the latest attempt is close enough for a record that waits. */
  readonly failedAt: number | null;
}

/** A record that waits for a cancelled replay. */
export interface CancelledRecord extends Pick<PlaceInLine, "isHeldBack"> {
  readonly lastAttemptAt: number | null;
}

/** When a replay is cancelled. */
export interface CancelledAt extends Moment {
  /** When the first of the account's replays of what has failed was asked for that still have to queue; null: there is none. */
  readonly failedAskedAt: number | null;
}

/**
 * What a record becomes when its run is cancelled while waiting; null: it is deleted. Its attempts stay in the log. A
 * record that goes on waiting keeps its place in its line (`order.ts`), which may be another one than before.
 */
export function returned(
  before: RecordBefore,
  { isHeldBack, lastAttemptAt }: CancelledRecord,
  at: CancelledAt,
): ReturnedRecord | null {
  if (before.state === "NONE") return null;
  if (before.state !== "PENDING") {
    const finishedAt = endedAt(before, at);
    return { ...before, finishedAt, failedAt: before.finishedAt ?? lastAttemptAt ?? finishedAt };
  }
  const nextAttemptAt = isHeldBack ? null : (before.nextAttemptAt ?? at.now);
  return { ...before, nextAttemptAt, finishedAt: null, failedAt: lastAttemptAt };
}

/**
 * A replay of what has failed takes what had ended by the time it was asked for. If that was while this record waited, the
 * record has not ended until now. Where one from before the run waits as well, that one has its turn first, and counts.
 */
function endedAt({ finishedAt, replayedAt }: KnownBefore, { orderedNow, failedAskedAt }: CancelledAt): number {
  if (failedAskedAt !== null && replayedAt !== undefined && failedAskedAt > replayedAt) return orderedNow;
  return finishedAt ?? orderedNow;
}

/** As a store keeps it. */
export const beforeText = (before: RecordBefore): string => JSON.stringify(before);
/** The reverse of `beforeText`. */
export const beforeOf = (text: string | null): RecordBefore | null => (text === null ? null : JSON.parse(text));
