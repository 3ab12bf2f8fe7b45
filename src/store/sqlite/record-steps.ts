import type { Database } from "bun:sqlite";
import { and, eq, sql } from "drizzle-orm";
import type { BunSQLiteDatabase } from "drizzle-orm/bun-sqlite";
import type { JsonText } from "../../domain/event.ts";
import type { FailureCode } from "../../domain/failure.ts";
import { encodeEventId } from "../../lib/id.ts";
import { bytesBeside, type Step } from "../steps.ts";
import { type PayloadPart, payloadStart } from "../store.ts";
import { isDamage, isWhole, lostTail, unlessDamaged } from "./damage.ts";
import { jsonTextSql, wholeLabel } from "./replay-rows.ts";
import * as t from "./schema.ts";
import type { OwnStepParams } from "./step.ts";

/** Where a record lies; both fields are in every index that a list walks along. */
export interface RecordPlace {
  key: number;
  eventSeq: number;
}

/** A record as the tables store it. */
export interface RecordRow {
  eventSeq: number;
  idTail: Uint8Array;
  payload?: Uint8Array | null;
  checksum?: number | null;
  payloadErased: number | null;
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
  orderingKey?: string | null;
  /** Id of the event whose delivery it is held back by; null unless payloads are read, too. */
  heldBackBy?: string | null;
  replayGroupId: JsonText | null;
  /** 1: a part of it, at least the payload, is on a damaged page; `idTail` is zeros when it is lost, too. */
  unreadable?: 1 | null;
}

export interface RecordStepParams extends OwnStepParams<RecordPlace> {
  /** Records in another state are skipped: they have moved on since the list was fixed. */
  state: number | null;
  /** Records with another error code are skipped, too. */
  errorCode: FailureCode | null;
  payload: PayloadPart;
}

const recordColumns = (payload: string, label: string) => `
  d.event_seq as eventSeq, event.id_tail as idTail, ${payload}
  length(event.payload) = 0 as payloadErased, webhook.url, d.state, d.attempts,
  d.attempts_forgotten as attemptsForgotten, d.last_attempt_at as lastAttemptAt,
  d.last_duration_ms as lastDurationMs, d.next_attempt_at as nextAttemptAt,
  d.error_reason as errorReason, d.error_code as errorCode, d.status_code as statusCode, event.type,
  case when replay.key is not null then ${jsonTextSql(label)} end as replayGroupId`;
const recordJoins = `
  join event on event.seq = d.event_seq
  left join webhook on webhook.key = d.webhook_key
  left join replay on replay.key = d.replay_key`;

/** Stored after the payload. */
const orderingKey = "event.ordering_key as orderingKey,";
/** The length of a payload is stored before it, so a long one is not touched. */
const start = `iif(length(event.payload) <= ${payloadStart.ofAtMost}, substr(event.payload, 1, ${payloadStart.bytes}), null) as payload,`;
const short = `iif(length(event.payload) <= ?2, event.payload, null) as payload, event.checksum, ${orderingKey}`;

/** A thousand of the largest payloads are 256 MB that SQLite need not touch: it reads a row up to the last requested column. */
const recordSql = (payload: PayloadPart) => `
  select ${recordColumns({ whole: `event.payload, event.checksum, ${orderingKey}`, start, none: "" }[payload], wholeLabel)}
  from delivery d ${recordJoins} where d.key = ?1 and d.tenant_key = ?2`;

/**
 * Many records in the order of their keys, in one statement: half the time of one statement for each. Long values in them are
 * not read; such a record is flagged as long.
 */
const shortRecordsSql = (payload: PayloadPart) => `
  select ${recordColumns({ whole: short, start, none: "" }[payload], "replay.label")},
         ${payload === "whole" ? "length(event.payload) > ?2 or" : ""} length(replay.label) > ?2 or replay.label_key is not null as isLong,
         d.key
  from json_each(?1) as list cross join delivery d on d.key = list.value and d.tenant_key = ?3 ${recordJoins}`;

/** The head of the line in which a record is held back. By itself, so that damage to the head is none to the record. */
const headSql = `
  select head.event_seq as eventSeq, event.id_tail as idTail from delivery d
  join delivery head on head.webhook_key = d.webhook_key and head.order_hash = d.order_hash
    and head.state = 0 and head.order_hash is not null and head.next_attempt_at is not null
  join event on event.seq = head.event_seq
  where d.key = ?1`;

type Head = Pick<RecordRow, "eventSeq" | "idTail">;

const sqlsOf = (payload: PayloadPart) => ({ one: recordSql(payload), many: shortRecordsSql(payload) });
const recordSqls: Readonly<Record<PayloadPart, ReturnType<typeof sqlsOf>>> = {
  whole: sqlsOf("whole"),
  start: sqlsOf("start"),
  none: sqlsOf("none"),
};

type ShortRecordRow = RecordRow & { isLong: number | null; key: number };

const columnsOfDelivery = {
  eventSeq: t.delivery.eventSeq,
  url: t.webhook.url,
  state: t.delivery.state,
  attempts: t.delivery.attempts,
  attemptsForgotten: t.delivery.attemptsForgotten,
  lastAttemptAt: t.delivery.lastAttemptAt,
  lastDurationMs: t.delivery.lastDurationMs,
  nextAttemptAt: t.delivery.nextAttemptAt,
  errorReason: t.delivery.errorReason,
  errorCode: t.delivery.errorCode,
  statusCode: t.delivery.statusCode,
  replayGroupId: sql<JsonText | null>`case when ${t.replay.key} is not null then ${sql.raw(jsonTextSql(wholeLabel))} end`,
};

