import { beforeOf, beforeText } from "../../domain/cancelled-run.ts";
import { type DeliveryRef, deliveryStates } from "../../domain/delivery.ts";
import { isReserved } from "../../domain/event-types.ts";
import type { PlaceInLine } from "../../domain/order.ts";
import { aboutOf } from "../../domain/own-events.ts";
import { type ReplayedRecord, type Replaying, type Returnable, requeue } from "../../domain/requeue.ts";
import { orderHashFor } from "../order-hash.ts";
import type { Connection } from "./connection.ts";
import { heldBack, laneSlots } from "./event-schema.ts";
import { FailureTally } from "./failure-counts.ts";
import { count, type HeldTenant, rareLane } from "./held-tenants.ts";
import { type Line, type LockedLines, linesOf, lockLines, noLines, readLines, releaseNext } from "./lines.ts";
import { arrayText } from "./parameters.ts";
import { countReplay } from "./replay-counts.ts";
import { doubtWebhooks, noteUsed } from "./webhook-use.ts";
import type { WriteTransaction } from "./writes.ts";

/** What the events of one transaction have put into the queue. */
export interface RequeuedEvents {
  readonly seqs: readonly number[];
  readonly queued: number;
  readonly skipped: number;
  /** Number of events without a payload. */
  readonly payloadsErased: number;
  readonly webhookKeys: ReadonlySet<number>;
  /** Those that this node owns. */
  readonly overtaken: readonly DeliveryRef[];
  /** Replays that had a run end here. */
  readonly superseded: ReadonlySet<number>;
}

/** A record as it was found, in either table; nobody changes it until the transaction ends. */
interface FoundRecord extends ReplayedRecord {
  readonly eventSeq: number;
  /** Null: no node owns it, or it is not in the queue. */
  readonly owner: number | null;
  readonly typeHash: number | null;
  readonly orderHash: number | null;
}

/** What remains to be written, for all events together. */
interface Changes {
  readonly added: (Returnable &
    PlaceInLine & {
      readonly eventSeq: number;
      readonly webhookKey: number;
      readonly typeHash: number | null;
    })[];
  readonly restarted: (FoundRecord & Returnable & PlaceInLine)[];
  readonly replaced: FoundRecord[];
  /** Lines that lost their heads. */
  readonly left: Line[];
}

/**
 * Starts a new run for a tenant's events wherever they are due one, in a few statements for all of them: records that have
 * ended go back to the queue, without an owner; records in the queue begin their next run and keep their owner. The tenant is
 * locked, so no other replay is in progress, and its webhooks do not change.
 *
 * @param seqs in ascending order
 */
