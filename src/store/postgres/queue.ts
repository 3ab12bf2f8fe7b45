import type { DeliveryRef, DueDelivery } from "../../domain/delivery.ts";
import { DomainError } from "../../domain/errors.ts";
import type { Tier } from "../../domain/tenant.ts";
import { limitsOf, type WebhookLimits, type WebhookRef } from "../../domain/webhook.ts";
import { encodeEventId } from "../../lib/id.ts";
import type { Claimed, DeliveryVerbs, DueLane, QueueDepth } from "../deliveries.ts";
import { isStorageDamaged, unlessDamaged } from "../unless-damaged.ts";
import type { CancelledRuns } from "./cancelled-runs.ts";
import type { Connection } from "./connection.ts";
import { OutcomeUnknown } from "./faults.ts";
import type { HotPaths } from "./hot-paths.ts";
import { labelOf, wholeLabel } from "./labels.ts";
import { ownerLaneOf, ownerText } from "./ownership.ts";
import { arrayText } from "./parameters.ts";
import type { Pool, Value } from "./pool.ts";

/**
 * One seek per webhook that has anything waiting: the first entry of the partial index, then the first of the next webhook.
 * Only records without an owner are in that index.
 */
const waitingText = `with recursive waiting (webhook_key, tenant_key, next_attempt_at) as (
    (select webhook_key, tenant_key, next_attempt_at from pending where owner is null
      order by webhook_key, next_attempt_at limit 1)
    union all
    select next.* from waiting cross join lateral (
      select webhook_key, tenant_key, next_attempt_at from pending
      where owner is null and webhook_key > waiting.webhook_key order by webhook_key, next_attempt_at limit 1) next
  )`;

const laneColumns = `waiting.webhook_key::float8 as "webhookKey", waiting.tenant_key::float8 as "tenantKey",
  next_attempt_at::float8 as "firstDueAt"`;

/**
 * The webhooks in `waiting` that are registered. Each is looked up (`offset 0`): for a table that has not been analyzed yet,
 * the planner would compare each with all.
 */
const registeredText = `from waiting
  cross join lateral (
    select operator_suspended_at from webhook join tenant on tenant.key = webhook.tenant_key
    where webhook.tenant_key = waiting.tenant_key and webhook.key = waiting.webhook_key
      and webhook.removed_at is null and not webhook.paused and webhook.disabled_at is null and tenant.deleted_at is null offset 0) registered`;

export const discoverText = `${waitingText} select ${laneColumns} ${registeredText} order by waiting.webhook_key`;

export async function readQueueDepth(pool: Pool): Promise<QueueDepth> {
  const [counted] = await pool.read<{ pending: number }>(
    `select coalesce(sum(pending), 0)::float8 as pending from usage join tenant on tenant.key = usage.tenant_key
      where deleted_at is null and operator_suspended_at is null`,
  );
  const [first] = await pool.read<{ at: number | null }>(
    `${waitingText} select min(next_attempt_at)::float8 as at ${registeredText} where operator_suspended_at is null`,
  );
  return { pending: counted?.pending ?? 0, oldestDueAt: first?.at ?? null };
}

/** Above every number in a bigint column. */
const highest = "9223372036854775807";

/**
 * Here and below, times and webhooks are compared and ordered together, so that of two indexes on them the planner takes the
 * one with this order, which does not walk through what waits for other webhooks.
 */
export const discoverRangeText = `with due as materialized (
    select webhook_key, tenant_key, next_attempt_at from pending
    where owner is null and (next_attempt_at, webhook_key) > ($1::bigint, ${highest})
      and (next_attempt_at, webhook_key) <= ($2::bigint, ${highest})
    order by next_attempt_at, webhook_key),
  waiting (webhook_key, tenant_key, next_attempt_at) as (
    select webhook_key, tenant_key, min(next_attempt_at) from due group by 1, 2) select ${laneColumns} ${registeredText} order by waiting.webhook_key`;

/** The receiver of deliveries, as it is now. */
const receiverText = `select tenant.id, coalesce(tenant.enforced_tier, 'free') as tier, webhook.url,
    webhook.rate_limit, webhook.max_concurrency, webhook.sealed_headers
  from webhook join tenant on tenant.key = webhook.tenant_key
  where webhook.tenant_key = $3::bigint and webhook.key = $4::bigint
    and webhook.removed_at is null and not webhook.paused and webhook.disabled_at is null
    and tenant.deleted_at is null and tenant.operator_suspended_at is null`;

/**
 * What others claim at the same moment is skipped. What is due is found by its place (see `settleText`). Once the statement
 * has ended, it has either written the owner of a row or left the row as it was, and a rescue of this node comes after it
 * (`ownerText`). The replay of a run is selected in an order that only one index has.
 */
