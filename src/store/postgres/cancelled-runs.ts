import { beforeOf, type ReturnedRecord, returned } from "../../domain/cancelled-run.ts";
import type { DeliveryState } from "../../domain/delivery.ts";
import { kindWithoutLine, movesOf } from "../../domain/failure-groups.ts";
import type { ReplayVerbs, ReturnedRecords } from "../store.ts";
import type { Connection } from "./connection.ts";
import { endedStates } from "./ended-states.ts";
import { heldBack } from "./event-schema.ts";
import { describeGroup, FailureTally, groupsThere, type KnownGroups } from "./failure-counts.ts";
import { count, type HeldTenant, hold } from "./held-tenants.ts";
import { unownText } from "./holdings.ts";
import { lockLines, releaseNext } from "./lines.ts";
import { arrayText } from "./parameters.ts";
import { rowAt, toReplay } from "./replay-rows.ts";
import { doubtWebhooks } from "./webhook-use.ts";
import type { WriteTransaction } from "./writes.ts";

/** Where a record is in the queue, and the cancelled replay that it waits for. */
export interface QueuedPlace {
  readonly eventSeq: number;
  readonly key: number;
  readonly replayKey: number | null;
  readonly webhookKey: number;
  readonly orderHash: number | null;
}

export interface CancelledRuns extends Pick<ReplayVerbs, "returnCancelled"> {
  /** Like `returnCancelled`, for records that this node has claimed and does not hold. Afterwards it owns none of them. */
  putBack(tenantKey: number, places: readonly QueuedPlace[], incarnation: number): Promise<void>;
}

interface WaitingRow extends QueuedPlace {
  readonly isHeldBack: boolean;
  readonly lastAttemptAt: number | null;
  readonly failureKey: number | null;
  readonly attempts: number;
  readonly before: string | null;
}

interface Returning {
  readonly row: WaitingRow;
  readonly record: ReturnedRecord | null;
}

const selectReturningText = `select replay.key::float8 as "replayKey", replay.tenant_key::float8 as "tenantKey",
    tenant.id as "tenantId"
  from replay join tenant on tenant.key = replay.tenant_key where is_returning order by replay.key`;

/** Records that wait for a replay and that no node owns. */
export const toReturnText = `select event_seq::float8 as "eventSeq", key::float8 as key,
    replay_key::float8 as "replayKey", webhook_key::float8 as "webhookKey", order_hash::float8 as "orderHash" from pending
  where tenant_key = $1::bigint and replay_key = $2::bigint and before is not null
    and (owner is null or owner = ${heldBack}) limit $3::int`;

/** Names the phase that it leaves out, too: the index has all three. */
const failedAskedText = `select (min(created_at) filter (where kind = 'failed' and phase <> 'queued'))::float8 as at
  from replay where tenant_key = $1::bigint and phase in ('waiting', 'queueing', 'queued')`;

const isLeftText =
  "select 1 from pending where tenant_key = $1::bigint and replay_key = $2::bigint and before is not null limit 1";

/** Those of these records that no other replay has begun a run of, and whose owner is unchanged; locked. */
export const lockCancelledText = `select record.event_seq::float8 as "eventSeq", record.key::float8 as key,
    record.webhook_key::float8 as "webhookKey", record.failure_key::float8 as "failureKey", record.attempts,
    record.last_attempt_at::float8 as "lastAttemptAt", record.replay_key::float8 as "replayKey", record.before,
    record.order_hash::float8 as "orderHash", record.owner is not distinct from ${heldBack} as "isHeldBack"
  from unnest($2::bigint[], $3::bigint[], $4::bigint[]) as given (event_seq, key, replay_key)
  cross join lateral (
    select * from pending where pending.tenant_key = $1::bigint and pending.event_seq = given.event_seq
      and pending.key = given.key
      and (owner is not distinct from $5::int or $5::int is null and owner = ${heldBack})
    offset 0 for update skip locked) record
  where record.replay_key = given.replay_key and record.before is not null`;

const waits = 0;
/** The record has no state and is deleted. */
const goes = 99;
const stateColumn = { PENDING: waits, ...endedStates } as const satisfies Record<DeliveryState, number>;