export async function requeueEvents(
  { numbers, node }: Pick<Connection, "numbers" | "node">,
  tx: WriteTransaction,
  held: HeldTenant,
  seqs: readonly number[],
  replay: Replaying & { readonly key: number },
): Promise<RequeuedEvents> {
  const tenantKey = held.tenant.key;
  const events = await eventsOf(tx, tenantKey, seqs);
  const lines = await lockLinesOf(tx, held, [...events.values()]);
  const recordsOf = await lockRecords(tx, tenantKey, seqs);
  const all: Changes = { added: [], restarted: [], replaced: [], left: [] };
  const webhookKeys = new Set<number>();
  const superseded = new Map<number, number>();
  const before = held.counters;
  const tally = new FailureTally();
  let nextAttemptAt = tx.now;
  let queued = 0;
  let skipped = 0;
  for (const eventSeq of seqs) {
    const records = recordsOf.get(eventSeq) ?? [];
    const { type = null, orderingKey = null, payloadErased = false, aboutId = null } = events.get(eventSeq) ?? {};
    const change = requeue(held, { type, payloadErased, aboutId, records }, replay, tx);
    for (const { webhook, returnsTo } of change.added) {
      // All records of an event have the same type hash.
      const typeHash = records[0]?.typeHash ?? null;
      const place = lines.join(webhook.key, orderHashFor(webhook, orderingKey));
      all.added.push({ eventSeq, webhookKey: webhook.key, typeHash, returnsTo, ...place });
    }
    for (const record of change.restarted) {
      const webhook = held.webhooks.find(({ key }) => key === record.webhookKey);
      if (!webhook) continue;
      const isHeldBack = record.owner === heldBack;
      const found = { ...record, isHeldBack, isOwned: record.owner !== null && !isHeldBack };
      const { leaves, ...place } = lines.rejoin(webhook.key, found, orderHashFor(webhook, orderingKey));
      if (leaves !== null) all.left.push({ webhookKey: webhook.key, orderHash: leaves });
      all.restarted.push({ ...record, ...place });
    }
    all.replaced.push(...change.replaced);
    for (const key of change.superseded) superseded.set(key, (superseded.get(key) ?? 0) + 1);
    for (const key of change.webhookKeys) webhookKeys.add(key);
    held.counters = change.counters;
    tally.add(eventSeq, change.failures);
    nextAttemptAt = change.nextAttemptAt;
    queued += change.webhookKeys.length;
    skipped += change.skipped;
  }

  const inQueue = all.restarted.filter(({ state }) => state === "PENDING");
  const ended = all.restarted.filter(({ state }) => state !== "PENDING");
  const to = { tenantKey, nextAttemptAt, replayKey: replay.key };
  await overtakeRuns(tx, inQueue, to);
  await moveBack(tx, ended, to);
  await remove(tx, tenantKey, all.replaced);
  const added = all.added.map((record) => ({ ...record, key: numbers.nextKey() }));
  await add(tx, added, to);
  await releaseNext(tx, all.left, tx.now);
  await noteUsed(tx, held, new Set(added.map(({ webhookKey }) => webhookKey)));
  const withoutAttempt = all.replaced.flatMap(({ webhookKey, attempts }) => (attempts === 0 ? (webhookKey ?? []) : []));
  await doubtWebhooks(tx, tenantKey, new Set(withoutAttempt));
  const own = node();
  for (const [replayKey, runs] of superseded) {
    await countReplay(tx, { tenantKey, replayKey }, own.slot * laneSlots + rareLane, { superseded: runs });
  }
  const { pending, delivered, failed, skipped: neverSent } = held.counters;
  await count(tx, own, tenantKey, {
    pending: pending - before.pending,
    delivered: delivered - before.delivered,
    failed: failed - before.failed,
    skipped: neverSent - before.skipped,
  });
  await tally.write(tx, own, tenantKey);
  const overtaken = inQueue.flatMap(({ key, eventSeq, webhookKey, owner }) =>
    owner === own.incarnation && webhookKey !== null ? [{ tenantKey, eventSeq, webhookKey, deliveryKey: key }] : [],
  );
  const payloadsErased = [...events.values()].filter((event) => event.payloadErased).length;
  return { seqs, queued, skipped, payloadsErased, webhookKeys, overtaken, superseded: new Set(superseded.keys()) };
}

interface ReplayedEvent {
  readonly type: string | null;
  readonly payloadErased: boolean;
  readonly orderingKey: string | null;
  readonly aboutId: string | null;
}

const ofThese = `from event where tenant_key = $1::bigint and seq = any($2::bigint[]) and seq between $3::bigint and $4::bigint`;

async function eventsOf(
  { run }: WriteTransaction,
  tenantKey: number,
  seqs: readonly number[],
): Promise<Map<number, ReplayedEvent>> {
  if (seqs.length === 0) return new Map();
  const valuesOf = (some: readonly number[]) => [tenantKey, arrayText(some), Math.min(...some), Math.max(...some)];
  const rows = await run<Omit<ReplayedEvent, "aboutId"> & { seq: number }>(
    `select seq::float8 as seq, type, octet_length(payload) = 0 as "payloadErased", ordering_key as "orderingKey" ${ofThese}`,
    valuesOf(seqs),
  );
  const own = rows.flatMap(({ seq, type }) => (type !== null && isReserved(type) ? seq : []));
  const payloads =
    own.length === 0
      ? []
      : await run<{ seq: number; payload: Uint8Array }>(`select seq::float8 as seq, payload ${ofThese}`, valuesOf(own));
  const aboutIds = new Map(payloads.map(({ seq, payload }) => [seq, aboutOf(payload)]));
  return new Map(rows.map(({ seq, ...event }) => [seq, { ...event, aboutId: aboutIds.get(seq) ?? null }]));
}

/** Also locks webhooks that are no longer ordered, since records of these events may still be in their lines. */
async function lockLinesOf(
  tx: WriteTransaction,
  { webhooks }: HeldTenant,
  events: readonly ReplayedEvent[],
): Promise<LockedLines> {
  if (events.every(({ orderingKey }) => orderingKey === null)) return noLines;
  await lockLines(
    tx,
    webhooks.map(({ key }) => key),
  );
  return readLines(tx, linesOf(webhooks, events));
}

