import type { EventRecord } from "../domain.ts";
import { formatIso, formatIsoOrNull } from "../lib/iso-time.ts";
import type { RecordPage } from "../store/store.ts";

/** Payloads were proven to be UTF-8 as they came in; a byte order mark inside would be the tenant's own. */
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * The JSON text of a record: the specified fields in the order of the specification, then ours. It is put together by
 * hand because `originalPayload` is the very text that the tenant submitted, never parsed and written again.
 */
export function recordJson(record: EventRecord, tenantId: string): string {
  const before = JSON.stringify({
    eventId: record.eventId,
    tenantId,
    state: record.state,
    ingestionTimestamp: formatIso(record.ingestedAt),
    targetWebhook: record.targetWebhook,
    errorReason: record.errorReason,
  });
  const after = JSON.stringify({
    attempts: record.attempts,
    ...(record.attemptsForgotten > 0 && { attemptsForgotten: record.attemptsForgotten }),
    lastAttemptAt: formatIsoOrNull(record.lastAttemptAt),
    nextAttemptAt: record.state === "PENDING" ? formatIsoOrNull(record.nextAttemptAt) : null,
    replayGroupId: record.replayGroupId,
    ...(record.unreadable && { unreadable: true }),
  });
  const payload = record.payload === null ? "null" : utf8.decode(record.payload);
  return `${before.slice(0, -1)},"originalPayload":${payload},${after.slice(1)}`;
}

export const recordsJson = (records: readonly EventRecord[], tenantId: string): string =>
  `[${records.map((record) => recordJson(record, tenantId)).join(",")}]`;

/** @param isFiltered whether a filter was given: only then may `total` be less than exact, and the page says whether it is */
export function pageJson(page: RecordPage, tenantId: string, { isFiltered }: { isFiltered: boolean }): string {
  const exactness = isFiltered ? `,"totalIsExact":${page.totalIsExact}` : "";
  const events = page.totalEvents === undefined ? "" : `,"totalEvents":${page.totalEvents}`;
  return `{"events":${recordsJson(page.records, tenantId)},"total":${page.total}${exactness}${events}}`;
}
