import type { DueDelivery } from "../../domain/delivery.ts";
import { unreadable } from "../../domain/failure.ts";
import type { Tier } from "../../domain/tenant.ts";
import type { TraceContext } from "../../domain/trace-context.ts";
import { limitsOf, type WebhookLimits, type WebhookRef } from "../../domain/webhook.ts";
import { encodeEventId } from "../../lib/id.ts";
import type { Claimed, DeliveryVerbs, DueLane, DueRange } from "../deliveries.ts";
import { isStorageDamaged } from "../unless-damaged.ts";
import type { PutBack } from "./cancelled-runs.ts";
import type { Connection } from "./connection.ts";
import { damagedEvent, isWhole, unlessDamaged } from "./damage.ts";
import { pendingWebhooks } from "./queue-depth.ts";
import { wholeLabel } from "./replay-rows.ts";
import { type WaitingRecord, type WaitingRecords, waitingColumns } from "./waiting-records.ts";

const ever: DueRange = { after: -1, until: Number.MAX_SAFE_INTEGER };

/** What waits, and who owns it. These statements run for every batch, so they are prepared SQL (architecture, "SQL"). */
export function queueVerbs(
  { client, writer, ownership, reader, reportDamage }: Connection,
  waiting: WaitingRecords,
  cancelledRuns: PutBack,
): Pick<DeliveryVerbs, "isShared" | "discover" | "claim" | "release" | "queueDepth"> {
  const selectLanes = client.prepare<DueLane, [number, number, string]>(`
    with recursive lane (webhook_key) as (${pendingWebhooks}),
    found (webhookKey, tenantKey, firstDueAt) as (
      select lane.webhook_key, webhook.tenant_key,
             (select min(next_attempt_at) from delivery where state = 0 and delivery.webhook_key = lane.webhook_key
                and next_attempt_at > ?1 and next_attempt_at <= ?2
                and delivery.key not in (select value from json_each(?3)))
      from lane join webhook on webhook.key = lane.webhook_key join tenant on tenant.key = webhook.tenant_key
      where webhook.removed_at is null and not webhook.paused and webhook.disabled_at is null and tenant.deleted_at is null
    )
    select webhookKey, tenantKey, firstDueAt from found where firstDueAt is not null`);

  // Queried first: with these conditions in the row query, every row of a suspended account's backlog would be read.
  const selectReceiver = client.prepare<Receiver, [number]>(`
    select tenant.key as tenantKey, tenant.id as tenantId, coalesce(tenant.enforced_tier, 'free') as tier, webhook.url,
           webhook.rate_limit as rateLimit, webhook.max_concurrency as maxConcurrency, webhook.sealed_headers as sealedHeaders
    from webhook join tenant on tenant.key = webhook.tenant_key
    where webhook.key = ?1
      and webhook.removed_at is null and not webhook.paused and webhook.disabled_at is null
      and tenant.deleted_at is null and tenant.operator_suspended_at is null`);

  const dueColumns = `
    select d.key, d.event_seq as eventSeq, d.run, d.attempts_in_run as attemptsInRun, d.attempts,
           d.replay_key as replayKey, d.order_hash as orderHash, ${wholeLabel} as replayGroupId, event.id_tail as idTail, event.payload, event.checksum, event.trace,
           replay.is_returning = 1 and d.before is not null as isCancelled
    from delivery d
    join event on event.seq = d.event_seq
    left join replay on replay.key = d.replay_key`;
  const selectDue = client.prepare<DueRow, [number, number, number, string]>(`${dueColumns}
    where d.state = 0 and d.webhook_key = ?1 and d.next_attempt_at <= ?2
      and d.key not in (select value from json_each(?4))
    order by d.next_attempt_at, d.key
    limit ?3`);

  // Reads only the index, which a damaged row leaves intact.
  const selectDueKeys = client.prepare<{ key: number }, [number, number, number, string, number]>(
    `select key from delivery where state = 0 and webhook_key = ?1 and next_attempt_at <= ?2
       and key not in (select value from json_each(?4))
     order by next_attempt_at, key limit ?3 offset ?5`,
  );
  const selectDueByKey = client.prepare<DueRow, [number]>(`${dueColumns} where d.key = ?1`);
  const selectPending = client.prepare<WaitingRecord, [number]>(
    `select ${waitingColumns} from delivery where key = ?1 and state = 0`,
  );

  const selectNextDue = client.prepare<{ at: number | null }, [number, number, string]>(
    `select min(next_attempt_at) as at from delivery where state = 0 and webhook_key = ?1 and next_attempt_at > ?2
       and key not in (select value from json_each(?3))`,
  );

  /** Like `selectDue`, but row by row and without the damaged ones. */
  function readableDue(
    webhookKey: number,
    now: number,
    limit: number,
    owned: string,
  ): { rows: DueRow[]; damaged: number[] } {
    const rows: DueRow[] = [];
    const damaged: number[] = [];
    for (let offset = 0; rows.length < limit; offset += limit) {
      const keys = selectDueKeys.all(webhookKey, now, limit, owned, offset);
      for (const { key } of keys) {
        const row = unlessDamaged(() => selectDueByKey.get(key));
        if (row && isWhole(row.payload, row.checksum)) rows.push(row);
        else damaged.push(key);
      }
      if (keys.length < limit) break;
    }
    return { rows: rows.slice(0, limit), damaged };
  }

  /** An unreadable event is never delivered: its record fails, and its webhook continues with the others. */
  async function failDamaged(webhookKey: number, keys: readonly number[]): Promise<void> {
    for (const deliveryKey of keys) {
      try {
        await writer.submit<void>((tx) => {
          const found = selectPending.get(deliveryKey);
          if (!found) return;
          waiting.fail(tx, found, unreadable);
          reportDamage(damagedEvent(found.eventSeq));
        });
      } catch (error) {
        if (!isStorageDamaged(error)) throw error;
        // It stays owned until the next restart: nothing is sent whose outcome cannot be stored.
        ownership.take([{ webhookKey, deliveryKey }]);
        reportDamage(`The delivery with the key ${deliveryKey}`);
      }
    }
  }

  /** What is due and unowned, and the keys of what cannot be claimed because it is damaged or its replay was cancelled. */
  function findDue({ webhookKey }: WebhookRef, now: number, limit: number): Found {
    const found = selectReceiver.get(webhookKey);
    if (!found) return { due: [], nextDueAt: null, damaged: [], cancelled: [] };
    const { rateLimit: _r, maxConcurrency: _m, ...receiver } = found;
    const limits = limitsOf(found);
    const owned = ownership.listOf(webhookKey);
    const read = unlessDamaged(() => selectDue.all(webhookKey, now, limit, owned));
    const isRead = read?.every(({ payload, checksum }) => isWhole(payload, checksum));
    const { rows, damaged } = read && isRead ? { rows: read, damaged: [] } : readableDue(webhookKey, now, limit, owned);
    const cancelled = rows.flatMap(({ key, isCancelled }) => (isCancelled ? [key] : []));
    const due = rows.flatMap(({ key, idTail, checksum: _, isCancelled, ...row }): DueDelivery[] => {
      if (isCancelled) return [];
      return [
        { deliveryKey: key, webhookKey, eventId: encodeEventId(row.eventSeq, idTail), ...receiver, limits, ...row },
      ];
    });
    // What has been put back may be due again by then, and so may the next one in its line or in that of a damaged one.
    const isMore = rows.length === limit || cancelled.length > 0 || damaged.length > 0;
    const nextDueAt = isMore ? now : (selectNextDue.get(webhookKey, now, owned)?.at ?? null);
    return { due, nextDueAt, damaged, cancelled };
  }

  return {
    isShared: false,

    discover: async ({ after, until } = ever) => selectLanes.all(after, until, ownership.listAll()),

    async claim(webhook, now, limit) {
      const { due, nextDueAt, damaged, cancelled } = findDue(webhook, now, limit);
      ownership.take(due);
      try {
        await failDamaged(webhook.webhookKey, damaged);
        if (cancelled.length > 0) await writer.submit<void>((tx) => cancelledRuns.putBack(tx, cancelled));
      } catch (error) {
        ownership.end(due);
        throw error;
      }
      return { due, nextDueAt };
    },

    release: async (deliveries) => ownership.end(deliveries),

    // With a thousand waiting webhooks this takes 10 ms, each time the metrics are read.
    queueDepth: () => reader.run("queueDepth", undefined),
  };
}

interface Receiver extends WebhookLimits {
  readonly tenantKey: number;
  readonly tenantId: string;
  readonly tier: Tier;
  readonly url: string;
  readonly sealedHeaders: Uint8Array | null;
}

interface DueRow {
  key: number;
  eventSeq: number;
  run: number;
  attemptsInRun: number;
  attempts: number;
  replayKey: number | null;
  replayGroupId: string | null;
  orderHash: number | null;
  idTail: Uint8Array;
  payload: Uint8Array;
  trace: TraceContext | null;
  checksum: number | null;
  isCancelled: number | null;
}

interface Found extends Claimed {
  readonly damaged: readonly number[];
  readonly cancelled: readonly number[];
}