/** Takes locked records; each is found as by `placesInQueue`. */
export const returnText = `with found as materialized (
    select given.*, record.place
    from unnest($2::bigint[], $3::bigint[], $4::int[], $5::bigint[], $6::int[], $7::bigint[], $8::text[], $9::text[],
      $10::int[], $11::bigint[]) as given (event_seq, key, state, at, in_run, replay, reason, code, status, failure)
    cross join lateral (
      select pending.ctid as place from pending where pending.tenant_key = $1::bigint
        and pending.event_seq = given.event_seq and pending.key = given.key offset 0) record),
  waiting as (
    update pending set run = pending.run + 1, attempts_in_run = in_run, next_attempt_at = at, replay_key = replay,
      error_reason = reason, error_code = code, status_code = status, failure_key = failure, before = null,
      owner = case when at = 0 then ${heldBack} end
    from found where found.state = ${waits} and pending.ctid = found.place),
  gone as (
    delete from pending using found where found.state > ${waits} and pending.ctid = found.place
    returning pending.*, found.state, found.at, found.in_run, found.replay, found.reason, found.code, found.status,
      found.failure)
  insert into delivery (tenant_key, event_seq, key, webhook_key, run, attempts_in_run, attempts, replay_key,
    attempts_forgotten, last_attempt_at, last_duration_ms, error_reason, error_code, status_code, state, finished_at,
    type_hash, failure_key)
  select tenant_key, event_seq, key, webhook_key, run + 1, in_run, attempts, replay, attempts_forgotten, last_attempt_at,
    last_duration_ms, reason, code, status, state, at, type_hash, failure
  from gone where state < ${goes}`;

