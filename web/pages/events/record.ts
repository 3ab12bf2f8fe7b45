import type { EventPage, EventRecord } from "../../api/types.ts";
import { count } from "../../format/number.ts";

/** A record as the list holds it: without its payload, which may be a quarter of a megabyte. */
export type ListedRecord = Omit<EventRecord, "originalPayload">;

export type Pair = Pick<ListedRecord, "eventId" | "targetWebhook">;

/** Identifies a record: there is one for each event and webhook. */
export const pairOf = ({ eventId, targetWebhook }: Pair): string => `${eventId} ${targetWebhook}`;

export function withoutPayload({ originalPayload, ...record }: EventRecord): ListedRecord {
  if (originalPayload === null) return record;
  return { ...record, payloadStart: JSON.stringify(originalPayload).slice(0, longestStart) };
}

/**
 * Which of an event's deliveries is meant: that of the row which led to it, otherwise the first that is not delivered.
 * @param followed the row's pair
 */
export const meantOf = <T extends Pair & { readonly state: string }>(
  records: readonly T[],
  followed: string,
): T | undefined =>
  records.find((record) => pairOf(record) === followed) ??
  records.find(({ state }) => state !== "DELIVERED") ??
  records[0];

/** As much as the server keeps. */
const longestStart = 200;

/** One page of records as it was read. */
export interface Listed {
  readonly records: readonly ListedRecord[];
  readonly total: number;
  readonly totalIsExact: boolean;
  /** The account's total; null: the list shows only some of them. */
  readonly totalEvents: number | null;
  /** For a search: the time down to which it looked; null: it looked at everything. */
  readonly searchedTo: string | null;
  /** When it was read, in ms: what "the last hour" meant. */
  readonly readAt: number;
  /** The time of the first record on the first page, up to which it is read again, so that no row moves. */
  readonly held: string;
  /** The newest event at the time somebody asked for what is new; anything newer has arrived since. */
  readonly newestId: string;
}

/** @param before a list being read again up to its own first record */
export function toListed(
  { events, total, totalIsExact = true, totalEvents, searchedTo = null }: EventPage,
  isFirstPage: boolean,
  before: Listed | undefined,
): Omit<Listed, "readAt"> {
  const records = events.map(withoutPayload);
  const [first] = records;
  const counts = { total, totalIsExact, searchedTo };
  if (!before || before.held === "") {
    const held = isFirstPage ? (first?.ingestionTimestamp ?? "") : "";
    return { records, ...counts, totalEvents: totalEvents ?? null, held, newestId: first?.eventId ?? "" };
  }
  // A count up to a time stops at a limit; that of the whole list does not, and may have gone further.
  if (!totalIsExact && searchedTo === null && total < before.total) return { ...before, records };
  // More may belong to it by now: what is replayed is counted anew.
  return { ...before, records, ...counts, totalEvents: total === before.total ? before.totalEvents : null };
}

/** Records are not events: there is one for each webhook that receives the event. */
export const deliveriesInWords = (n: number): string => `${count(n)} ${n === 1 ? "delivery" : "deliveries"}`;

export const attemptsInWords = (attempts: number): string => (attempts === 1 ? "1 attempt" : `${attempts} attempts`);

/**
 * The row that news about a record belongs to. One without a webhook becomes that of the webhook to which it is replayed.
 */
export const findRow = (rows: readonly ListedRecord[], about: Pair): ListedRecord | undefined =>
  rows.find((row) => row.eventId === about.eventId && row.targetWebhook === about.targetWebhook) ??
  rows.find((row) => row.eventId === about.eventId && row.targetWebhook === "");

/**
 * The rows after the records of one event were read again. A replay replaces records of webhooks that are gone: their
 * rows become those of the new ones, so that no row moves.
 */
export function withFresh(rows: readonly ListedRecord[], fresh: readonly ListedRecord[]): ListedRecord[] {
  const shown = new Set(rows.map(pairOf));
  const unshown = fresh.filter((record) => !shown.has(pairOf(record)));
  return rows.map((row) => {
    if (row.eventId !== fresh[0]?.eventId) return row;
    return fresh.find((record) => pairOf(record) === pairOf(row)) ?? unshown.shift() ?? row;
  });
}

type News = Readonly<Record<string, unknown>>;

const textOrNull = (value: unknown): string | null => (typeof value === "string" ? value : null);

const numberOrNull = (value: unknown): number | null => (typeof value === "number" ? value : null);

/** The record that a delivery message is about. */
export const aboutOf = ({ eventId, targetWebhook }: News) => ({
  eventId: String(eventId),
  targetWebhook: String(targetWebhook),
});

/** `delivery.attempted`, as far as it concerns a record. */
export type Attempted = ReturnType<typeof attemptedOf>;

export const attemptedOf = (news: News) => ({
  ...aboutOf(news),
  number: Number(news.number),
  startedAt: String(news.startedAt),
  durationMs: numberOrNull(news.durationMs),
  error: textOrNull(news.error),
  errorCode: textOrNull(news.errorCode),
  statusCode: numberOrNull(news.statusCode),
  nextAttemptAt: textOrNull(news.nextAttemptAt),
  replayGroupId: textOrNull(news.replayGroupId),
});

/** `delivery.finished` */
export type Finished = ReturnType<typeof finishedOf>;

export const finishedOf = (news: News) => ({
  ...aboutOf(news),
  state: String(news.state),
  errorReason: textOrNull(news.errorReason),
  errorCode: textOrNull(news.errorCode),
  statusCode: numberOrNull(news.statusCode),
  attempts: Number(news.attempts),
  replayGroupId: textOrNull(news.replayGroupId),
});

/**
 * The record after an attempt. Only `delivery.finished` says whether the run ended: the attempt may belong to an earlier
 * one.
 */
export function afterAttempt(record: ListedRecord, attempt: Attempted): ListedRecord {
  if (attempt.number <= record.attempts) return record;
  const { targetWebhook, number: attempts, startedAt: lastAttemptAt, durationMs: lastDurationMs } = attempt;
  const { heldBack: _, heldBackBy: _by, ...sent } = record;
  const counted = { ...sent, targetWebhook, attempts, lastAttemptAt, lastDurationMs };
  if (attempt.nextAttemptAt === null) return counted;
  return {
    ...counted,
    state: "PENDING",
    errorReason: attempt.error,
    errorCode: attempt.errorCode,
    statusCode: attempt.statusCode,
    nextAttemptAt: attempt.nextAttemptAt,
    replayGroupId: attempt.replayGroupId,
  };
}

export function afterRun(record: ListedRecord, finished: Finished): ListedRecord {
  if (finished.attempts < record.attempts) return record;
  const { targetWebhook, state, errorReason, errorCode, statusCode, attempts, replayGroupId } = finished;
  const why = { errorReason, errorCode, statusCode };
  const { heldBack: _, heldBackBy: _by, ...sent } = record;
  return { ...sent, ...why, targetWebhook, state, attempts, replayGroupId, nextAttemptAt: null };
}

/**
 * The newer of two versions of a record: as read, and as updated by the stream. An attempt and what follows from it are
 * stored together, so a record read with as many attempts knows at least as much: except of the end of its run, if
 * another run's attempt was counted in between.
 */
export function newerOf(read: ListedRecord, told: ListedRecord | undefined): ListedRecord {
  if (told === undefined || told.attempts < read.attempts) return read;
  const isEndOfIt = read.state === "PENDING" && told.state !== "PENDING" && told.replayGroupId === read.replayGroupId;
  return told.attempts > read.attempts || isEndOfIt ? told : read;
}
