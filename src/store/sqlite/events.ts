import { and, asc, count, desc, eq, sql } from "drizzle-orm";
import { type Attempt, deliveryStates } from "../../domain/delivery.ts";
import { requestAbandoned, unavailable } from "../../domain/errors.ts";
import { type EventRecord, filteredCountLimit, isFiltered, selectFailures, totalOf } from "../../domain/event.ts";
import { codeOfAttempt } from "../../domain/failure.ts";
import { cutLabel } from "../../domain/replay.ts";
import { payloadErased } from "../../domain/retention.ts";
import { tierInForce } from "../../domain/tenant.ts";
import { noEvents, recordsIn } from "../../domain/tenant-state.ts";
import type { Clock } from "../../lib/clock.ts";
import { createFairQueue, QueueFull } from "../../lib/fair-queue.ts";
import { encodeEventId, firstSeqAt, ingestedAtMs, parseEventId } from "../../lib/id.ts";
import { toHead } from "../attempt-heads.ts";
import type { Cursor } from "../cursor.ts";
import { type FailureReads, hoursOf, reportFailures } from "../failure-report.ts";
import type { FailureVerbs } from "../failures.ts";
import { walkedRows } from "../page-span.ts";
import { type SearchOptions, type SearchResult, type SeqRange, searchRecords } from "../search.ts";
import { completeList } from "../steps.ts";
import type { EventVerbs, PageQuery } from "../store.ts";
import { typeHashOf } from "../type-hash.ts";
import { storageDamaged } from "../unless-damaged.ts";
import type { Connection } from "./connection.ts";
import { isDamage, isWhole, readOrRefuse } from "./damage.ts";
import type { AttemptRow } from "./list-steps.ts";
import { listedOf } from "./listed.ts";
import { type RecordFilter, stateNumber } from "./queries.ts";
import type { RecordPlace, RecordRow, RecordStepParams } from "./record-steps.ts";
import { wholeLabel } from "./replay-rows.ts";
import * as t from "./schema.ts";
import { cursorOver, type StepList } from "./step-cursor.ts";

/** Up to this far from either end, a page takes under 3 ms on the event loop; pages further in go to the reader. */
const shallowRows = 2_000;

/**
 * Searches that wait for each other; beyond that, those who have asked for the most are refused. A search takes half a second
 * at most, so that the last one is answered after 15 s: after 30 s of silence its connection is cut.
 */
const mostWaiting = 30;

const utf8 = new TextDecoder();