type RecordRow = Omit<FoundRecord, "state" | "before"> & { readonly state: number; readonly before: string | null };

const recordColumns = `key::float8 as key, event_seq::float8 as "eventSeq", webhook_key::float8 as "webhookKey",
  (select url from webhook where webhook.tenant_key = $1::bigint and webhook.key = webhook_key) as url, attempts,
  replay_key::float8 as "replayKey", type_hash::float8 as "typeHash", attempts_in_run as "attemptsInRun",
  error_reason as "errorReason", error_code as "errorCode", status_code as "statusCode",
  failure_key::float8 as "failureKey"`;

/**
 * The records of events, by event. Those in the queue come first: this waits for anyone settling one at this moment, and a
 * record that has then left the queue is found where it went, by a statement that begins after that.
 */
async function lockRecords(
  { run }: WriteTransaction,
  tenantKey: number,
  seqs: readonly number[],
): Promise<Map<number, FoundRecord[]>> {
  const byEvent = new Map<number, FoundRecord[]>(seqs.map((seq) => [seq, []]));
  const values = [tenantKey, arrayText(seqs), Math.min(...seqs), Math.max(...seqs)];
  const note = (rows: readonly RecordRow[]) => {
    for (const { state, before, ...record } of rows) {
      byEvent
        .get(record.eventSeq)
        ?.push({ ...record, state: deliveryStates[state] ?? "FAILED", before: beforeOf(before) });
    }
  };
  if (seqs.length === 0) return byEvent;
  note(
    await run<RecordRow>(
      `select ${recordColumns}, owner, order_hash::float8 as "orderHash", 0 as state, nullif(next_attempt_at, 0)::float8 as "nextAttemptAt",
         null::float8 as "finishedAt", before from pending
        where tenant_key = $1::bigint and event_seq = any($2::bigint[]) and event_seq between $3::bigint and $4::bigint
        order by event_seq, key for update`,
      values,
    ),
  );
  note(
    await run<RecordRow>(
      `select ${recordColumns}, null::int as owner, null::float8 as "orderHash", state, null::float8 as "nextAttemptAt",
         finished_at::float8 as "finishedAt", null as before from delivery
        where tenant_key = $1::bigint and event_seq = any($2::bigint[]) and event_seq between $3::bigint and $4::bigint
        order by event_seq, key for update`,
      values,
    ),
  );
  return byEvent;
}

interface Run {
  readonly tenantKey: number;
  readonly nextAttemptAt: number;
  readonly replayKey: number;
}

type Place = Pick<FoundRecord, "eventSeq" | "key">;

/** A tenant's records, for `unnest($2::bigint[], $3::bigint[]) as given (event_seq, key)`. */
const placesOf = (tenantKey: number, records: readonly Place[]) => [
  tenantKey,
  arrayText(records.map(({ eventSeq }) => eventSeq)),
  arrayText(records.map(({ key }) => key)),
];

/** Records in history, plus the range of their event numbers, which excludes partitions. */
const endedPlacesOf = (tenantKey: number, records: readonly Place[]) => {
  const seqs = records.map(({ eventSeq }) => eventSeq);
  return [
    ...placesOf(tenantKey, records),
    seqs.reduce((least, seq) => Math.min(least, seq)),
    seqs.reduce((most, seq) => Math.max(most, seq)),
  ];
};

const removeText = `delete from delivery using unnest($2::bigint[], $3::bigint[]) as given (event_seq, key)
  where delivery.tenant_key = $1::bigint and delivery.event_seq = given.event_seq and delivery.key = given.key
    and delivery.event_seq between $4::bigint and $5::bigint`;

/** Takes locked records; each is found as by `placesInQueue`. */
export const overtakeText = `update pending set run = run + 1, attempts_in_run = 0, replay_key = $5::bigint,
    before = given.before, order_hash = given.order_hash, next_attempt_at = case when is_held_back then 0 else $4::bigint end,
    owner = case when is_held_back then ${heldBack} else nullif(owner, ${heldBack}) end
  from unnest($2::bigint[], $3::bigint[], $6::text[], $7::bigint[], $8::boolean[])
    as given (event_seq, key, before, order_hash, is_held_back)
  cross join lateral (
    select record.ctid as place from pending record
    where record.tenant_key = $1::bigint and record.event_seq = given.event_seq and record.key = given.key offset 0) found
  where pending.ctid = found.place`;

