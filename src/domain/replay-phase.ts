import { firstSeqAt } from "../lib/id.ts";
import { noRoom } from "./acceptance.ts";
import { type DomainError, notFound, rateLimited } from "./errors.ts";
import type { Moment } from "./moment.ts";
import type { Replay, ReplayPreview, ReplayStatus } from "./replay.ts";
import { payloadErased } from "./retention.ts";
import { accountGone } from "./standing.ts";

/**
 * A replay walks the events of its selection, oldest first, and remembers the last one: that cursor moves together with the
 * records, so no event is queued twice across a restart.
 *
 *   waiting ──its turn──▶ queueing ──last event──▶ queued ──every run ended──▶ completed
 *      └──────────────────────┴──────────────────────┴── cancelled, or its account deleted ──▶ cancelled
 *                                                               what waits returns to what it was before
 *
 * The replay of a single event is queued when it is made.
 */
export type ReplayPhase = "waiting" | "queueing" | "queued" | "completed" | "cancelled";

/** The status that the account sees. */
export const statusOfPhase: Readonly<Record<ReplayPhase, ReplayStatus>> = {
  waiting: "waiting",
  queueing: "running",
  queued: "running",
  completed: "completed",
  cancelled: "cancelled",
};

/** How many bulk replays an account may have. */
export interface ReplayLimits {
  /** Waiting and running. */
  readonly unfinished: number;
  /** Started within 24 hours, including cancelled ones; null: any number. */
  readonly perDay: number | null;
}

/** The bulk replays that an account already has. */
export interface BulkReplays {
  readonly unfinished: number;
  /** When the last one but (`perDay` - 1) was started; null: there are fewer. */
  readonly nthLastBegunAt: number | null;
}

const dayMs = 24 * 60 * 60 * 1000;

export type BulkReplayStart =
  | { readonly kind: "waiting"; readonly createdAt: number }
  | { readonly kind: "refused"; readonly error: DomainError };

/** Whether one more bulk replay may wait for its turn (rules, section 3). */
export function startBulkReplay(
  { gone }: { readonly gone: boolean },
  { unfinished, nthLastBegunAt }: BulkReplays,
  limits: ReplayLimits,
  mayGrow: boolean,
  { now, orderedNow }: Moment,
): BulkReplayStart {
  if (gone) return { kind: "refused", error: accountGone() };
  if (unfinished >= limits.unfinished) return { kind: "refused", error: tooManyReplays(limits.unfinished) };
  // Later than anything that has failed so far, even if the clock was set back since.
  const createdAt = Math.max(now, orderedNow);
  const { perDay } = limits;
  if (perDay !== null && nthLastBegunAt !== null && nthLastBegunAt > createdAt - dayMs) {
    return { kind: "refused", error: tooManyToday(perDay, nthLastBegunAt + dayMs - createdAt) };
  }
  return mayGrow ? { kind: "waiting", createdAt } : { kind: "refused", error: noRoom() };
}

export type SingleReplayStart =
  | { readonly kind: "queued"; readonly eventSeq: number }
  | { readonly kind: "refused"; readonly error: DomainError };

/** The event that is to be replayed. */
export interface ReplayedEvent {
  readonly seq: number;
  /** One of its records matches the filter. */
  readonly isSelected: boolean;
  /** There is no longer a payload to deliver. */
  readonly payloadErased: boolean;
}

/** Whether one event is replayed, immediately. @param event null: the account has no such event */
export function startSingleReplay(
  { gone }: { readonly gone: boolean },
  event: ReplayedEvent | null,
  mayGrow: boolean,
): SingleReplayStart {
  if (gone) return { kind: "refused", error: accountGone() };
  if (event === null) {
    return { kind: "refused", error: notFound("The account has no event with this eventId.", "event_not_found") };
  }
  if (!event.isSelected) return { kind: "refused", error: eventNotSelected() };
  if (event.payloadErased) return { kind: "refused", error: payloadErased() };
  return mayGrow ? { kind: "queued", eventSeq: event.seq } : { kind: "refused", error: noRoom() };
}

/** What a replay of one event would take. @param event null: the account has no such event */
export function previewOf(event: Pick<ReplayedEvent, "isSelected" | "payloadErased"> | null): ReplayPreview {
  if (!event?.isSelected) return { selected: 0, payloadsErased: 0 };
  return { selected: 1, payloadsErased: event.payloadErased ? 1 : 0 };
}

const eventNotSelected = () =>
  notFound(
    "The event has no record that the filters of the replay select; leave one of them out.",
    "event_not_selected",
  );

/** Ingestion times, both inclusive. */
export interface ReplayedTimes {
  readonly from?: number | undefined;
  readonly to?: number | undefined;
}

/** The events that a replay looks at: up to the last committed one, and none that arrives later. */
export function selectionOf(
  { from = 0, to = Number.POSITIVE_INFINITY }: ReplayedTimes,
  filter: ReplayedTimes,
  lastSeq: number,
): { fromSeq: number; toSeq: number } {
  const first = Math.max(from, filter.from ?? 0);
  const last = Math.min(to, filter.to ?? Number.POSITIVE_INFINITY);
  return { fromSeq: firstSeqAt(first), toSeq: Math.min(lastSeq, firstSeqAt(last + 1) - 1) };
}

/** How far a replay has come. */
export interface ReplayPlace {
  readonly phase: ReplayPhase;
  /** The last event that has been queued. */
  readonly cursorSeq: number;
  readonly completedAt: number | null;
}

/**
 * Moves on the replay whose turn it is.
 * @param events the next ones of its selection, at most as many as were asked for
 * @param lookedTo the last event that was looked at, if there were fewer
 */
export function advance(events: readonly number[], asked: number, toSeq: number, lookedTo = toSeq): ReplayPlace {
  const isShort = events.length < asked;
  const cursorSeq = isShort ? lookedTo : (events.at(-1) ?? lookedTo);
  return { phase: isShort && lookedTo >= toSeq ? "queued" : "queueing", cursorSeq, completedAt: null };
}

/**
 * Events not yet queued are left out, and those that wait return to what they were (`cancelled-run.ts`); the next replay
 * may begin while that happens, and while attempts in flight finish.
 */
export interface Cancellation extends ReplayPlace {
  /** There may be runs that wait. */
  readonly hasRuns: boolean;
}

/** Null: it has already ended. */
export const cancel = (
  { phase, cursorSeq }: Pick<ReplayPlace, "phase" | "cursorSeq">,
  now: number,
): Cancellation | null =>
  phase === "completed" || phase === "cancelled"
    ? null
    : { phase: "cancelled", cursorSeq, completedAt: now, hasRuns: phase !== "waiting" };

/** Everything is queued, and every run that it began has ended. */
export const isCompleted = ({
  phase,
  queued,
  delivered,
  failed,
  superseded,
}: Pick<Replay, "queued" | "delivered" | "failed" | "superseded"> & Pick<ReplayPlace, "phase">): boolean =>
  phase === "queued" && delivered + failed + superseded >= queued;

const tooManyReplays = (limit: number) =>
  rateLimited(
    `The account has ${limit} unfinished replays; wait for one to finish, or cancel one.`,
    "too_many_replays",
    10,
  );

const tooManyToday = (limit: number, waitMs: number) =>
  rateLimited(
    `An account may start ${limit} bulk replays in 24 hours; replay single events, or retry after the number of seconds in Retry-After.`,
    "too_many_replays_today",
    waitMs / 1000,
  );
