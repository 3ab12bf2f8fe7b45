import { type Failure, serverRestored, webhookDisabled, webhookRemoved } from "../../domain/failure.ts";
import { kindWithoutAnswer, movesOf } from "../../domain/failure-groups.ts";
import { giveUp } from "../../domain/settlement.ts";
import type { WebhookRef } from "../../domain/webhook.ts";
import type { DeliveryVerbs } from "../deliveries.ts";
import type { Connection } from "./connection.ts";
import { endedStates } from "./ended-states.ts";
import { heldBack, laneSlots } from "./event-schema.ts";
import { describeGroup, FailureTally } from "./failure-counts.ts";
import { count, hold, rareLane } from "./held-tenants.ts";
import type { HotPaths } from "./hot-paths.ts";
import { lockLines, releaseNext } from "./lines.ts";
import { arrayText } from "./parameters.ts";
import type { Transaction } from "./pool.ts";
import { placesInQueue } from "./queue-places.ts";
import { completeReplays, countReplay } from "./replay-counts.ts";
import type { WriteTransaction } from "./writes.ts";

/** How long after a webhook was closed a node that has died since may still have added to what waits for it. */
const lateMs = 60_000;

/** A webhook that nothing is sent to any longer. */
interface Closed extends WebhookRef {
  /** When it was removed, or disabled. */
  readonly closedAt: number;
  readonly isRemoved: boolean;
}

interface Waiting {
  readonly eventSeq: number;
  readonly key: number;
  readonly replayKey: number | null;
  readonly failureKey: number | null;
  /** The line that it is the head of: when a held-back record ends, that releases nothing. */
  readonly orderHash: number | null;
}

const closedText = (at: "removed_at" | "disabled_at", and: string) =>
  `select tenant_key::float8 as "tenantKey", key::float8 as "webhookKey", ${at}::float8 as "closedAt",
     removed_at is not null as "isRemoved"
   from webhook where ${at} is not null and ${and} and not drained
     and (${at} <= $2::bigint or (key, ${at}) not in (select * from unnest($3::bigint[], $4::bigint[]))) order by ${at} limit $1::int`;

/** Takes locked records. */
export const failText = `with ended as (
    delete from pending using ${placesInQueue} where pending.ctid = found.place returning pending.*)
  insert into delivery (tenant_key, event_seq, key, webhook_key, run, attempts_in_run, attempts, replay_key,
    attempts_forgotten, last_attempt_at, last_duration_ms, error_reason, error_code, state, finished_at, type_hash, failure_key)
  select tenant_key, event_seq, key, webhook_key, run, attempts_in_run, attempts, replay_key, attempts_forgotten,
    last_attempt_at, last_duration_ms, $4::text, $5::text, ${endedStates.FAILED}, $6::bigint, type_hash, $7::bigint
  from ended returning replay_key::float8 as "replayKey"`;

/** Webhooks for which something waits that nobody owns: for its time, or behind another of its line. */
const unownedText = `(select tenant_key::float8 as "tenantKey", webhook_key::float8 as "webhookKey" from pending
    where owner is null order by webhook_key, next_attempt_at limit $1::int)
  union all
  (select tenant_key::float8, webhook_key::float8 from pending
    where owner = ${heldBack} order by webhook_key, order_hash, event_seq limit $1::int)`;