/** The row, without its payload if that has changed. Every row has the same columns in the same order, as `packStep` needs. */
function withWholePayload(
  { payload = null, checksum = null, orderingKey = null, heldBackBy = null, unreadable = null, ...row }: RecordRow,
  part: PayloadPart,
): RecordRow {
  const isDamaged = part === "whole" && payload !== null && !isWhole(payload, checksum);
  return {
    eventSeq: row.eventSeq,
    idTail: row.idTail,
    payload: isDamaged ? null : payload,
    payloadErased: row.payloadErased,
    url: row.url,
    state: row.state,
    attempts: row.attempts,
    attemptsForgotten: row.attemptsForgotten,
    lastAttemptAt: row.lastAttemptAt,
    lastDurationMs: row.lastDurationMs,
    nextAttemptAt: row.nextAttemptAt,
    errorReason: row.errorReason,
    errorCode: row.errorCode,
    statusCode: row.statusCode,
    type: row.type,
    orderingKey,
    heldBackBy,
    replayGroupId: row.replayGroupId,
    unreadable: isDamaged ? 1 : unreadable,
  };
}

/** Reads records a step at a time; damage in one does not affect the others. */
export function createRecordSteps(db: BunSQLiteDatabase & { $client: Database }) {
  /** A damaged record, from its delivery row or else from the indexes; null when it has been erased in the meantime. */
  function whatIsLeftOf(tenantKey: number, { key, eventSeq }: RecordPlace): RecordRow | null {
    const event = unlessDamaged(() =>
      db.select({ idTail: t.event.idTail, type: t.event.type }).from(t.event).where(eq(t.event.seq, eventSeq)).get(),
    );
    const idTail = event?.idTail ?? lostTail;
    try {
      const record = db
        .select(columnsOfDelivery)
        .from(t.delivery)
        .leftJoin(t.webhook, eq(t.webhook.key, t.delivery.webhookKey))
        .leftJoin(t.replay, eq(t.replay.key, t.delivery.replayKey))
        .where(and(eq(t.delivery.key, key), eq(t.delivery.tenantKey, tenantKey)))
        .get();
      return record ? { ...record, idTail, payloadErased: 0, type: event?.type ?? null, unreadable: 1 } : null;
    } catch (error) {
      if (!isDamage(error)) throw error;
    }
    const { url } = webhookInIndex(tenantKey, eventSeq, key) ?? { url: null };
    const state = [t.statePending, t.stateDelivered, t.stateSkipped].find((state) =>
      isInStateIndex(tenantKey, state, eventSeq, key),
    );
    const unknown = {
      attempts: 0,
      attemptsForgotten: 0,
      lastAttemptAt: null,
      lastDurationMs: null,
      nextAttemptAt: null,
      replayGroupId: null,
      payloadErased: 0,
    };
    return {
      ...{ eventSeq, idTail, url, state: state ?? t.stateFailed, ...unknown },
      ...{ errorReason: null, errorCode: null, statusCode: null, type: null, unreadable: 1 },
    };
  }

  const webhookInIndex = (tenantKey: number, eventSeq: number, key: number) =>
    unlessDamaged(() =>
      db.get<{ url: string } | null>(
        sql`select url from webhook where key = (select webhook_key from delivery indexed by delivery_by_tenant
            where tenant_key = ${tenantKey} and filed = 1 and event_seq = ${eventSeq} and key = ${key})`,
      ),
    );

  const isInStateIndex = (tenantKey: number, state: number, eventSeq: number, key: number): boolean =>
    !!unlessDamaged(() =>
      db.get(
        sql`select 1 from delivery indexed by delivery_by_state
            where tenant_key = ${tenantKey} and filed = 1 and state = ${state} and event_seq = ${eventSeq} and key = ${key}`,
      ),
    );

  const headBefore = (key: number): string | null => {
    const head = unlessDamaged(() => db.$client.query<Head, [number]>(headSql).get(key));
    return head ? encodeEventId(head.eventSeq, head.idTail) : null;
  };

  function readOne(sqlOfOne: string, tenantKey: number, place: RecordPlace): RecordRow | null {
    const whole = unlessDamaged(() =>
      db.$client.query<RecordRow, [number, number]>(sqlOfOne).get(place.key, tenantKey),
    );
    return whole ?? whatIsLeftOf(tenantKey, place);
  }

  return function readRecords(step: RecordStepParams): Step<RecordRow> {
    const { tenantKey, state, errorCode, payload, keys: places, bytes } = step;
    const { one, many } = recordSqls[payload];
    const keys = JSON.stringify(places.map(({ key }) => key));
    const found = unlessDamaged(() =>
      db.$client
        .query<ShortRecordRow, [string, number, number]>(many)
        .all(keys, Math.floor(bytes / places.length), tenantKey),
    );
    const short = new Map(found?.map((row) => [row.key, row]));
    const rows: RecordRow[] = [];
    let size = 0;
    for (const [n, place] of places.entries()) {
      const { isLong = 1, key: _, ...asFound } = short.get(place.key) ?? {};
      const row = isLong ? readOne(one, tenantKey, place) : (asFound as RecordRow);
      if (row === null || (state !== null && row.state !== state)) continue;
      if (errorCode !== null && row.errorCode !== errorCode) continue;
      const isHeldBack = payload === "whole" && row.state === t.statePending && row.nextAttemptAt === null;
      rows.push(withWholePayload(isHeldBack ? { ...row, heldBackBy: headBefore(place.key) } : row, payload));
      size += bytesBeside + (row.payload?.length ?? 0) + (row.replayGroupId?.length ?? 0);
      if (size >= bytes) return { rows, taken: n + 1 };
    }
    return { rows, taken: places.length };
  };
}
