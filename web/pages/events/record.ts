import type { EventRecord } from "../../api/types.ts";
import { count } from "../../format/number.ts";

/** A record as the list holds it: without its payload, which may have a quarter of a megabyte. */
export type ListedRecord = Omit<EventRecord, "originalPayload">;

/** Names a record: there is one for each event and webhook. */
export const pairOf = ({ eventId, targetWebhook }: { eventId: string; targetWebhook: string }): string =>
  `${eventId} ${targetWebhook}`;

export function withoutPayload({ originalPayload, ...record }: EventRecord): ListedRecord {
  if (originalPayload === null) return record;
  return { ...record, payloadStart: JSON.stringify(originalPayload).slice(0, longestStart) };
}

/** As long as the server has it. */
const longestStart = 200;

/** One page of records as it was read. */
export interface Listed {
  readonly records: readonly ListedRecord[];
  readonly total: number;
  readonly totalIsExact: boolean;
  /** Of the account; null: the list is of some. */
  readonly totalEvents: number | null;
  /** Of a search: down to which time it looked; null: at all. */
  readonly searchedTo: string | null;
  /** When it was read, in ms: what "the last hour" meant. */
  readonly readAt: number;
  /** The time of the first record of the first page, up to which that is read again: so no row moves. */
  readonly held: string;
  /** The newest event when somebody asked for what is new; what is newer came since. */
  readonly newestId: string;
}

/** Records are not events: there is one for each webhook that gets the event. */
export const deliveriesInWords = (n: number): string => `${count(n)} ${n === 1 ? "delivery" : "deliveries"}`;

export const attemptsInWords = (attempts: number): string => (attempts === 1 ? "1 attempt" : `${attempts} attempts`);

/** The row that news of a record is about. One without a webhook becomes that of the webhook to which it is replayed. */
export const findRow = (
  rows: readonly ListedRecord[],
  about: Pick<ListedRecord, "eventId" | "targetWebhook">,
): ListedRecord | undefined =>
  rows.find((row) => row.eventId === about.eventId && row.targetWebhook === about.targetWebhook) ??
  rows.find((row) => row.eventId === about.eventId && row.targetWebhook === "");

/**
 * The rows after the records of one event were read again. A replay replaces records of webhooks that are gone: their rows
 * become those of the new ones, so that no row moves.
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

/** The record that a message of a delivery is about. */
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

/** The record after an attempt. Whether it ended the run is said by `delivery.finished`: it may have been of an earlier one. */
export function afterAttempt(record: ListedRecord, attempt: Attempted): ListedRecord {
  if (attempt.number <= record.attempts) return record;
  const { targetWebhook, number: attempts, startedAt: lastAttemptAt, durationMs: lastDurationMs } = attempt;
  const { heldBack: _, ...sent } = record;
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
  const { heldBack: _, ...sent } = record;
  return { ...sent, ...why, targetWebhook, state, attempts, replayGroupId, nextAttemptAt: null };
}

/**
 * Of a record that was read and the same as the stream has told it, the newer one. An attempt and what follows from it are
 * stored at once, so a record that was read with as many attempts knows at least as much.
 */
export const newerOf = (read: ListedRecord, told: ListedRecord | undefined): ListedRecord =>
  told !== undefined && told.attempts > read.attempts ? told : read;