/** What waits for webhooks that are gone or disabled; and everything that waits, where none of it may be sent. */
export function removalVerbs(
  { pool, writes, clock, node }: Connection,
  { groups }: Pick<HotPaths, "groups">,
): Pick<DeliveryVerbs, "failUndeliverable" | "failPending"> {
  /** @returns replays that had runs end */
  async function fail(
    { tenantKey, webhookKey }: WebhookRef,
    failure: Failure,
    records: readonly Waiting[],
    { tx, isGone }: { tx: WriteTransaction; isGone: boolean },
  ): Promise<number[]> {
    const now = tx.orderedNow;
    const { slot } = node();
    const { errorReason, errorCode, finishedAt } = giveUp(failure, now);
    const kind = kindWithoutAnswer(failure, webhookKey);
    await groups.learn([tenantKey]);
    // For a deleted account nothing is counted any more.
    const failureKey = isGone ? null : groups.keyOf(tenantKey, kind);
    if (failureKey !== null) await describeGroup(tx, { tenantKey, key: failureKey, kind });
    const ended = await tx.run<{ replayKey: number | null }>(failText, [
      tenantKey,
      arrayText(records.map(({ eventSeq }) => eventSeq)),
      arrayText(records.map(({ key }) => key)),
      errorReason,
      errorCode,
      finishedAt,
      failureKey,
    ]);
    const tally = new FailureTally();
    for (const record of records) {
      tally.add(record.eventSeq, movesOf({ ...record, state: "PENDING" }, { state: "FAILED", failureKey }), now);
    }
    if (!isGone) await tally.write(tx, node(), tenantKey);
    await count(tx, node(), tenantKey, { pending: -ended.length, failed: ended.length });
    const lines = records.flatMap(({ orderHash }) => orderHash ?? []);
    await releaseNext(
      tx,
      lines.map((orderHash) => ({ webhookKey, orderHash })),
      now,
    );
    const runs = new Map<number, number>();
    for (const { replayKey } of ended) if (replayKey !== null) runs.set(replayKey, (runs.get(replayKey) ?? 0) + 1);
    for (const [replayKey, failed] of runs) {
      await countReplay(tx, { tenantKey, replayKey }, slot * laneSlots + rareLane, { failed });
    }
    return [...runs.keys()];
  }

  /** Ends up to `limit` records of one webhook. @returns how many */
  async function drain(webhook: Closed, limit: number): Promise<number> {
    const { tenantKey, webhookKey, closedAt, isRemoved } = webhook;
    const { failed, replayKeys } = await writes.submit(async (tx) => {
      // A replay moves records, too.
      const { gone: isGone, webhooks } = await hold(tx, tenantKey);
      // It has been enabled meanwhile, or it was removed, and then comes up again as removed.
      const isOpen = !isRemoved && !webhooks.some(({ key, disabled }) => key === webhookKey && disabled);
      if (isOpen) return { failed: 0, replayKeys: [] };
      await lockLines(tx, [webhookKey]);
      const records = await waitingFor(tx, webhook, limit);
      const failure = isRemoved ? webhookRemoved : webhookDisabled;
      const replayKeys = records.length === 0 ? [] : await fail(webhook, failure, records, { tx, isGone });
      if (records.length < limit && closedAt <= tx.now - lateMs) {
        // Records that a lane is working on were skipped, and those in flight were left.
        await tx.run(
          `update webhook set drained = true where tenant_key = $1::bigint and key = $2::bigint and not exists (
             select 1 from pending where tenant_key = $1::bigint and webhook_key = $2::bigint)`,
          [tenantKey, webhookKey],
        );
      }
      return { failed: records.length, replayKeys };
    });
    await complete(tenantKey, replayKeys);
    return failed;
  }

  const complete = (tenantKey: number, replayKeys: readonly number[]) =>
    completeReplays(
      pool,
      replayKeys.map((replayKey) => ({ tenantKey, replayKey })),
      clock.now(),
    );

  /** Ends up to `limit` records of one webhook that nobody owns. @returns how many */
  async function abandon(webhook: WebhookRef, limit: number): Promise<number> {
    const { tenantKey, webhookKey } = webhook;
    const { failed, replayKeys } = await writes.submit(async (tx) => {
      const { gone: isGone } = await hold(tx, tenantKey);
      await lockLines(tx, [webhookKey]);
      const records = await unownedFor(tx, webhook, limit);
      if (records.length === 0) return { failed: 0, replayKeys: [] };
      return { failed: records.length, replayKeys: await fail(webhook, serverRestored, records, { tx, isGone }) };
    });
    await complete(tenantKey, replayKeys);
    return failed;
  }

  /** Webhooks for which nothing waits, closed less than `lateMs` ago: they are checked once more when that time has passed. */
  const empty = new Map<number, Closed>();

  function forgetOld(before: number): void {
    for (const [webhookKey, { closedAt }] of empty) if (closedAt <= before) empty.delete(webhookKey);
  }

  return {
    async failUndeliverable(limit) {
      const lateBefore = clock.now() - lateMs;
      forgetOld(lateBefore);
      const seen = [...empty.values()];
      const values = [
        ...[limit, lateBefore],
        ...[arrayText(seen.map(({ webhookKey }) => webhookKey)), arrayText(seen.map(({ closedAt }) => closedAt))],
      ];
      const removed = await pool.read<Closed>(closedText("removed_at", "true"), values);
      const disabled = await pool.read<Closed>(closedText("disabled_at", "removed_at is null"), values);
      let left = limit;
      for (const webhook of [...removed, ...disabled]) {
        const failed = await drain(webhook, left);
        if (failed < left && webhook.closedAt > lateBefore) empty.set(webhook.webhookKey, webhook);
        left -= failed;
        if (left === 0) return true;
      }
      return removed.length === limit || disabled.length === limit;
    },

    async failPending(limit) {
      const found = await pool.read<WebhookRef>(unownedText, [limit]);
      const webhooks = new Map(found.map((webhook) => [webhook.webhookKey, webhook]));
      let failed = 0;
      for (const webhook of webhooks.values()) {
        if (failed < limit) failed += await abandon(webhook, limit - failed);
      }
      return failed;
    },
  };
}

