import type { DeliveryState } from "../../domain/delivery.ts";
import type { FailureSelection } from "../../domain/event.ts";
import { type PagePlace, spanOf } from "../page-span.ts";
import { arrayText } from "./parameters.ts";
import type { Transaction, Value } from "./pool.ts";

/**
 * How lists of records are walked: only along indexes, with the queue and the history as two strands of one order. What
 * belongs to the records of a page is read afterwards (`record-rows.ts`).
 *
 *   pending  ─┐
 *             ├─▶ newest event first, records of one event by key ─▶ skip ─▶ the places of a page
 *   delivery ─┘   (of each partition its own strand)
 *
 * A record may move from one strand to the other between two statements, so everything that has to be consistent is read in
 * one snapshot.
 */

/** The place of a record, which stays the same when it moves from the queue to history. */
export interface RecordPlace {
  readonly eventSeq: number;
  readonly key: number;
}

export interface RecordFilter {
  readonly tenantKey: number;
  readonly state?: DeliveryState | undefined;
  /** Keys of webhooks; an empty list selects nothing. */
  readonly webhookKeys?: readonly number[] | undefined;
  readonly typeHash?: number | undefined;
  readonly failure?: FailureSelection | undefined;
  readonly replayKey?: number | undefined;
  readonly fromSeq?: number | undefined;
  readonly toSeq?: number | undefined;
}

/** What the text of a statement depends on. */
interface Strands {
  readonly state?: DeliveryState | undefined;
  readonly byWebhook: boolean;
  readonly byType: boolean;
  readonly byCode: boolean;
  /** Only together with a code. */
  readonly byStatus: boolean;
  readonly byReplay: boolean;
}

const ownParameters = 3;

/** What the strands are filtered by, and the number of their last parameter. */
function filtersOf({ byWebhook, byType, byCode, byStatus, byReplay }: Strands): { text: string; last: number } {
  let last = ownParameters;
  let text = "";
  if (byWebhook) text += ` and webhook_key = any($${++last}::bigint[])`;
  if (byType) text += ` and type_hash = $${++last}::bigint`;
  if (byCode) text += ` and error_code = $${++last}::text`;
  if (byStatus) text += ` and status_code = $${++last}::int`;
  if (byReplay) text += ` and replay_key = $${++last}::bigint and replay_key > 0`;
  return { text, last };
}

/** The condition of a partial index is written into the text, or the planner would not recognise it. */
const conditionOf = {
  PENDING: "",
  DELIVERED: " and state = 1",
  FAILED: " and state = 2",
  SKIPPED: " and state = 3",
} as const;

/** @param order within each strand: the planner merges what is ordered, but does not see through `union all` */
function strands(which: Strands, order = ""): string {
  const { state, byCode, byReplay } = which;
  // In history a code means that the record has failed; a condition that is in no index would only lead the planner to
  // another one. And a replay has begun fewer runs than there are records in any state, so the planner must not see the
  // condition of the state's index.
  const ofState = state === undefined || byCode ? "" : conditionOf[state];
  const condition = byReplay ? ofState.replace("state", "+state") : ofState;
  const strand = (table: "pending" | "delivery") => `(select event_seq, key from ${table}
      where tenant_key = $1::bigint and event_seq between $2::bigint and $3::bigint${condition}${filtersOf(which).text}${order})`;
  if (state === "PENDING") return strand("pending");
  if (state !== undefined) return strand("delivery");
  return `${strand("pending")} union all ${strand("delivery")}`;
}

/** Skips and takes within the indexes. `limit` and `offset` come last. */
export function placesText(which: Strands & { fromOldest: boolean }): string {
  const order = ` order by ${which.fromOldest ? "event_seq, key desc" : "event_seq desc, key"}`;
  const { last } = filtersOf(which);
  const [limit, offset] = [`$${last + 1}`, `$${last + 2}`];
  return `select event_seq::float8 as "eventSeq", key::float8 as key from (
    select event_seq, key from (${strands(which, order)}) walked${order} limit ${limit}::bigint offset ${offset}::bigint
  ) found order by found.event_seq desc, found.key`;
}

/** `limit` comes last. */
export const countText = (which: Strands): string =>
  `select count(*)::int as n from (select from (${strands(which)}) walked limit $${filtersOf(which).last + 1}::bigint) found`;

/** The webhooks of a tenant, including removed ones, that have this id or this URL. */
export const webhookKeysText = `select key::float8 as key from webhook where tenant_key = $1::bigint and id = $2
  union all select key::float8 from webhook where tenant_key = $1::bigint and url = $2`;

const valuesOf = ({ tenantKey, fromSeq, toSeq, webhookKeys, typeHash, failure, replayKey }: RecordFilter): Value[] => [
  tenantKey,
  fromSeq ?? 0,
  toSeq ?? Number.MAX_SAFE_INTEGER,
  ...(webhookKeys ? [arrayText(webhookKeys)] : []),
  ...(typeHash === undefined ? [] : [typeHash]),
  ...(failure ? [failure.code] : []),
  ...(failure?.status ? [failure.status] : []),
  ...(replayKey === undefined ? [] : [replayKey]),
];

const strandsOf = ({ state, webhookKeys, typeHash, failure, replayKey }: RecordFilter): Strands => ({
  state,
  byWebhook: webhookKeys !== undefined,
  byType: typeHash !== undefined,
  byCode: failure !== undefined,
  byStatus: !!failure?.status,
  byReplay: replayKey !== undefined,
});

type Reads = Pick<Transaction, "run">;

/** The places of the records of one page, newest event first. */
export function pagePlaces({ run }: Reads, filter: RecordFilter, place: PagePlace): Promise<RecordPlace[]> {
  const { fromOldest, limit, offset } = spanOf(place);
  return run(placesText({ ...strandsOf(filter), fromOldest }), [...valuesOf(filter), limit, offset]);
}

/** Counts matching records, but no further than `limit`. */
export async function countUpTo({ run }: Reads, filter: RecordFilter, limit: number): Promise<number> {
  const [counted] = await run<{ n: number }>(countText(strandsOf(filter)), [...valuesOf(filter), limit]);
  return counted?.n ?? 0;
}

export async function webhookKeys({ run }: Reads, tenantKey: number, idOrUrl: string): Promise<number[]> {
  const rows = await run<{ key: number }>(webhookKeysText, [tenantKey, idOrUrl]);
  return rows.map(({ key }) => key);
}