/** Records that wait for a cancelled replay and should no longer (`domain/cancelled-run.ts`). */
export function createCancelledRuns(
  { pool, writes, node }: Pick<Connection, "pool" | "writes" | "node">,
  groups: KnownGroups,
): CancelledRuns {
  /** @returns how many, and the webhooks for which some of them, or the next in their lines, still wait */
  async function putBack(
    tx: WriteTransaction,
    held: HeldTenant,
    places: readonly QueuedPlace[],
    owner: number | null,
  ): Promise<{ put: number; webhookKeys: ReadonlySet<number> }> {
    const tenantKey = held.tenant.key;
    await lockLines(
      tx,
      places.flatMap(({ webhookKey, orderHash }) => (orderHash === null ? [] : webhookKey)),
    );
    const found = await tx.run<WaitingRow>(lockCancelledText, [
      tenantKey,
      ...listsOf(places),
      arrayText(places.map(({ replayKey }) => replayKey)),
      owner,
    ]);
    const [asked] = await tx.run<{ at: number | null }>(failedAskedText, [tenantKey]);
    const { now, orderedNow } = tx;
    const at = { now, orderedNow, failedAskedAt: asked?.at ?? null };
    const returning = found.flatMap((row) => {
      const before = beforeOf(row.before);
      return before ? [{ row, record: returned(before, row, at) }] : [];
    });
    if (returning.length === 0) return { put: 0, webhookKeys: new Set() };
    const records = await countAgain(tx, tenantKey, returning);
    await tx.run(returnText, [tenantKey, ...listsOf(records.map(({ row }) => row)), ...columnsOf(records)]);
    const inState = (state: DeliveryState) => records.filter(({ record }) => record?.state === state);
    const waiting = inState("PENDING");
    await count(tx, node(), tenantKey, {
      pending: waiting.length - records.length,
      delivered: inState("DELIVERED").length,
      failed: inState("FAILED").length,
      skipped: inState("SKIPPED").length,
    });
    const unnamed = records.flatMap(({ row, record }) => (!record && row.attempts === 0 ? [row.webhookKey] : []));
    await doubtWebhooks(tx, tenantKey, new Set(unnamed));
    for (const [replayKey, those] of Map.groupBy(records, ({ row }) => row.replayKey)) {
      await tx.run(
        "update replay set returned = returned + $3::bigint where tenant_key = $1::bigint and key = $2::bigint",
        [tenantKey, replayKey, those.length],
      );
    }
    const heads = records.flatMap(({ row: { webhookKey, orderHash, isHeldBack }, record }) =>
      orderHash === null || isHeldBack || record?.state === "PENDING" ? [] : [{ webhookKey, orderHash }],
    );
    const released = await releaseNext(tx, heads, tx.now);
    const woken = [...waiting.map(({ row }) => row), ...released];
    return { put: records.length, webhookKeys: new Set(woken.map(({ webhookKey }) => webhookKey)) };
  }

  /** Moves them to the groups of their earlier failures; those groups may be gone. */
  async function countAgain(
    tx: WriteTransaction,
    tenantKey: number,
    records: readonly Returning[],
  ): Promise<readonly Returning[]> {
    await groups.learn([tenantKey]);
    const there = await groupsThere(
      tx,
      tenantKey,
      records.flatMap(({ record }) => record?.failureKey ?? []),
    );
    const tally = new FailureTally();
    const counted: Returning[] = [];
    for (const { row, record } of records) {
      const kind = record && kindWithoutLine(record, row.webhookKey);
      let failureKey = kind && record.failureKey;
      if (kind && (failureKey === null || !there.has(failureKey))) {
        failureKey = groups.keyOf(tenantKey, kind);
        await describeGroup(tx, { tenantKey, key: failureKey, kind });
      }
      const now = record && { ...record, failureKey };
      tally.add(row.eventSeq, movesOf({ ...row, state: "PENDING" }, now), record?.failedAt ?? 0);
      counted.push({ row, record: now });
    }
    await tally.write(tx, node(), tenantKey);
    return counted;
  }

  const returnSome = (ref: { tenantKey: number; replayKey: number; tenantId: string }, limit: number) =>
    writes.submit(async (tx): Promise<ReturnedRecords | "owned" | null> => {
      const { tenantKey, replayKey, tenantId } = ref;
      const held = await hold(tx, tenantKey);
      const places = held.gone ? [] : await tx.run<QueuedPlace>(toReturnText, [tenantKey, replayKey, limit]);
      const { put, webhookKeys } = await putBack(tx, held, places, null);
      if (put > 0) {
        const webhooks = [...webhookKeys].map((webhookKey) => ({ tenantKey, webhookKey }));
        return { replay: toReplay(await rowAt(tx, ref)), tenantId, webhooks };
      }
      const isLeft = !held.gone && (await tx.run(isLeftText, [tenantKey, replayKey])).length > 0;
      if (isLeft) return "owned";
      await tx.run("update replay set is_returning = false where tenant_key = $1::bigint and key = $2::bigint", [
        tenantKey,
        replayKey,
      ]);
      return null;
    });

  return {
    putBack: (tenantKey, places, incarnation) =>
      writes.submit(async (tx) => {
        const held = await hold(tx, tenantKey);
        if (held.gone) return;
        await putBack(tx, held, places, incarnation);
        // Another replay may have begun a run of some since: they have kept an owner that does not know of them.
        await tx.run(unownText, [tenantKey, ...listsOf(places), incarnation]);
      }),

    async returnCancelled(limit) {
      let isOwned = false;
      const returning = await pool.read<{ tenantKey: number; replayKey: number; tenantId: string }>(
        selectReturningText,
      );
      for (const ref of returning) {
        const some = await returnSome(ref, limit);
        if (some !== "owned" && some !== null) return some;
        isOwned ||= some === "owned";
      }
      return isOwned ? "owned" : null;
    },
  };
}

const listsOf = (places: readonly QueuedPlace[]) => [
  arrayText(places.map(({ eventSeq }) => eventSeq)),
  arrayText(places.map(({ key }) => key)),
];

function columnsOf(records: readonly { readonly record: ReturnedRecord | null }[]): string[] {
  const list = (column: (record: ReturnedRecord) => number | string | null) =>
    arrayText(records.map(({ record }) => record && column(record)));
  return [
    arrayText(records.map(({ record }) => (record ? stateColumn[record.state] : goes))),
    list(({ nextAttemptAt, finishedAt }) => nextAttemptAt ?? finishedAt ?? 0),
    arrayText(records.map(({ record }) => record?.attemptsInRun ?? 0)),
    list(({ replayKey }) => replayKey),
    list(({ errorReason }) => errorReason),
    list(({ errorCode }) => errorCode),
    list(({ statusCode }) => statusCode),
    list(({ failureKey }) => failureKey),
  ];
}
