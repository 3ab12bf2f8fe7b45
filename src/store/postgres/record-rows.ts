import { type Attempt, type DeliveryState, deliveryStates } from "../../domain/delivery.ts";
import type { EventRecord } from "../../domain/event.ts";
import { codeOfAttempt, type FailureCode } from "../../domain/failure.ts";
import { encodeEventId, ingestedAtMs } from "../../lib/id.ts";
import { toHead } from "../attempt-heads.ts";
import type { Cursor } from "../cursor.ts";
import { cursorInSteps } from "../steps.ts";
import { type PayloadPart, payloadStart } from "../store.ts";
import { bounded, readBounded } from "./bounded-read.ts";
import { heldBack } from "./event-schema.ts";
import { labelJoins, labelOf, wholeLabel } from "./labels.ts";
import { arrayText } from "./parameters.ts";
import type { Pool } from "./pool.ts";
import type { RecordPlace } from "./record-walks.ts";

/** Records and attempts as they are listed, once their places are known. */

const recordColumns = `webhook_key, attempts, attempts_forgotten, last_attempt_at, last_duration_ms, error_reason, error_code,
  status_code, replay_key`;

/** A record, wherever it is: within one statement it is either in the queue or in history, never in both. */
const recordText = `
  select ${recordColumns}, 0::smallint as state, nullif(next_attempt_at, 0) as next_attempt_at,
      case when owner = ${heldBack} then order_hash end as held_back_in from pending
    where tenant_key = $2::bigint and event_seq = place.event_seq and key = place.key
  union all
  select ${recordColumns}, state, null, null from delivery
    where tenant_key = $2::bigint and event_seq = place.event_seq and key = place.key`;

const payloadColumns: Readonly<Record<PayloadPart, string>> = {
  whole: 'payload, ordering_key as "orderingKey", head.seq::float8 as "headSeq", head.id_tail as "headTail", ',
  start: `case when octet_length(payload) <= ${payloadStart.ofAtMost}
    then substring(payload from 1 for ${payloadStart.bytes}) end as payload, `,
  none: "",
};

/** The head of the line in which a record is held back. */
const headJoin = `
  left join lateral (
    select seq, head_event.id_tail from pending head
    join event head_event on head_event.seq = head.event_seq and head_event.tenant_key = head.tenant_key
    where head.webhook_key = r.webhook_key and head.order_hash = r.held_back_in
      and head.order_hash is not null and head.owner is distinct from ${heldBack} limit 1) head on true`;

/** The limit keeps the planner from beginning with all the events of the tenant, as it would while there are few. */
export const recordsText = (part: PayloadPart): string =>
  bounded(`
  select n::int as n, coalesce(octet_length(${wholeLabel}), 0)${part === "whole" ? " + octet_length(payload)" : ""} as size,
    place.event_seq::float8 as "eventSeq", event.id_tail as "idTail", ${payloadColumns[part]}"payloadErased", url, state, attempts,
    attempts_forgotten as "attemptsForgotten", last_attempt_at::float8 as "lastAttemptAt",
    last_duration_ms as "lastDurationMs",
    next_attempt_at::float8 as "nextAttemptAt", error_reason as "errorReason", error_code as "errorCode",
    status_code as "statusCode", type, ${wholeLabel} as label
  from unnest($3::bigint[], $4::bigint[]) with ordinality as place (event_seq, key, n)
  cross join lateral (${recordText}) r
  cross join lateral (
    select id_tail, payload, octet_length(payload) = 0 as "payloadErased", type, ordering_key from event where seq = place.event_seq and tenant_key = $2::bigint limit 1) event
  left join webhook on webhook.tenant_key = $2::bigint and webhook.key = r.webhook_key
  ${labelJoins("$2::bigint", "r.replay_key")}${part === "whole" ? headJoin : ""}
  where ($5::smallint is null or state = $5::smallint) and ($6::text is null or error_code = $6::text)`);

const textsOfRecords: Readonly<Record<PayloadPart, string>> = {
  whole: recordsText("whole"),
  start: recordsText("start"),
  none: recordsText("none"),
};

interface RecordRow {
  eventSeq: number;
  idTail: Uint8Array;
  payload?: Uint8Array | null;
  payloadErased: boolean;
  orderingKey?: string | null;
  headSeq?: number | null;
  headTail?: Uint8Array | null;
  url: string | null;
  state: number;
  attempts: number;
  attemptsForgotten: number;
  lastAttemptAt: number | null;
  lastDurationMs: number | null;
  nextAttemptAt: number | null;
  errorReason: string | null;
  errorCode: FailureCode | null;
  statusCode: number | null;
  type: string | null;
  label: string | null;
}