/** Reads events; `acceptance.ts` takes them in. */
export function eventVerbs(
  connection: Connection,
  clock: Pick<Clock, "monotonicMs">,
): Omit<EventVerbs, "acceptEvents" | "acceptOwnEvent"> & FailureVerbs {
  const { db, queries, reader, filing, reportDamage } = connection;

  const searches = createFairQueue({ slots: 1, maxWaiting: mostWaiting });

  /** Runs one search at a time: between its slices the reader serves other requests. */
  async function search(
    { tenantKey, isAbandoned }: PageQuery,
    options: SearchOptions<RecordPlace>,
  ): Promise<SearchResult<RecordPlace>> {
    try {
      return await searches.run([String(tenantKey)], async () => {
        if (isAbandoned?.()) throw requestAbandoned();
        return searchRecords(options);
      });
    } catch (error) {
      if (error instanceof QueueFull) throw tooManySearches();
      throw error;
    }
  }

  /** The event with this id, whichever account owns it. Its payload is not read. */
  function findEvent(eventId: string): { seq: number; tenantKey: number } | null {
    const id = parseEventId(eventId);
    if (!id) return null;
    const { seq, tenantKey, idTail } = t.event;
    const found = db.select({ seq, tenantKey, idTail }).from(t.event).where(eq(seq, id.seq)).get();
    return found && encodeEventId(found.seq, found.idTail) === eventId ? found : null;
  }

  function ownEvent(tenantKey: number, eventId: string) {
    const found = findEvent(eventId);
    return found?.tenantKey === tenantKey ? found : null;
  }

  /** Like `ownEvent`, but if the event is damaged, its deliveries tell which account owns it. */
  function ownSeq(tenantKey: number, eventId: string): number | null {
    try {
      return ownEvent(tenantKey, eventId)?.seq ?? null;
    } catch (error) {
      if (!isDamage(error)) throw error;
      return parseEventId(eventId)?.seq ?? null;
    }
  }

  const eventDamaged = (eventId: string) => () => reportDamage(`A part of the event ${eventId}`);
  const listDamaged = (tenantKey: number) => () =>
    reportDamage(`The list of events of the account with the key ${tenantKey}`);

  const replayKeyOf = (tenantKey: number, replayId: string): number | null =>
    db
      .select({ key: t.replay.key })
      .from(t.replay)
      .where(and(eq(t.replay.id, replayId), eq(t.replay.tenantKey, tenantKey)))
      .get()?.key ?? null;

  /** Null when no record can match the query. */
  async function filterOf(query: PageQuery): Promise<RecordFilter | null> {
    const { tenantKey, state, webhookId, type, replayId, from, to } = query;
    const failure = selectFailures(query);
    if (failure === null) return null;
    const replayKey = replayId === undefined ? undefined : replayKeyOf(tenantKey, replayId);
    if (replayKey === null) return null;
    return {
      tenantKey,
      ...(state !== undefined && { state: stateNumber[state] }),
      ...(webhookId !== undefined && {
        webhookKeys: await reader.run("webhookKeys", { tenantKey, idOrUrl: webhookId }),
      }),
      ...(type !== undefined && { typeHash: typeHashOf(type) }),
      ...(failure && { failure }),
      ...(replayKey !== undefined && { replayKey }),
      ...(from !== undefined && { fromSeq: firstSeqAt(from) }),
      ...(to !== undefined && { toSeq: firstSeqAt(to + 1) - 1 }),
    };
  }

  return {
    page: (query) =>
      readOrRefuse(listDamaged(query.tenantKey), async () => {
        await filing.whenFiled(query.tenantKey);
        const filter = await filterOf(query);
        const offset = query.page * query.size;
        const { tenantKey, payload = "whole" } = query;
        const listOf = (keys: RecordPlace[], isNear: boolean) => {
          const [state, errorCode] = [filter?.state ?? null, filter?.failure?.code ?? null];
          return cursorOver(connection, recordList(keys, isNear, { tenantKey, payload, state, errorCode }), toRecord);
        };
        if (filter === null) {
          return { records: listOf([], true), ...totalOf(0), ...(query.text !== undefined && { searchedTo: null }) };
        }
        const { text } = query;
        if (text !== undefined) {
          const { places, ...searched } = await search(query, {
            ...{ text, offset, limit: query.size, range: filter, clock },
            look: (needle, range, records) =>
              reader.run("searchSlice", { filter: within(filter, range), needle, records }),
          });
          return { records: listOf([...places], false), ...searched };
        }
        const paged = { filter, offset, limit: query.size };
        if (isFiltered(query)) {
          const run = reader.runFor(query.isAbandoned);
          const [places, counted] = await Promise.all([
            run("pagePlaces", paged),
            run("countUpTo", { filter, limit: filteredCountLimit + 1 }),
          ]);
          return { records: listOf(places, false), ...totalOf(counted) };
        }
        const usage = usageOf(query.tenantKey);
        const total = recordsIn(usage, query.state);
        const counts = { total, totalIsExact: true, ...(query.state === undefined && { totalEvents: usage.events }) };
        // A page beyond the last one is empty, so there is no need to walk there.
        if (offset >= total) return { records: listOf([], true), ...counts };
        // Records newer than those counted do not shift a page that is found from the oldest end.
        const counted = { ...paged, total };
        const isNear = walkedRows(counted) <= shallowRows;
        const places = isNear
          ? queries.pagePlaces(counted)
          : await reader.runFor(query.isAbandoned)("pagePlaces", counted);
        return { records: listOf(places, isNear), ...counts };
      }),

    failures: ({ tenantKey, webhookId, ...range }) =>
      readOrRefuse(listDamaged(tenantKey), async () => {
        const hours = hoursOf(range);
        const webhookKeys =
          webhookId === undefined ? null : await reader.run("webhookKeys", { tenantKey, idOrUrl: webhookId });
        const reads: FailureReads = {
          counted: () => reader.run("failureGroups", { tenantKey, ...hours, webhookKeys }),
          places: (failureKeys, newest) => reader.run("failurePlaces", { tenantKey, ...hours, failureKeys, newest }),
          events: (seqs) => reader.run("failedEvents", seqs),
        };
        return reportFailures(reads, hours);
      }),

    records: (tenantKey, eventId) =>
      completeList(() =>
        readOrRefuse(eventDamaged(eventId), async () => {
          const eventSeq = ownSeq(tenantKey, eventId);
          if (eventSeq === null) return null;
          await filing.whenFiled(tenantKey);
          const keys = db
            .select({ key: t.delivery.key, eventSeq: t.delivery.eventSeq })
            .from(t.delivery)
            .where(and(listedOf(tenantKey), eq(t.delivery.eventSeq, eventSeq)))
            .orderBy(asc(t.delivery.key))
            .all();
          const all = recordList(keys, true, { tenantKey, payload: "whole", state: null, errorCode: null });
          // The very id that was asked for, in case its tail is lost.
          const toOwn = (row: RecordRow) => ({ ...toRecord(row), eventId });
          return keys.length === 0 ? null : { entries: cursorOver(connection, all, toOwn), length: keys.length };
        }),
      ),

    async eventOwner(eventId) {
      const found = await readOrRefuse(eventDamaged(eventId), () => findEvent(eventId));
      if (!found) return null;
      const owner = db
        .select({ deletedAt: t.tenant.deletedAt })
        .from(t.tenant)
        .where(eq(t.tenant.key, found.tenantKey));
      return owner.get()?.deletedAt === null ? found.tenantKey : null;
    },

    attempts: (tenantKey, eventId, range) =>
      readOrRefuse(eventDamaged(eventId), async () => {
        const found = ownEvent(tenantKey, eventId);
        if (!found) return null;
        const total = db.select({ n: count() }).from(t.attempt).where(eq(t.attempt.eventSeq, found.seq)).get()?.n ?? 0;
        const paged = { eventSeq: found.seq, ...range };
        const isNear = total <= shallowRows;
        const keys = isNear ? queries.attemptKeys(paged) : await reader.run("attemptKeys", paged);
        const list = cursorOver(
          connection,
          { keys, isNear, read: (run, step) => run("attempts", { ...step, tenantKey }) },
          toAttempt,
        );
        return { attempts: refuseDamage(eventDamaged(eventId), list), total };
      }),

    previewDelivery: (tenantKey, eventId) =>
      readOrRefuse(eventDamaged(eventId), async () => {
        const found = ownEvent(tenantKey, eventId);
        if (!found) return null;
        await filing.whenFiled(tenantKey);
        const newest = db
          .select({
            key: t.delivery.key,
            url: t.webhook.url,
            type: t.event.type,
            payload: t.event.payload,
            trace: t.event.trace,
            checksum: t.event.checksum,
            run: t.delivery.run,
            attempts: t.delivery.attempts,
            replayGroupId: sql<string | null>`${sql.raw(wholeLabel)}`,
          })
          .from(t.delivery)
          .innerJoin(t.event, eq(t.event.seq, t.delivery.eventSeq))
          .leftJoin(t.webhook, eq(t.webhook.key, t.delivery.webhookKey))
          .leftJoin(t.replay, eq(t.replay.key, t.delivery.replayKey))
          .where(and(listedOf(tenantKey), eq(t.delivery.eventSeq, found.seq)))
          .orderBy(desc(t.delivery.key))
          .limit(1)
          .get();
        const owner = db
          .select({ id: t.tenant.id, enforcedTier: t.tenant.enforcedTier })
          .from(t.tenant)
          .where(eq(t.tenant.key, tenantKey))
          .get();
        if (!newest || !owner) return null;
        if (!isWhole(newest.payload, newest.checksum)) throw storageDamaged();
        if (newest.payload.length === 0) throw payloadErased();
        return {
          deliveryKey: newest.key,
          tenantKey,
          tenantId: owner.id,
          tier: tierInForce(owner),
          webhookKey: 0,
          url: newest.url ?? "",
          eventSeq: found.seq,
          eventId,
          type: newest.type,
          payload: newest.payload,
          trace: newest.trace,
          run: newest.run,
          attemptsInRun: 0,
          attempts: newest.attempts,
          replayKey: null,
          replayGroupId: newest.replayGroupId,
          orderHash: null,
        };
      }),
  };

  function toAttempt({ responseBody, answerHead, label, labelKey, ...row }: AttemptRow): Attempt {
    const replayGroupId = label === null ? null : cutLabel(label);
    return {
      ...row,
      errorCode: codeOfAttempt(row),
      responseBody: utf8.decode(responseBody ?? undefined),
      answerHead: toHead(answerHead),
      replayGroupId,
      isReplayGroupIdCut: labelKey !== null || replayGroupId !== label,
    };
  }

  function usageOf(tenantKey: number) {
    const found = db.select().from(t.tenantUsage).where(eq(t.tenantUsage.tenantKey, tenantKey)).get();
    return found ?? noEvents;
  }
}