const claimTextOf = (payload: string) => `with own as (${ownerText}), receiver as materialized (${receiverText}),
  due as materialized (
    select tenant_key, event_seq, key from pending
    where owner is null and (webhook_key, next_attempt_at) >= ($4::bigint, 0)
      and (webhook_key, next_attempt_at) <= ($4::bigint, $5::bigint)
      and exists (select 1 from own) and exists (select 1 from receiver)
    order by webhook_key, next_attempt_at limit $6::int for update skip locked),
  claimed as (
    update pending set owner = $2::int from due cross join lateral (
      select record.ctid as place from pending record
      where record.tenant_key = due.tenant_key and record.event_seq = due.event_seq and record.key = due.key offset 0) found
    where pending.ctid = found.place
    returning pending.tenant_key, pending.event_seq, pending.key, owner, run, attempts_in_run, attempts, replay_key,
      next_attempt_at, order_hash, before is not null as is_returnable)
  select receiver.id as "tenantId", receiver.tier, receiver.url, receiver.rate_limit as "rateLimit",
    receiver.max_concurrency as "maxConcurrency", receiver.sealed_headers as "sealedHeaders", claimed.event_seq::float8 as "eventSeq",
    claimed.key::float8 as "deliveryKey", owner, run, attempts_in_run as "attemptsInRun", attempts,
    replay_key::float8 as "replayKey", order_hash::float8 as "orderHash", next_attempt_at::float8 as "dueAt", event.id_tail as "idTail", ${payload} as payload, event.trace,
    run_of.label, is_returnable and run_of.is_returning as "isCancelled"
  from claimed cross join receiver
  join event on event.seq = claimed.event_seq and event.tenant_key = claimed.tenant_key
  left join lateral (
    select ${wholeLabel} as label, is_returning from replay
    left join replay_label on replay_label.tenant_key = replay.tenant_key and replay_label.key = replay.label_key
    where (replay.tenant_key, replay.key) >= (claimed.tenant_key, claimed.replay_key)
      and (replay.tenant_key, replay.key) <= (claimed.tenant_key, claimed.replay_key)
    order by replay.tenant_key, replay.key limit 1) run_of
    on claimed.replay_key is not null`;

export const claimText = claimTextOf("event.payload");
/** For where a payload is damaged. */
const claimBareText = claimTextOf("null::bytea");

const payloadText = "select payload from event where seq = $1::bigint and tenant_key = $2::bigint";

export const nextDueText = `select next_attempt_at::float8 as at from pending
  where owner is null and (webhook_key, next_attempt_at) > ($2::bigint, $3::bigint)
    and (webhook_key, next_attempt_at) <= ($2::bigint, ${highest})
    and exists (select 1 from webhook join tenant on tenant.key = webhook.tenant_key
      where webhook.tenant_key = $1::bigint and webhook.key = $2::bigint
        and webhook.removed_at is null and not webhook.paused and webhook.disabled_at is null
        and tenant.deleted_at is null and tenant.operator_suspended_at is null)
  order by webhook_key, next_attempt_at limit 1`;

const released = "unnest($2::bigint[], $3::bigint[], $4::bigint[]) as given (tenant_key, event_seq, key)";
const isReleased =
  "record.tenant_key = given.tenant_key and record.event_seq = given.event_seq and record.key = given.key";

/** Each is looked up, and then found by its place: see `settleText`. Records being written at this moment are not found. */
export const releaseText = `update pending set owner = null
  from ${released} cross join lateral (select record.ctid as place from pending record where ${isReleased} offset 0) found
  where pending.ctid = found.place and owner = $1::int
  returning pending.key::float8 as key`;

/** Waits for anyone writing them. */
export const lockReleasedText = `select 1 from ${released}
  cross join lateral (select 1 from pending record where ${isReleased} and owner = $1::int for update) found`;

const releaseValues = (incarnation: number, deliveries: readonly DeliveryRef[]): Value[] => [
  incarnation,
  arrayText(deliveries.map(({ tenantKey }) => tenantKey)),
  arrayText(deliveries.map(({ eventSeq }) => eventSeq)),
  arrayText(deliveries.map(({ deliveryKey }) => deliveryKey)),
];

interface ClaimedRow
  extends Omit<DueDelivery, "webhookKey" | "tenantKey" | "eventId" | "replayGroupId" | "limits">,
    WebhookLimits {
  readonly tier: Tier;
  readonly idTail: Uint8Array;
  readonly dueAt: number;
  readonly label: string | null;
  /** Whether it waits for a cancelled replay. */
  readonly isCancelled: boolean | null;
}

interface Found {
  readonly rows: readonly ClaimedRow[];
  /** How many were claimed, including those that cannot be read. */
  readonly claimed: number;
}