const placesInLines = (records: readonly PlaceInLine[]) => [
  arrayText(records.map(({ orderHash }) => orderHash)),
  arrayText(records.map(({ isHeldBack }) => (isHeldBack ? "t" : "f"))),
];

const beforesOf = (records: readonly Returnable[]) => arrayText(records.map(({ returnsTo }) => beforeText(returnsTo)));

/** Records in the queue: their next run begins now, and an attempt of the previous run will find that it is late. */
async function overtakeRuns(
  { run }: WriteTransaction,
  records: readonly (Place & Returnable & PlaceInLine)[],
  to: Run,
): Promise<void> {
  if (records.length === 0) return;
  const values = [to.nextAttemptAt, to.replayKey, beforesOf(records), ...placesInLines(records)];
  await run(overtakeText, [...placesOf(to.tenantKey, records), ...values]);
}

/** Moves records from history back to the queue. */
async function moveBack(
  { run }: WriteTransaction,
  records: readonly (Place & Returnable & PlaceInLine)[],
  to: Run,
): Promise<void> {
  if (records.length === 0) return;
  await run(
    `with moved as (${removeText} returning delivery.*)
     insert into pending (tenant_key, event_seq, key, webhook_key, run, attempts_in_run, attempts, owner, next_attempt_at,
       last_attempt_at, last_duration_ms, error_reason, replay_key, attempts_forgotten, error_code, status_code, type_hash, failure_key,
       before, order_hash)
     select tenant_key, moved.event_seq, moved.key, webhook_key, run + 1, 0, attempts,
       case when is_held_back then ${heldBack} end, case when is_held_back then 0 else $6::bigint end,
       last_attempt_at, last_duration_ms, error_reason, $7::bigint, attempts_forgotten, error_code, status_code, type_hash, failure_key,
       given.before, given.order_hash
     from moved join unnest($2::bigint[], $3::bigint[], $8::text[], $9::bigint[], $10::boolean[])
       as given (event_seq, key, before, order_hash, is_held_back)
       on given.event_seq = moved.event_seq and given.key = moved.key`,
    [
      ...endedPlacesOf(to.tenantKey, records),
      ...[to.nextAttemptAt, to.replayKey, beforesOf(records), ...placesInLines(records)],
    ],
  );
}

async function remove({ run }: WriteTransaction, tenantKey: number, records: readonly Place[]): Promise<void> {
  if (records.length === 0) return;
  await run(removeText, endedPlacesOf(tenantKey, records));
}

/** Adds new records. Attempts of an earlier record for the same URL, removed and registered again, still count. */
async function add(
  { run }: WriteTransaction,
  records: readonly (Place & Changes["added"][number])[],
  { tenantKey, nextAttemptAt, replayKey }: Run,
): Promise<void> {
  if (records.length === 0) return;
  await run(
    `insert into pending (tenant_key, event_seq, key, webhook_key, run, attempts_in_run, attempts, owner, next_attempt_at, replay_key,
       type_hash, before, order_hash)
     select $1::bigint, event_seq, key, webhook_key, 1, 0,
       (select coalesce(max(attempt.number), 0) from attempt
          join webhook earlier on earlier.tenant_key = $1::bigint and earlier.key = attempt.webhook_key
         where attempt.tenant_key = $1::bigint and attempt.event_seq = added.event_seq and earlier.url =
           (select url from webhook where webhook.tenant_key = $1::bigint and webhook.key = added.webhook_key)),
       case when is_held_back then ${heldBack} end, case when is_held_back then 0 else $5::bigint end, $6::bigint,
       type_hash, before, order_hash
     from unnest($2::bigint[], $3::bigint[], $4::bigint[], $7::bigint[], $8::text[], $9::bigint[], $10::boolean[])
       as added (event_seq, key, webhook_key, type_hash, before, order_hash, is_held_back)`,
    [
      tenantKey,
      arrayText(records.map(({ eventSeq }) => eventSeq)),
      arrayText(records.map(({ key }) => key)),
      arrayText(records.map(({ webhookKey }) => webhookKey)),
      nextAttemptAt,
      replayKey,
      arrayText(records.map(({ typeHash }) => typeHash)),
      beforesOf(records),
      ...placesInLines(records),
    ],
  );
}
