import { type FailureSelection, selectFailures } from "../../domain/event.ts";
import { filterOf, type ReplayFilter } from "../../domain/replay.ts";
import { selectionOf } from "../../domain/replay-phase.ts";
import type { NewReplay } from "../store.ts";
import { typeHashOf } from "../type-hash.ts";
import { arrayText } from "./parameters.ts";
import type { Transaction, Value } from "./pool.ts";
import type { ReplayRow } from "./replay-rows.ts";

/** What the text of a statement depends on. */
export interface Selecting {
  readonly isOfFailed: boolean;
  readonly byWebhook: boolean;
  readonly byType: boolean;
  readonly byCode: boolean;
  /** Only together with a code. */
  readonly byStatus: boolean;
}

/** A filter in the form that statements and `Replaying` take. */
interface Narrowing {
  readonly webhookKeys: readonly number[] | null;
  readonly typeHash: number | null;
  readonly failure: FailureSelection | null;
}

/** @param before number of the last parameter that precedes those of the filter */
function conditionsOf(
  { byWebhook, byType, byCode, byStatus }: Selecting,
  before: number,
  table: "pending" | "delivery",
): string {
  let last = before;
  let text = "";
  if (byWebhook) {
    const keys = `$${++last}::bigint[]`;
    const isOwn = `webhook_key = any(${keys})`;
    text += byCode && table === "delivery" ? ` and (${isOwn} or ${isStrandedFor(keys)})` : ` and ${isOwn}`;
  }
  if (byType) text += ` and type_hash = $${++last}::bigint`;
  if (byCode) text += ` and error_code = $${++last}::text`;
  if (byStatus) text += ` and status_code = $${++last}::int`;
  return text;
}

/**
 * Whether a record in history that has a code failed for a webhook that is gone, or found none, and the webhook with these keys
 * has no record of the event (`requeue.ts`). Each "offset 0" keeps the planner from joining whole tables.
 */
function isStrandedFor(keys: string): string {
  const isRegistered = (webhookKey: string) => `exists (select 1 from webhook
    where webhook.tenant_key = $1::bigint and webhook.key = ${webhookKey} and webhook.removed_at is null offset 0)`;
  const hasOwn = (table: "pending" | "delivery") => `exists (select 1 from ${table} own
    where own.tenant_key = $1::bigint and own.event_seq = delivery.event_seq and own.webhook_key = any(${keys}) offset 0)`;
  return `(not ${isRegistered("delivery.webhook_key")} and not ${hasOwn("pending")} and not ${hasOwn("delivery")})`;
}

/**
 * In history a code means that the record has failed; a condition that is in no index would only lead the planner to another
 * one.
 */
const hasFailed = ({ byCode }: Selecting) => (byCode ? "" : " and state = 2");

/** The next events with a selected record, in the order of their numbers; from both tables, unless it must have failed. */
export function nextEventsText(which: Selecting): string {
  const strand = (table: "pending" | "delivery", more: string) => `select distinct event_seq as seq from ${table}
      where tenant_key = $1::bigint and event_seq > $2::bigint and event_seq <= $3::bigint${more}
      order by event_seq limit $4::int`;
  if (which.isOfFailed) {
    const failed = strand(
      "delivery",
      `${hasFailed(which)} and finished_at <= $5::bigint${conditionsOf(which, 5, "delivery")}`,
    );
    return `select seq::float8 as seq from (${failed}) of_failed order by seq`;
  }
  const both = (["pending", "delivery"] as const).map((table) => `(${strand(table, conditionsOf(which, 4, table))})`);
  return `select seq::float8 as seq from (
    ${both.join(" union ")}) of_both order by seq limit $4::int`;
}

/** How many there are in all, and when the last of the failed ones failed, by any node's clock. */
export function countSelectedText(which: Selecting): string {
  const strand = (table: "pending" | "delivery", columns: string, more: string) => `select ${columns} from ${table}
      where tenant_key = $1::bigint and event_seq between $2::bigint and $3::bigint${more}${conditionsOf(which, 3, table)}`;
  if (which.isOfFailed) {
    const columns = `count(distinct event_seq)::int as n, max(finished_at)::float8 as "lastFailedAt"`;
    return strand("delivery", columns, hasFailed(which));
  }
  return `select count(*)::int as n from (
    ${strand("pending", "event_seq", "")} union ${strand("delivery", "event_seq", "")}) of_both`;
}

/** How many of them no longer have a payload. */
export function countErasedText(which: Selecting): string {
  const strand = (table: "pending" | "delivery", more: string) => `select event_seq as seq from ${table}
      where tenant_key = $1::bigint and event_seq between $2::bigint and $3::bigint${more}${conditionsOf(which, 3, table)}`;
  const selected = which.isOfFailed
    ? `select distinct seq from (${strand("delivery", hasFailed(which))}) of_failed`
    : `${strand("pending", "")} union ${strand("delivery", "")}`;
  return `select count(*)::int as n from (${selected}) selected
    cross join lateral (select 1 from event where event.seq = selected.seq and tenant_key = $1::bigint
      and octet_length(payload) = 0 limit 1) erased`;
}

type Reads = Pick<Transaction, "run">;

/** An id stands for its URL: the webhook may have been removed and registered again. */
export const keysOfWebhookText = `select key::float8 as key from webhook where tenant_key = $1::bigint
  and url = coalesce((select url from webhook where tenant_key = $1::bigint and id = $2), $2)`;

