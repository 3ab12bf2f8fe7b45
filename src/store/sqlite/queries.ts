import type { Database } from "bun:sqlite";
import { type AnyColumn, and, asc, count, desc, eq, gt, gte, lte, type SQL, sql } from "drizzle-orm";
import type { BunSQLiteDatabase } from "drizzle-orm/bun-sqlite";
import type { DeliveryState } from "../../domain/delivery.ts";
import type { FailureSelection } from "../../domain/event.ts";
import { type PagePlace, spanOf } from "../page-span.ts";
import type { KeptAnswersQuery, OldEventsQuery } from "../retention.ts";
import { type Needle, type Slice, wholeEvents } from "../search.ts";
import { type MinuteRange, type MinuteRow, sumMinutes } from "../sum-minutes.ts";
import { unlessDamaged } from "./damage.ts";
import { failureQueries } from "./failure-queries.ts";
import { stepQueries } from "./list-steps.ts";
import { listedOf } from "./listed.ts";
import { keptAnswers, measuredRecords, oldEvents } from "./old-events.ts";
import { queueDepth } from "./queue-depth.ts";
import type { RecordPlace } from "./record-steps.ts";
import * as t from "./schema.ts";
import { searchSlice } from "./search-slice.ts";
import { isStrandedFor } from "./stranded.ts";
import { type HealthQuery, webhookHealth } from "./webhook-health.ts";

/**
 * The reads whose cost grows with the history. They are plain functions of a connection, so that the same ones can run on the
 * event loop, when they are known to be quick, and in the Worker, when they may be slow.
 */
export type Queries = { [Name in QueryName]: (params: QueryParams[Name]) => QueryResults[Name] };

type Created = ReturnType<typeof createQueries>;
export type QueryName = keyof Created;
type QueryParams = { [Name in QueryName]: Parameters<Created[Name]>[0] };
type QueryResults = { [Name in QueryName]: ReturnType<Created[Name]> };

/** Runs a query by name, on whichever thread. */
export type QueryRun = <Name extends QueryName>(name: Name, params: QueryParams[Name]) => Promise<QueryResults[Name]>;

/** Runs queries on this thread. */
export const runHere =
  (queries: Queries): QueryRun =>
  async (name, params) =>
    queries[name](params);

export interface RecordFilter {
  tenantKey: number;
  state?: number;
  /** Keys of webhooks; an empty list selects nothing. */
  webhookKeys?: number[];
  /** Also what these webhooks may take from one that is gone (`stranded.ts`). */
  withStranded?: boolean;
  typeHash?: number;
  failure?: FailureSelection;
  replayKey?: number;
  fromSeq?: number;
  toSeq?: number;
}

export interface PageParams extends PagePlace {
  filter: RecordFilter;
}

export interface SearchSliceParams {
  filter: RecordFilter;
  needle: Needle;
  records: number;
}

export const stateNumber: Record<DeliveryState, number> = {
  PENDING: t.statePending,
  DELIVERED: t.stateDelivered,
  FAILED: t.stateFailed,
  SKIPPED: t.stateSkipped,
};

/** @param keys JSON */
function isOfWebhooks(keys: string, withStranded: boolean): SQL {
  const isOwn = sql`${t.delivery.webhookKey} in (select value from json_each(${keys}))`;
  if (!withStranded) return isOwn;
  const [before = "", after = ""] = isStrandedFor("?").split("?");
  return sql`(${isOwn} or ${sql.raw(before)}${keys}${sql.raw(after)})`;
}