const tooManySearches = () => unavailable("Too many searches are waiting; retry the request.", "storage_unavailable");

/** The filter, restricted to another range of events. */
function within({ fromSeq: _, toSeq: __, ...filter }: RecordFilter, { fromSeq, toSeq }: SeqRange): RecordFilter {
  return { ...filter, ...(fromSeq !== undefined && { fromSeq }), ...(toSeq !== undefined && { toSeq }) };
}

const recordList = (
  keys: readonly RecordPlace[],
  isNear: boolean,
  which: Pick<RecordStepParams, "tenantKey" | "state" | "errorCode" | "payload">,
): StepList<RecordPlace, RecordRow> => ({ keys, isNear, read: (run, step) => run("records", { ...step, ...which }) });

function toRecord(row: RecordRow): EventRecord {
  return {
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
    ...(row.heldBackBy && { heldBackBy: row.heldBackBy }),
    replayGroupId: row.replayGroupId,
    ...(row.unreadable && { unreadable: true }),
  };
}

/** The list, except that damage in it is reported and the answer says so. */
function refuseDamage<Entry>(report: () => void, list: Cursor<Entry>): Cursor<Entry> {
  return {
    next: (bytes) => readOrRefuse(report, () => list.next(bytes)),
    get ended() {
      return list.ended;
    },
  };
}