async function webhookKeysOf({ run }: Reads, tenantKey: number, idOrUrl: string): Promise<number[]> {
  const rows = await run<{ key: number }>(keysOfWebhookText, [tenantKey, idOrUrl]);
  return rows.map(({ key }) => key);
}

/** Null: there can be no such records. */
export async function narrowingOf(
  reads: Reads,
  tenantKey: number,
  filter: ReplayFilter = {},
): Promise<Narrowing | null> {
  const { webhook, type } = filter;
  const failure = selectFailures(filter);
  if (failure === null) return null;
  return {
    webhookKeys: webhook === undefined ? null : await webhookKeysOf(reads, tenantKey, webhook),
    typeHash: type === undefined ? null : typeHashOf(type),
    failure: failure ?? null,
  };
}

const selecting = (kind: NewReplay["kind"], { webhookKeys, typeHash, failure }: Narrowing): Selecting => ({
  isOfFailed: kind === "failed",
  byWebhook: webhookKeys !== null,
  byType: typeHash !== null,
  byCode: failure !== null,
  byStatus: failure !== null && failure.status !== null,
});

const valuesOf = ({ webhookKeys, typeHash, failure }: Narrowing): Value[] => [
  ...(webhookKeys === null ? [] : [arrayText(webhookKeys)]),
  ...(typeHash === null ? [] : [typeHash]),
  ...(failure === null ? [] : [failure.code]),
  ...(failure === null || failure.status === null ? [] : [failure.status]),
];

export interface Selected {
  readonly fromSeq: number;
  readonly toSeq: number;
  /** Number of events. */
  readonly n: number;
  readonly lastFailedAt: number | null;
}

/** What a bulk replay would take now: events of one tenant, from the first to the last committed one. */
export async function select(
  reads: Reads,
  tenantKey: number,
  { kind, from, to, filter = {} }: Omit<NewReplay, "id" | "label">,
): Promise<Selected> {
  const [row] = await reads.run<{ last: number | null }>(
    `select greatest((select max(event_seq) from pending where tenant_key = $1::bigint),
       (select max(event_seq) from delivery where tenant_key = $1::bigint))::float8 as last`,
    [tenantKey],
  );
  const range = selectionOf({ from, to }, filter, row?.last ?? 0);
  const narrowing = await narrowingOf(reads, tenantKey, filter);
  if (!narrowing) return { ...range, n: 0, lastFailedAt: null };
  const [found] = await reads.run<{ n: number; lastFailedAt?: number | null }>(
    countSelectedText(selecting(kind, narrowing)),
    [tenantKey, range.fromSeq, range.toSeq, ...valuesOf(narrowing)],
  );
  return { ...range, n: found?.n ?? 0, lastFailedAt: found?.lastFailedAt ?? null };
}

/** How many of them no longer have a payload: only those that are old enough are looked up. */
export async function countErased(
  reads: Reads,
  tenantKey: number,
  { kind, from, to, filter = {} }: Omit<NewReplay, "id" | "label">,
): Promise<number> {
  const [row] = await reads.run<{ erasedTo: number | null }>(
    `select payloads_erased_to::float8 as "erasedTo" from tenant where key = $1::bigint`,
    [tenantKey],
  );
  const { fromSeq, toSeq } = selectionOf({ from, to }, filter, row?.erasedTo ?? 0);
  if (toSeq < fromSeq || toSeq === 0) return 0;
  const narrowing = await narrowingOf(reads, tenantKey, filter);
  if (!narrowing) return 0;
  const [found] = await reads.run<{ n: number }>(countErasedText(selecting(kind, narrowing)), [
    ...[tenantKey, fromSeq, toSeq],
    ...valuesOf(narrowing),
  ]);
  return found?.n ?? 0;
}

/** Whether a filter selects an event. */
export async function takes(reads: Reads, tenantKey: number, seq: number, filter: ReplayFilter = {}): Promise<boolean> {
  const { fromSeq, toSeq } = selectionOf({}, filter, seq);
  if (seq < fromSeq || seq > toSeq) return false;
  const narrowing = await narrowingOf(reads, tenantKey, filter);
  if (!narrowing) return false;
  const text = nextEventsText(selecting("single", narrowing));
  return (await reads.run(text, [tenantKey, seq - 1, seq, 1, ...valuesOf(narrowing)])).length > 0;
}

/** The next events of a bulk replay, and its filter. */
export async function nextEvents(
  reads: Reads,
  tenantKey: number,
  replay: Pick<ReplayRow, "kind" | "cursorSeq" | "toSeq" | "createdAt" | "filter">,
  limit: number,
): Promise<{ seqs: number[]; narrowing: Narrowing | null }> {
  const { kind, cursorSeq, toSeq, createdAt, filter } = replay;
  const narrowing = await narrowingOf(reads, tenantKey, filterOf(filter) ?? {});
  if (!narrowing) return { seqs: [], narrowing };
  const found = await reads.run<{ seq: number }>(nextEventsText(selecting(kind, narrowing)), [
    ...[tenantKey, cursorSeq, toSeq, limit],
    ...(kind === "failed" ? [createdAt] : []),
    ...valuesOf(narrowing),
  ]);
  return { seqs: found.map(({ seq }) => seq), narrowing };
}
