import { and, asc, count, desc, eq, sql } from "drizzle-orm";
import { noWebhook } from "../../domain/failure.ts";
import { type Attempt, cutLabel, type DueDelivery, type EventRecord, tierInForce, type Webhook } from "../../domain.ts";
import { DomainError, rateLimited, requestAbandoned, unavailable } from "../../errors.ts";
import { encodeEventId, firstSeqAt, ingestedAtMs, parseEventId, randomTail } from "../../lib/id.ts";
import { plans } from "../../plans.ts";
import { accountGone, refusalOfIngestion } from "../../standing.ts";
import type { AcceptedEvents, Cursor, EventVerbs, PageQuery } from "../store.ts";
import type { Connection } from "./connection.ts";
import { checksumOf, isDamage, isWhole, readOrRefuse, storageDamaged } from "./damage.ts";
import { type LaneTransaction, refuse } from "./lane.ts";
import { type RecordFilter, type RecordPlace, stateNames, stateNumber, walkedRows } from "./queries.ts";
import type { RecordRow } from "./record-steps.ts";
import { wholeLabel } from "./replay-rows.ts";
import * as t from "./schema.ts";
import { type AttemptRow, cursorOver } from "./steps.ts";
import { type TenantPage, utcMonth } from "./tenant-page.ts";
import { createWebhookUse } from "./webhook-use.ts";

/** Decisions, section 6: an idempotency key is remembered for 24 hours. */
export const idempotencyLifetimeMs = 24 * 60 * 60 * 1000;

/** Decisions, section 7: a filtered list is counted so far and no further. */
const filteredCountLimit = 10_000;

/** So far from either end a page takes under 3 ms on the event loop; further ones go to the reader. */
const shallowRows = 2_000;

/** From so many events on, accepting them is a heavy job of the lane: about 25 µs each. */
const heavyEvents = 50;

const utf8 = new TextDecoder();

export interface DiskFloor {
  /** False when the disk is below it: then nothing more is accepted, replayed or kept that can be done without. */
  hasRoom(): boolean;
}