export function createQueries(db: BunSQLiteDatabase & { $client: Database }) {
  function matching(filter: RecordFilter): SQL | undefined {
    // A replay has fewer records than any state does, which the planner would not know without statistics.
    const unlessOfReplay = (column: AnyColumn) => (filter.replayKey === undefined ? sql`${column}` : sql`+${column}`);
    // The other indexes contain a record from its first failure or replay on.
    const isByOther = filter.replayKey !== undefined || filter.failure !== undefined;
    return and(
      isByOther ? eq(t.delivery.tenantKey, filter.tenantKey) : listedOf(filter.tenantKey),
      filter.replayKey === undefined ? undefined : eq(t.delivery.replayKey, filter.replayKey),
      filter.state === undefined ? undefined : eq(unlessOfReplay(t.delivery.state), filter.state),
      filter.fromSeq === undefined ? undefined : gte(t.delivery.eventSeq, filter.fromSeq),
      filter.toSeq === undefined ? undefined : lte(t.delivery.eventSeq, filter.toSeq),
      filter.typeHash === undefined ? undefined : eq(t.delivery.typeHash, filter.typeHash),
      filter.failure && eq(unlessOfReplay(t.delivery.errorCode), filter.failure.code),
      filter.failure?.status ? eq(t.delivery.statusCode, filter.failure.status) : undefined,
      filter.webhookKeys === undefined
        ? undefined
        : isOfWebhooks(JSON.stringify(filter.webhookKeys), filter.withStranded ?? false),
    );
  }

  /**
   * Where the records of one page lie, newest event first. These places are found inside the covering index, and the data is
   * read afterwards: at offset 1,000,000 that takes 20 ms, and 436 ms with the join in the same query. When it is known how many
   * records match, the walk begins at the nearer end: of 5.2 million, the page at 5,000,000 took 252 ms from the newest, and
   * now takes as long as the one at 200,000.
   */
  function pagePlaces({ filter, ...place }: PageParams): RecordPlace[] {
    const { eventSeq, key } = t.delivery;
    const span = spanOf(place);
    const order = span.fromOldest ? [asc(eventSeq), desc(key)] : [desc(eventSeq), asc(key)];
    const places = db
      .select({ key, eventSeq })
      .from(t.delivery)
      .where(matching(filter))
      .orderBy(...order)
      .limit(span.limit)
      .offset(span.offset)
      .all();
    return span.fromOldest ? places.reverse() : places;
  }

  return {
    ...stepQueries(db),
    ...failureQueries(db.$client),

    queueDepth: (_: undefined) => queueDepth(db.$client),

    /** Reads one row per account. */
    storedEvents: (_: undefined) =>
      db.$client.query<{ n: number | null }, []>("select sum(events) as n from tenant_usage").get()?.n ?? 0,

    pagePlaces,

    /** Searches the newest matching records for a text. */
    searchSlice({ filter, needle, records }: SearchSliceParams): Slice<RecordPlace> {
      return searchSlice(db.$client, wholeEvents(pagePlaces({ filter, offset: 0, limit: records }), records), needle);
    },

    /** The keys of an event's attempts, oldest first. */
    attemptKeys({ eventSeq, offset, limit }: { eventSeq: number; offset: number; limit: number }): number[] {
      return db
        .select({ key: t.attempt.key })
        .from(t.attempt)
        .where(eq(t.attempt.eventSeq, eventSeq))
        .orderBy(asc(t.attempt.startedAt), asc(t.attempt.key))
        .limit(limit)
        .offset(offset)
        .all()
        .map(({ key }) => key);
    },

    /** Counts matching records, but no further than `limit`. */
    countUpTo({ filter, limit }: { filter: RecordFilter; limit: number }): number {
      const some = db.select({ key: t.delivery.key }).from(t.delivery).where(matching(filter)).limit(limit).as("some");
      return db.select({ n: count() }).from(some).get()?.n ?? 0;
    },

    /** How many events have a matching record. */
    countEvents(filter: RecordFilter): number {
      const found = db
        .select({ n: sql<number>`count(distinct ${t.delivery.eventSeq})` })
        .from(t.delivery)
        .where(matching(filter))
        .get();
      return found?.n ?? 0;
    },

    /** How many of those events no longer have a payload; a damaged one counts as having it. */
    countErased(filter: RecordFilter): number {
      const { eventSeq } = t.delivery;
      const selected = db.selectDistinct({ seq: eventSeq }).from(t.delivery).where(matching(filter)).as("selected");
      const erased = db
        .select({ n: count() })
        .from(selected)
        .innerJoin(t.event, eq(t.event.seq, selected.seq))
        .where(sql`length(${t.event.payload}) = 0`);
      return unlessDamaged(() => erased.get()?.n) ?? 0;
    },

    /** What happened in a range of minutes: in buckets of `bucketMinutes`, without the empty ones, and in total. */
    stats({ tenantKey, from, to, bucketMinutes }: MinuteRange & { tenantKey: number }) {
      const { minute, accepted, delivered, failed, attempts, latency } = t.stat;
      const inRange = and(eq(t.stat.tenantKey, tenantKey), gte(minute, from), lte(minute, to));
      const rows = db.values<MinuteRow>(
        sql`select ${minute}, ${accepted}, ${delivered}, ${failed}, ${attempts}, ${latency} from ${t.stat} where ${inRange}`,
      );
      return sumMinutes(rows, bucketMinutes);
    },

    /** Like `stats`, for webhooks, for which nothing counts as accepted. */
    webhookStats({
      tenantKey,
      webhookKeys,
      from,
      to,
      bucketMinutes,
    }: MinuteRange & { tenantKey: number; webhookKeys: readonly number[] }) {
      const { minute, delivered, failed, attempts, latency } = t.webhookStat;
      const rows = webhookKeys.flatMap((key) => {
        const ofWebhook = and(eq(t.webhookStat.tenantKey, tenantKey), eq(t.webhookStat.webhookKey, key));
        const inRange = and(ofWebhook, gte(minute, from), lte(minute, to));
        return db.values<MinuteRow>(
          sql`select ${minute}, 0, ${delivered}, ${failed}, ${attempts}, ${latency} from ${t.webhookStat} where ${inRange}`,
        );
      });
      return sumMinutes(rows, bucketMinutes);
    },

    webhookHealth: (query: HealthQuery) => webhookHealth(db, query),

    oldEvents: (query: OldEventsQuery) => oldEvents(db.$client, query),

    measuredRecords: (query: Parameters<typeof measuredRecords>[1]) => measuredRecords(db.$client, query),

    keptAnswers: (query: KeptAnswersQuery) => keptAnswers(db.$client, query),

    /** Keys of a tenant's webhooks with this id or URL, including removed ones. */
    webhookKeys({ tenantKey, idOrUrl }: { tenantKey: number; idOrUrl: string }): number[] {
      const { key, tenantKey: owner, id, url } = t.webhook;
      const keysWhere = (column: typeof id | typeof url) =>
        db
          .select({ key })
          .from(t.webhook)
          .where(and(eq(owner, tenantKey), eq(column, idOrUrl)))
          .all();
      // Two seeks: with a single "or", SQLite walks through all the webhooks that the account ever had.
      return [...keysWhere(id), ...keysWhere(url)].map((webhook) => webhook.key);
    },

    /** The webhooks that a tenant's next events refer to, in records and attempts; `lastSeq` null: there are no more events. */
    namedWebhooks({ tenantKey, afterSeq, events }: { tenantKey: number; afterSeq: number; events: number }) {
      const { eventSeq, webhookKey } = t.delivery;
      const seqs = db
        .selectDistinct({ seq: eventSeq })
        .from(t.delivery)
        .where(and(listedOf(tenantKey), gt(eventSeq, afterSeq)))
        .orderBy(asc(eventSeq))
        .limit(events)
        .all()
        .map(({ seq }) => seq);
      const last = seqs.at(-1) ?? afterSeq;
      const inRecords = db
        .selectDistinct({ key: webhookKey })
        .from(t.delivery)
        .where(and(listedOf(tenantKey), gt(eventSeq, afterSeq), lte(eventSeq, last)))
        .all();
      const inAttempts = db
        .selectDistinct({ key: t.attempt.webhookKey })
        .from(t.attempt)
        .where(sql`${t.attempt.eventSeq} in (select value from json_each(${JSON.stringify(seqs)}))`)
        .all();
      const webhookKeys = [...inRecords, ...inAttempts].flatMap(({ key }) => (key === null ? [] : [key]));
      return { webhookKeys, lastSeq: seqs.length < events ? null : last };
    },
  };
}