/** What is to be delivered of the claimed rows of a webhook, longest due first. */
function dueOf(webhook: WebhookRef, claimed: readonly ClaimedRow[]): DueDelivery[] {
  // Each row carries a copy of them.
  const sealedHeaders = claimed[0]?.sealedHeaders ?? null;
  return claimed
    .filter((row) => !row.isCancelled)
    .sort((a, b) => a.dueAt - b.dueAt || a.deliveryKey - b.deliveryKey)
    .map(({ idTail, dueAt: _, label, isCancelled: _c, rateLimit, maxConcurrency, ...row }) => ({
      ...row,
      ...webhook,
      sealedHeaders,
      limits: limitsOf({ rateLimit, maxConcurrency }),
      eventId: encodeEventId(row.eventSeq, idTail),
      replayGroupId: label === null ? null : labelOf(label),
    }));
}

/** What waits, and who owns it. */
export function queueVerbs(
  { node }: Pick<Connection, "node">,
  { pool, underWay, holdings }: HotPaths,
  cancelledRuns: Pick<CancelledRuns, "putBack">,
): Pick<DeliveryVerbs, "isShared" | "discover" | "claim" | "release" | "queueDepth"> {
  /** Where a payload is damaged, each is read by itself. What cannot be read stays with this node, which never attempts it. */
  async function claimReadable(webhook: WebhookRef, values: readonly Value[]): Promise<Found> {
    const claimed = await pool.write<ClaimedRow>(claimBareText, values);
    const rows: ClaimedRow[] = [];
    try {
      for (const row of claimed) {
        // What is cancelled is put back, without being read.
        const read = () => pool.read<Pick<ClaimedRow, "payload">>(payloadText, [row.eventSeq, webhook.tenantKey]);
        const [found] = row.isCancelled ? [row] : await unlessDamaged(read(), []);
        if (found) rows.push({ ...row, ...found });
        else holdings.take([{ ...row, ...webhook }]);
      }
    } catch (error) {
      holdings.doubt(webhook.tenantKey);
      throw error;
    }
    return { rows, claimed: claimed.length };
  }

  async function find(webhook: WebhookRef, values: readonly Value[]): Promise<Found> {
    try {
      const rows = await pool.write<ClaimedRow>(claimText, values);
      return { rows, claimed: rows.length };
    } catch (error) {
      if (isStorageDamaged(error)) return claimReadable(webhook, values);
      throw error;
    }
  }

  return {
    isShared: true,

    async discover(range) {
      if (!range) return [...(await pool.read<DueLane>(discoverText))];
      return [...(await pool.read<DueLane>(discoverRangeText, [range.after, range.until]))];
    },

    async claim({ tenantKey, webhookKey }, now, limit): Promise<Claimed> {
      const { slot, incarnation } = node();
      const values = [ownerLaneOf({ slot }), incarnation, tenantKey, webhookKey, now, limit];
      // As long as the holdings do not compare, what is claimed here cannot be claimed again before it is put back.
      const { due, isMore } = await underWay.run(async () => {
        const { rows, claimed } = await find({ tenantKey, webhookKey }, values).catch((error) => {
          if (error instanceof OutcomeUnknown) holdings.doubt(tenantKey);
          throw error;
        });
        const due = dueOf({ tenantKey, webhookKey }, rows);
        holdings.take(due);
        const cancelled = rows.filter((row) => row.isCancelled);
        if (cancelled.length > 0) {
          const places = cancelled.map(({ eventSeq, deliveryKey, replayKey, orderHash }) => ({
            ...{ eventSeq, key: deliveryKey, replayKey, webhookKey, orderHash },
          }));
          // What is claimed is returned; what is not put back loses its owner again.
          await cancelledRuns.putBack(tenantKey, places, incarnation).catch(() => holdings.doubt(tenantKey));
        }
        return { due, isMore: claimed === limit || cancelled.length > 0 };
      });
      if (isMore) return { due, nextDueAt: now };
      const next = await pool.read<{ at: number }>(nextDueText, [tenantKey, webhookKey, now]).catch(() => null);
      // What is claimed is returned, whatever happens afterwards; then it is not known when the next one is due.
      return { due, nextDueAt: next === null ? now : (next[0]?.at ?? null) };
    },

    async release(deliveries) {
      if (deliveries.length === 0) return;
      holdings.end(deliveries);
      try {
        const { incarnation } = node();
        const found = await pool.write<{ key: number }>(releaseText, releaseValues(incarnation, deliveries));
        if (found.length === deliveries.length) return;
        const keys = new Set(found.map(({ key }) => key));
        const rest = deliveries.filter(({ deliveryKey }) => !keys.has(deliveryKey));
        // They are gone, or being written by a replay, after which they still belong to this node.
        await pool.transact(async (tx) => {
          await tx.run(lockReleasedText, releaseValues(incarnation, rest));
          await tx.run(releaseText, releaseValues(incarnation, rest));
        });
      } catch (error) {
        // The caller must not try again: by then one of them may have been claimed again, and be in flight.
        if (!(error instanceof OutcomeUnknown || error instanceof DomainError)) throw error;
        for (const { tenantKey } of deliveries) holdings.doubt(tenantKey);
      }
    },

    queueDepth: () => readQueueDepth(pool),
  };
}
