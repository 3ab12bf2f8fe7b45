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

interface KnownBefore {
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
export interface RecordNow extends KnownBefore {
  /** Kept by the run that waits; null if no replay began it, or an earlier program did. */
  readonly before: RecordBefore | null;
}

/** What to remember about a record when a replay begins a new run. */
export function beforeRun(record: RecordNow): RecordBefore {
  const { state, attemptsInRun, nextAttemptAt, errorReason, errorCode, statusCode, failureKey } = record;
  const { replayKey, before } = record;
  const known = { state, attemptsInRun, nextAttemptAt, errorReason, errorCode, statusCode, failureKey };
  return state === "PENDING" ? (before ?? { ...known, replayKey: null }) : { ...known, replayKey };
}

export type ReturnedRecord = SettledRecord & Pick<KnownBefore, "attemptsInRun" | "replayKey" | "failureKey">;

/**
 * What a record becomes when its run is cancelled while waiting; null: it is deleted. Its attempts stay in the log. A
 * record that goes on waiting keeps its place in its line (`order.ts`), which may be another one than before.
 */
export function returned(
  before: RecordBefore,
  { isHeldBack }: Pick<PlaceInLine, "isHeldBack">,
  { now, orderedNow }: Moment,
): ReturnedRecord | null {
  if (before.state === "NONE") return null;
  if (before.state !== "PENDING") return { ...before, finishedAt: orderedNow };
  return { ...before, nextAttemptAt: isHeldBack ? null : (before.nextAttemptAt ?? now), finishedAt: null };
}

/** As a store keeps it. */
export const beforeText = (before: RecordBefore): string => JSON.stringify(before);
export const beforeOf = (text: string | null): RecordBefore | null => (text === null ? null : JSON.parse(text));