export interface RecordList {
  readonly tenantKey: number;
  /** Records in another state are skipped: they have moved on since the list was fixed. */
  readonly state?: DeliveryState | undefined;
  /** Records with another code are skipped, too. */
  readonly errorCode?: FailureCode | undefined;
  readonly payload: PayloadPart;
}

type Reads = Pick<Pool, "read">;

export function recordsAt(
  pool: Reads,
  places: readonly RecordPlace[],
  { tenantKey, state, errorCode, payload }: RecordList,
): Cursor<EventRecord> {
  const text = textsOfRecords[payload];
  return cursorInSteps(
    places,
    (step) =>
      readBounded<RecordRow>(pool, text, step, [
        tenantKey,
        arrayText(step.keys.map(({ eventSeq }) => eventSeq)),
        arrayText(step.keys.map(({ key }) => key)),
        state === undefined ? null : deliveryStates.indexOf(state),
        errorCode ?? null,
      ]),
    toRecord,
  );
}

const utf8 = new TextEncoder();

const toRecord = (row: RecordRow): EventRecord => ({
  eventId: encodeEventId(row.eventSeq, row.idTail),
  state: deliveryStates[row.state] ?? "FAILED",
  ingestedAt: ingestedAtMs(row.eventSeq),
  type: row.type,
  orderingKey: row.orderingKey ?? null,
  targetWebhook: row.url ?? "",
  errorReason: row.errorReason,
  errorCode: row.errorCode,
  statusCode: row.statusCode,
  payload: row.payloadErased ? null : (row.payload ?? null),
  ...(row.payloadErased && { payloadErased: true }),
  attempts: row.attempts,
  attemptsForgotten: row.attemptsForgotten,
  lastAttemptAt: row.lastAttemptAt,
  lastDurationMs: row.lastDurationMs,
  nextAttemptAt: row.nextAttemptAt,
  ...(row.headSeq && row.headTail && { heldBackBy: encodeEventId(row.headSeq, row.headTail) }),
  replayGroupId: row.label === null ? null : utf8.encode(row.label),
});

/** Uses labels as cut in the row of their replay. */
export const attemptsText = bounded(`
  select n::int as n, coalesce(octet_length(response_body), 0) + coalesce(octet_length(answer_head), 0) as size, url as "targetWebhook", number,
    started_at::float8 as "startedAt", duration_ms as "durationMs", status_code as "statusCode", error,
    error_code as "errorCode", response_body as "responseBody", answer_head as "answerHead",
    replay.label,
    replay.label_key is not null as "isReplayGroupIdCut"
  from unnest($4::bigint[]) with ordinality as place (key, n)
  join attempt on attempt.event_seq = $3::bigint and attempt.tenant_key = $2::bigint and attempt.key = place.key
  join webhook on webhook.tenant_key = $2::bigint and webhook.key = attempt.webhook_key
  left join replay on replay.tenant_key = $2::bigint and replay.key = attempt.replay_key`);

interface AttemptRow extends Omit<Attempt, "responseBody" | "answerHead" | "replayGroupId"> {
  readonly responseBody: Uint8Array | null;
  readonly answerHead: string | null;
  readonly label: string | null;
}

export const attemptsAt = (
  pool: Reads,
  keys: readonly number[],
  { tenantKey, eventSeq }: { tenantKey: number; eventSeq: number },
): Cursor<Attempt> =>
  cursorInSteps(
    keys,
    (step) => readBounded<AttemptRow>(pool, attemptsText, step, [tenantKey, eventSeq, arrayText(step.keys)]),
    toAttempt,
  );

const bodies = new TextDecoder();

const toAttempt = (row: AttemptRow): Attempt => ({
  targetWebhook: row.targetWebhook,
  number: row.number,
  startedAt: row.startedAt,
  durationMs: row.durationMs,
  statusCode: row.statusCode,
  error: row.error,
  errorCode: codeOfAttempt(row),
  responseBody: bodies.decode(row.responseBody ?? undefined),
  answerHead: toHead(row.answerHead),
  replayGroupId: row.label === null ? null : labelOf(row.label),
  isReplayGroupIdCut: row.isReplayGroupIdCut,
});
