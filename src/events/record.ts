import type { EventRecord } from "../domain/event.ts";
import type { JsonList } from "../http/list-reply.ts";
import { formatIso, formatIsoOrNull } from "../lib/iso-time.ts";
import type { Cursor } from "../store/cursor.ts";
import type { PayloadPart, RecordPage } from "../store/store.ts";

/**
 * The JSON text of a record, in pieces: the specified fields in the order of the specification, then our own. It is assembled
 * by hand because `originalPayload` is the very text that the tenant submitted, never parsed and rewritten.
 */
export function recordPieces(
  record: EventRecord,
  tenantId: string,
  part: PayloadPart = "whole",
): (string | Uint8Array)[] {
  const before = JSON.stringify({
    eventId: record.eventId,
    tenantId,
    state: record.state,
    ingestionTimestamp: formatIso(record.ingestedAt),
    targetWebhook: record.targetWebhook,
    errorReason: record.errorReason,
  });
  const isWaiting = record.state === "PENDING";
  const isHeldBack = isWaiting && record.nextAttemptAt === null && !record.unreadable;
  const after = JSON.stringify({
    attempts: record.attempts,
    ...(record.attemptsForgotten > 0 && { attemptsForgotten: record.attemptsForgotten }),
    lastAttemptAt: formatIsoOrNull(record.lastAttemptAt),
    lastDurationMs: record.lastDurationMs,
    nextAttemptAt: isWaiting ? formatIsoOrNull(record.nextAttemptAt) : null,
    ...(isHeldBack && { heldBack: true, heldBackBy: record.heldBackBy }),
    errorCode: record.errorCode,
    statusCode: record.statusCode,
    eventType: record.type,
    ...(part === "start" && { payloadStart: startOf(record.payload) }),
    ...(record.orderingKey !== null && { orderingKey: record.orderingKey }),
  });
  return [
    `${before.slice(0, -1)},"originalPayload":`,
    (part === "whole" ? record.payload : null) ?? "null",
    `,${after.slice(1, -1)},"replayGroupId":`,
    record.replayGroupId ?? "null",
    record.payloadErased ? ',"payloadErased":true' : "",
    record.unreadable ? ',"unreadable":true}' : "}",
  ];
}

/** A character that was cut in half is left out. */
const startOf = (payload: Uint8Array | null): string | null =>
  payload && new TextDecoder().decode(payload, { stream: true });

export const recordList = (
  entries: Cursor<EventRecord>,
  tenantId: string,
  part: PayloadPart = "whole",
): JsonList<EventRecord> => ({
  before: "[",
  entries,
  write: (record) => recordPieces(record, tenantId, part),
  after: "]",
});

/** @param isFiltered whether a filter was given: only then may `total` be inexact, and the page says whether it is exact */
export function pageList(
  { records, total, totalIsExact, totalEvents, searchedTo }: RecordPage,
  tenantId: string,
  { isFiltered, payload }: { isFiltered: boolean; payload: PayloadPart },
): JsonList<EventRecord> {
  const exactness = isFiltered ? `,"totalIsExact":${totalIsExact}` : "";
  const events = totalEvents === undefined ? "" : `,"totalEvents":${totalEvents}`;
  const searched = searchedTo === undefined ? "" : `,"searchedTo":${JSON.stringify(formatIsoOrNull(searchedTo))}`;
  const after = `],"total":${total}${exactness}${searched}${events}}`;
  return { ...recordList(records, tenantId, payload), before: '{"events":[', after };
}
