import type { Database } from "bun:sqlite";
import type { BunSQLiteDatabase } from "drizzle-orm/bun-sqlite";
import type { JsonText } from "../../domain/event.ts";
import type { FailureCode } from "../../domain/failure.ts";
import { listedLabelCharacters } from "../../domain/replay.ts";
import { createRecordSteps } from "./record-steps.ts";
import { jsonTextSql, type ListedReplayRow, listedReplayColumns } from "./replay-rows.ts";
import { type OwnStepParams, readStep } from "./step.ts";

export interface AttemptRow {
  targetWebhook: string;
  number: number;
  startedAt: number;
  durationMs: number;
  statusCode: number | null;
  error: string | null;
  errorCode: FailureCode | null;
  responseBody: Uint8Array | null;
  answerHead: string | null;
  label: string | null;
  labelKey: number | null;
}

/** Of labels older than `replay_label`, more is read than is shown, to tell that they are longer. */
const beginBytes = 4 * (listedLabelCharacters + 1);

const attemptSql = `
  select webhook.url as targetWebhook, a.number, a.started_at as startedAt, a.duration_ms as durationMs,
         a.status_code as statusCode, a.error, a.error_code as errorCode, a.response_body as responseBody,
         a.answer_head as answerHead,
         cast(substr(cast(replay.label as blob), 1, ${beginBytes}) as text) as label, replay.label_key as labelKey
  from attempt a
  join webhook on webhook.key = a.webhook_key
  left join replay on replay.key = a.replay_key
  where a.key = ?1 and a.tenant_key = ?2`;

export interface InboxRow {
  id: string;
  receivedAt: number;
  eventId: string;
  headers: string;
  body: JsonText;
  answeredStatus: number | null;
  isTest: number;
}

const inboxSql = `
  select id, received_at as receivedAt, event_id as eventId, headers, ${jsonTextSql("cast(body as text)")} as body,
         answered_status as answeredStatus, is_test as isTest
  from inbox_delivery where key = ?1 and tenant_key = ?2`;

const replaySql = `select ${listedReplayColumns} from replay where key = ?1 and tenant_key = ?2`;

/** The list reads, a step at a time; part of those in `queries.ts`. */
export const stepQueries = (db: BunSQLiteDatabase & { $client: Database }, client = db.$client) => ({
  records: createRecordSteps(db),
  attempts: (step: OwnStepParams) => readStep<AttemptRow>(client, attemptSql, step),
  replays: (step: OwnStepParams) => readStep<ListedReplayRow>(client, replaySql, step),
  inboxDeliveries: (step: OwnStepParams) => readStep<InboxRow>(client, inboxSql, step),
});