export function eventVerbs(connection: Connection, { hasRoom }: DiskFloor): EventVerbs {
  const { client, db, lane, pages, rowKeys, queries, reader, reportDamage } = connection;

  const insertEvent = client.prepare(
    "insert into event (seq, tenant_key, id_tail, payload, checksum) values (?1, ?2, ?3, ?4, ?5)",
  );
  const insertPending = client.prepare(
    `insert into delivery (key, tenant_key, event_seq, webhook_key, state, run, attempts_in_run, attempts, next_attempt_at)
     values (?1, ?2, ?3, ?4, 0, 1, 0, 0, ?5)`,
  );
  const insertUndeliverable = client.prepare(
    `insert into delivery (key, tenant_key, event_seq, state, run, attempts_in_run, attempts, finished_at, error_reason, error_code)
     values (?1, ?2, ?3, 2, 1, 0, 0, ?4, '${noWebhook.reason}', '${noWebhook.code}')`,
  );

  const use = createWebhookUse(client);

  function store(tx: LaneTransaction, page: TenantPage, payload: Uint8Array, deliveries: DueDelivery[]): string {
    const tenantKey = page.tenant.key;
    const seq = tx.nextEventSeq();
    const tail = randomTail();
    const eventId = encodeEventId(seq, tail);
    insertEvent.run(seq, tenantKey, tail, payload, checksumOf(payload));
    countEvent(page, ingestedAtMs(seq));
    if (page.webhooks.length === 0) {
      insertUndeliverable.run(rowKeys.nextDelivery(), tenantKey, seq, tx.orderedNow);
      page.failed += 1;
    }
    for (const webhook of page.webhooks) {
      const deliveryKey = rowKeys.nextDelivery();
      // Due by the clock, not by the ingestion time, which runs ahead when the clock has stepped back.
      insertPending.run(deliveryKey, tenantKey, seq, webhook.key, tx.now);
      use.recordAdded(page, webhook);
      page.pending += 1;
      deliveries.push(freshDelivery(deliveryKey, page, webhook, seq, eventId, payload));
    }
    return eventId;
  }

  function remembered(tenantKey: number, key: string, fingerprint: Uint8Array, now: number) {
    const found = db
      .select()
      .from(t.idempotency)
      .where(and(eq(t.idempotency.tenantKey, tenantKey), eq(t.idempotency.key, key)))
      .get();
    if (!found || found.createdAt <= now - idempotencyLifetimeMs) return null;
    return found.fingerprint.equals(fingerprint) ? found.eventIds.split(" ") : refuse(idempotencyConflict());
  }

  function remember(tenantKey: number, key: string, fingerprint: Uint8Array, eventIds: string[], now: number): void {
    const row = { fingerprint: Buffer.from(fingerprint), eventIds: eventIds.join(" "), createdAt: now };
    db.insert(t.idempotency)
      .values({ tenantKey, key, ...row })
      .onConflictDoUpdate({ target: [t.idempotency.tenantKey, t.idempotency.key], set: row })
      .run();
  }

  /** The event with this id, whosever it is. Its payload is left where it is. */
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

  /** As `ownEvent`; of an event that is damaged it is told by its deliveries whose it is. */
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

  async function filterOf(query: PageQuery): Promise<RecordFilter> {
    const { tenantKey, state, webhookId, from, to } = query;
    return {
      tenantKey,
      ...(state !== undefined && { state: stateNumber[state] }),
      ...(webhookId !== undefined && {
        webhookKeys: await reader.run("webhookKeys", { tenantKey, idOrUrl: webhookId }),
      }),
      ...(from !== undefined && { fromSeq: firstSeqAt(from) }),
      ...(to !== undefined && { toSeq: firstSeqAt(to + 1) - 1 }),
    };
  }

  return {
    acceptEvents: ({ tenantKey, payloads, idempotency, isAbandoned }) =>
      lane.submit<AcceptedEvents>((tx) => {
        if (isAbandoned?.()) return refuse(requestAbandoned());
        const page = pages(tx, tenantKey);
        if (page.gone) return refuse(accountGone());
        if (idempotency) {
          const earlier = remembered(tenantKey, idempotency.key, idempotency.fingerprint, tx.now);
          if (Array.isArray(earlier)) {
            return { eventIds: earlier, repeated: true, ingestedAt: ingestedAtOf(earlier), deliveries: [] };
          }
          if (earlier) return earlier;
        }
        const refusal =
          refusalOfIngestion(page.tenant) ?? refusalOfQuota(page, payloads.length, tx) ?? (hasRoom() ? null : noRoom());
        if (refusal) return refuse(refusal);
        const deliveries: DueDelivery[] = [];
        const eventIds = payloads.map((payload) => store(tx, page, payload, deliveries));
        if (idempotency) remember(tenantKey, idempotency.key, idempotency.fingerprint, eventIds, tx.now);
        return { eventIds, repeated: false, ingestedAt: ingestedAtOf(eventIds), deliveries };
      }, payloads.length >= heavyEvents),

    page: (query) =>
      readOrRefuse(listDamaged(query.tenantKey), async () => {
        const filter = await filterOf(query);
        const offset = query.page * query.size;
        const { tenantKey, withPayload = true } = query;
        const listOf = (keys: RecordPlace[], isNear: boolean) => {
          const params = { keys, isNear, tenantKey, withPayload, state: filter.state ?? null };
          return cursorOver(connection, "records", params, toRecord);
        };
        const isFiltered =
          filter.webhookKeys !== undefined || filter.fromSeq !== undefined || filter.toSeq !== undefined;
        const paged = { filter, offset, limit: query.size };
        if (isFiltered) {
          const [places, counted] = await Promise.all([
            reader.run("pagePlaces", paged),
            reader.run("countUpTo", { filter, limit: filteredCountLimit + 1 }),
          ]);
          const totalIsExact = counted <= filteredCountLimit;
          return { records: listOf(places, false), total: Math.min(counted, filteredCountLimit), totalIsExact };
        }
        const usage = usageOf(query.tenantKey);
        const total =
          query.state === undefined
            ? usage.pending + usage.delivered + usage.failed
            : { PENDING: usage.pending, DELIVERED: usage.delivered, FAILED: usage.failed }[query.state];
        const counts = { total, totalIsExact: true, ...(query.state === undefined && { totalEvents: usage.events }) };
        // A page behind the last one is empty whatever it would cost to walk there.
        if (offset >= total) return { records: listOf([], true), ...counts };
        // Newer records than those counted do not move a page that is found from the oldest.
        const counted = { ...paged, total };
        const isNear = walkedRows(counted) <= shallowRows;
        const places = isNear ? queries.pagePlaces(counted) : await reader.run("pagePlaces", counted);
        return { records: listOf(places, isNear), ...counts };
      }),

    records: (tenantKey, eventId) =>
      readOrRefuse(eventDamaged(eventId), () => {
        const eventSeq = ownSeq(tenantKey, eventId);
        if (eventSeq === null) return null;
        const keys = db
          .select({ key: t.delivery.key, eventSeq: t.delivery.eventSeq })
          .from(t.delivery)
          .where(and(eq(t.delivery.tenantKey, tenantKey), eq(t.delivery.eventSeq, eventSeq)))
          .orderBy(asc(t.delivery.key))
          .all();
        const all = { keys, isNear: true, tenantKey, withPayload: true, state: null };
        // The very id that was asked for, should its end be lost.
        const toOwn = (row: RecordRow) => ({ ...toRecord(row), eventId });
        return keys.length === 0 ? null : cursorOver(connection, "records", all, toOwn);
      }),

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
        const list = cursorOver(connection, "attempts", { keys, isNear }, toAttempt);
        return { attempts: refuseDamage(eventDamaged(eventId), list), total };
      }),

    previewDelivery: (tenantKey, eventId) =>
      readOrRefuse(eventDamaged(eventId), () => {
        const found = ownEvent(tenantKey, eventId);
        if (!found) return null;
        const newest = db
          .select({
            key: t.delivery.key,
            url: t.webhook.url,
            payload: t.event.payload,
            checksum: t.event.checksum,
            run: t.delivery.run,
            attempts: t.delivery.attempts,
            replayGroupId: sql<string | null>`${sql.raw(wholeLabel)}`,
          })
          .from(t.delivery)
          .innerJoin(t.event, eq(t.event.seq, t.delivery.eventSeq))
          .leftJoin(t.webhook, eq(t.webhook.key, t.delivery.webhookKey))
          .leftJoin(t.replay, eq(t.replay.key, t.delivery.replayKey))
          .where(and(eq(t.delivery.tenantKey, tenantKey), eq(t.delivery.eventSeq, found.seq)))
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
        return {
          deliveryKey: newest.key,
          tenantKey,
          tenantId: owner.id,
          tier: tierInForce(owner),
          webhookKey: 0,
          url: newest.url ?? "",
          eventSeq: found.seq,
          eventId,
          payload: newest.payload,
          run: newest.run,
          attemptsInRun: 0,
          attempts: newest.attempts,
          replayKey: null,
          replayGroupId: newest.replayGroupId,
        };
      }),
  };

  function toAttempt({ responseBody, label, labelKey, ...row }: AttemptRow): Attempt {
    const replayGroupId = label === null ? null : cutLabel(label);
    return {
      ...row,
      responseBody: utf8.decode(responseBody ?? undefined),
      replayGroupId,
      isReplayGroupIdCut: labelKey !== null || replayGroupId !== label,
    };
  }

  function usageOf(tenantKey: number) {
    const found = db.select().from(t.tenantUsage).where(eq(t.tenantUsage.tenantKey, tenantKey)).get();
    return found ?? { events: 0, pending: 0, delivered: 0, failed: 0 };
  }
}