const columns = `event_seq::float8 as "eventSeq", key::float8 as key, replay_key::float8 as "replayKey",
  failure_key::float8 as "failureKey",
  case when owner is distinct from ${heldBack} then order_hash::float8 end as "orderHash"`;

/** Records that wait for a webhook and that nobody owns; locked, skipping those that a lane is working on. */
async function unownedFor({ run }: Transaction, { webhookKey }: WebhookRef, limit: number): Promise<Waiting[]> {
  // Held-back records first, so that hardly any have to be released from behind the heads.
  const held = await run<Waiting>(
    `select ${columns} from pending
      where owner = ${heldBack} and webhook_key = $1::bigint order by order_hash, event_seq limit $2::int
      for update skip locked`,
    [webhookKey, limit],
  );
  if (held.length === limit) return held;
  const unowned = await run<Waiting>(
    `select ${columns} from pending where owner is null and (webhook_key, next_attempt_at) >= ($1::bigint, 0)
      and (webhook_key, next_attempt_at) <= ($1::bigint, 9223372036854775807)
      order by webhook_key, next_attempt_at limit $2::int for update skip locked`,
    [webhookKey, limit - held.length],
  );
  return [...held, ...unowned];
}

/**
 * Like `unownedFor`, for a removed webhook followed by records that somebody owns. Those without an owner are in an index by
 * webhook; the rest have to be searched among all that the tenant has in the queue, since no index covers them.
 *
 * What is owned for a disabled webhook is in flight. In history it would have no owner, and once the webhook is enabled, a
 * replay would start it again beside that attempt. It ends with the attempt, or without an owner once its node is dead.
 */
async function waitingFor(tx: Transaction, webhook: Closed, limit: number): Promise<Waiting[]> {
  const unowned = await unownedFor(tx, webhook, limit);
  if (!webhook.isRemoved || unowned.length === limit) return unowned;
  const owned = await tx.run<Waiting>(
    `select ${columns} from pending where tenant_key = $1::bigint and webhook_key = $2::bigint and owner <> ${heldBack}
      order by event_seq desc limit $3::int for update skip locked`,
    [webhook.tenantKey, webhook.webhookKey, limit - unowned.length],
  );
  return [...unowned, ...owned];
}
