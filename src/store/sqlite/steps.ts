import type { Database } from "bun:sqlite";
import type { BunSQLiteDatabase } from "drizzle-orm/bun-sqlite";
import type { JsonText } from "../../domain/event.ts";
import type { FailureCode } from "../../domain/failure.ts";
import { listedLabelCharacters } from "../../domain/replay.ts";
import type { Cursor } from "../store.ts";
import type { Queries } from "./queries.ts";
import type { Reader } from "./reader.ts";
import { createRecordSteps } from "./record-steps.ts";
import { jsonTextSql, type ListedReplayRow, listedReplayColumns } from "./replay-rows.ts";

/** Which rows of a list come next, and how much of them. */
export interface StepParams<Key = number> {
  keys: readonly Key[];
  bytes: number;
}

/** Rows in the order of their keys. */
export interface Step<Row> {
  rows: Row[];
  /** Keys that were looked at, those that are gone among them. */
  taken: number;
}

/** A row of a step, whose columns go from thread to thread. */
export type StepRow = Record<string, string | number | Uint8Array | null>;

/** What a row takes beside its texts and bytes. */
export const bytesBeside = 300;

function sizeOf(row: StepRow): number {
  let size = bytesBeside;
  for (const value of Object.values(row)) if (value !== null && typeof value !== "number") size += value.length;
  return size;
}

/**
 * Reads rows one by one, by their keys, until they are as large as was asked for: in one statement for all of them SQLite
 * would hold every row for sorting, with its payload.
 */
function readStep<Row>(client: Database, sql: string, { keys, bytes }: StepParams) {
  const statement = client.query<Row & StepRow, [number]>(sql);
  const rows: Row[] = [];
  let size = 0;
  let taken = 0;
  for (const key of keys) {
    taken += 1;
    const row = statement.get(key);
    if (row === null) continue;
    rows.push(row);
    size += sizeOf(row);
    if (size >= bytes) break;
  }
  return { rows, taken } satisfies Step<Row>;
}

export interface AttemptRow {
  targetWebhook: string;
  number: number;
  startedAt: number;
  durationMs: number;
  statusCode: number | null;
  error: string | null;
  errorCode: FailureCode | null;
  responseBody: Uint8Array | null;
  label: string | null;
  labelKey: number | null;
}

/** Of labels that are older than `replay_label`, more than is shown, so that it is seen that they are longer. */
const beginBytes = 4 * (listedLabelCharacters + 1);

const attemptSql = `
  select webhook.url as targetWebhook, a.number, a.started_at as startedAt, a.duration_ms as durationMs,
         a.status_code as statusCode, a.error, a.error_code as errorCode, a.response_body as responseBody,
         cast(substr(cast(replay.label as blob), 1, ${beginBytes}) as text) as label, replay.label_key as labelKey
  from attempt a
  join webhook on webhook.key = a.webhook_key
  left join replay on replay.key = a.replay_key
  where a.key = ?1`;

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
  from inbox_delivery where key = ?1`;

const replaySql = `select ${listedReplayColumns} from replay where key = ?1`;

/** The reads of lists, a step at a time; among the others in `queries.ts`. */
export const stepQueries = (db: BunSQLiteDatabase & { $client: Database }, client = db.$client) => ({
  records: createRecordSteps(db),
  attempts: (step: StepParams) => readStep<AttemptRow>(client, attemptSql, step),
  replays: (step: StepParams) => readStep<ListedReplayRow>(client, replaySql, step),
  inboxDeliveries: (step: StepParams) => readStep<InboxRow>(client, inboxSql, step),
});

type StepName = keyof ReturnType<typeof stepQueries>;
type ParamsOf<Name extends StepName> = Parameters<Queries[Name]>[0];
type RowOf<Name extends StepName> = ReturnType<Queries[Name]>["rows"][number];

/** So much may be read on the event loop: under 1 ms. */
const shortStepBytes = 64 * 1024;

/** So many rows are sent from thread to thread, and made into text, in a few ms. */
const mostRows = 500;

/** And so many are looked at, at least. */
const fewestRows = 8;

/** How large rows are taken to be before one was seen. */
const usualRowBytes = 512;

export interface StepSources {
  queries: Queries;
  reader: Reader;
}

/**
 * The list of these keys.
 * @param isNear the rows are likely to be in memory: a short step of them is not worth a way to the other thread
 */
export function cursorOver<Name extends StepName, Entry>(
  { queries, reader }: StepSources,
  name: Name,
  {
    keys,
    isNear,
    ...filter
  }: { keys: ParamsOf<Name>["keys"]; isNear: boolean } & Omit<ParamsOf<Name>, keyof StepParams>,
  toEntry: (row: RowOf<Name>) => Entry,
): Cursor<Entry> {
  let at = 0;
  let rowBytes = usualRowBytes;

  async function read(bytes: number): Promise<Step<RowOf<Name>>> {
    // Where rows are large, no more are looked at than a step may take.
    const rows = Math.min(mostRows, Math.max(fewestRows, Math.floor(bytes / rowBytes)));
    const params = { ...filter, keys: keys.slice(at, at + rows), bytes } as unknown as ParamsOf<Name>;
    if (!isNear || bytes > shortStepBytes) return (await reader.run(name, params)) as Step<RowOf<Name>>;
    const query = queries[name] as unknown as (params: ParamsOf<Name>) => Step<RowOf<Name>>;
    return query(params);
  }

  return {
    async next(bytes) {
      while (at < keys.length) {
        const { rows, taken } = await read(bytes);
        at += taken;
        rowBytes = Math.max(usualRowBytes, bytes / (4 * taken));
        if (rows.length > 0) return rows.map(toEntry);
      }
      return [];
    },
    get ended() {
      return at >= keys.length;
    },
  };
}