/** The ingestion time that the first of these ids carries. */
function ingestedAtOf([first = ""]: readonly string[]): number {
  const id = parseEventId(first);
  return id ? ingestedAtMs(id.seq) : 0;
}

function countEvent(page: TenantPage, ingestedAt: number): void {
  openMonth(page, ingestedAt);
  page.eventsInMonth += 1;
  page.events += 1;
}

/** An event belongs to the month of its time of ingestion, which never steps back. */
function openMonth(page: TenantPage, at: number): void {
  const month = utcMonth(at);
  if (month <= page.month) return;
  page.month = month;
  page.eventsInMonth = 0;
}

/** Decisions, section 4: over the quota is 429 to the end of the month; a batch fits whole or is refused whole. */
function refusalOfQuota(page: TenantPage, events: number, { now, orderedNow }: LaneTransaction): DomainError | null {
  // By the time that the events would carry: it is ahead of the clock when that was set back over a month's end.
  openMonth(page, orderedNow);
  const quota = plans[page.tenant.enforcedTier ?? "free"].eventsPerMonth;
  if (page.eventsInMonth + events <= quota) return null;
  const left = quota - page.eventsInMonth;
  const date = new Date(orderedNow);
  const monthEnd = Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1);
  return rateLimited(
    `The plan includes ${quota} events a month, and ${left === 0 ? "all" : `all but ${left}`} are used; upgrade the account or wait for the next month.`,
    "quota_exceeded",
    (monthEnd - now) / 1000,
  );
}

/** The disk is below its floor. */
export const noRoom = () =>
  unavailable("The disk of the server is almost full; repeat the request later.", "storage_full", 30);

const idempotencyConflict = () =>
  new DomainError({
    kind: "idempotency_conflict",
    code: "idempotency_key_reused",
    message: "Idempotency-Key was used in the last 24 hours for another request; use a new key for a new request.",
  });

function freshDelivery(
  deliveryKey: number,
  page: TenantPage,
  webhook: Webhook,
  eventSeq: number,
  eventId: string,
  payload: Uint8Array,
): DueDelivery {
  return {
    deliveryKey,
    tenantKey: page.tenant.key,
    tenantId: page.tenant.id,
    tier: tierInForce(page.tenant),
    webhookKey: webhook.key,
    url: webhook.url,
    eventSeq,
    eventId,
    payload,
    run: 1,
    attemptsInRun: 0,
    attempts: 0,
    replayKey: null,
    replayGroupId: null,
  };
}

function toRecord(row: RecordRow): EventRecord {
  return {
    eventId: encodeEventId(row.eventSeq, row.idTail),
    state: stateNames[row.state] ?? "FAILED",
    ingestedAt: ingestedAtMs(row.eventSeq),
    targetWebhook: row.url ?? "",
    errorReason: row.errorReason,
    errorCode: row.errorCode,
    statusCode: row.statusCode,
    payload: row.payload ?? null,
    attempts: row.attempts,
    attemptsForgotten: row.attemptsForgotten,
    lastAttemptAt: row.lastAttemptAt,
    nextAttemptAt: row.nextAttemptAt,
    replayGroupId: row.replayGroupId,
    ...(row.unreadable && { unreadable: true }),
  };
}

/** The list, but damage in it is reported, and an answer that says so. */
function refuseDamage<Entry>(report: () => void, list: Cursor<Entry>): Cursor<Entry> {
  return {
    next: (bytes) => readOrRefuse(report, () => list.next(bytes)),
    get ended() {
      return list.ended;
    },
  };
}
