import { beforeText } from "../../domain/cancelled-run.ts";
import type { DeliveryRef } from "../../domain/delivery.ts";
import { isReserved } from "../../domain/event-types.ts";
import { join, rejoin } from "../../domain/order.ts";
import { aboutOf } from "../../domain/own-events.ts";
import { type Replaying, requeue } from "../../domain/requeue.ts";
import { orderHashFor } from "../order-hash.ts";
import type { Connection } from "./connection.ts";
import type { FailureLedger } from "./failure-ledger.ts";
import type { HeldTenant } from "./held-tenants.ts";
import { createLines } from "./lines.ts";
import type { ReplayLedger } from "./replay-ledger.ts";
import { type Done, type ReplayedRow, toReplayed } from "./replay-rows.ts";
import type { WriteTransaction } from "./transaction.ts";
import { createWebhookUse } from "./webhook-use.ts";

/** What the events of one transaction have added to the queue. */
export interface Queued {
  readonly webhookKeys: Set<number>;
  readonly overtaken: DeliveryRef[];
  readonly seqs: number[];
}

export const createQueued = (): Queued => ({ webhookKeys: new Set(), overtaken: [], seqs: [] });

export interface RequeuedEvents {
  /**
   * Starts a new run of one event for every webhook that is due one, as `requeue` decides. The account's records are filed.
   * @param inAll takes what the transaction must tell of
   */
  requeueEvent(
    tx: WriteTransaction,
    held: HeldTenant,
    eventSeq: number,
    replay: Replaying & { readonly key: number },
    inAll: Queued,
  ): Done;
  /** Of an event that may not be there: then it has neither a type nor an erased payload. */
  contentOf(eventSeq: number): { readonly type: string | null; readonly isErased: boolean };
}

/** Puts the records of replayed events back into the queue. */
export function createRequeuedEvents(
  { client, rowKeys, ownership }: Pick<Connection, "client" | "rowKeys" | "ownership">,
  ledger: ReplayLedger,
  failures: FailureLedger,
): RequeuedEvents {
  const recordsOf = client.prepare<ReplayedRow, [number, number]>(
    `select key, webhook_key as webhookKey, (select url from webhook where webhook.key = webhook_key) as url, state, attempts,
       replay_key as replayKey, attempts_in_run as attemptsInRun, next_attempt_at as nextAttemptAt, finished_at as finishedAt,
       error_reason as errorReason, error_code as errorCode, status_code as statusCode, before, failure_key as failureKey, order_hash as orderHash
     from delivery where tenant_key = ?1 and filed = 1 and event_seq = ?2 order by key`,
  );
  const selectContent = client.prepare<{ type: string | null; payloadErased: number }, [number]>(
    "select type, length(payload) = 0 as payloadErased from event where seq = ?1",
  );
  const payloadOf = client.prepare<{ payload: Uint8Array }, [number]>("select payload from event where seq = ?1");
  const orderingKeyOf = client.prepare<{ orderingKey: string | null }, [number]>(
    "select ordering_key as orderingKey from event where seq = ?1",
  );
  const restart = client.prepare(
    `update delivery set state = 0, run = run + 1, attempts_in_run = 0, next_attempt_at = ?2, finished_at = null, replay_key = ?3,
       before = ?4, order_hash = ?5
     where key = ?1`,
  );
  // If the URL was removed and registered again, attempts are counted on from the earlier record for it.
  const insertRecord = client.prepare(
    `insert into delivery (key, tenant_key, event_seq, webhook_key, state, run, attempts_in_run, attempts, next_attempt_at, replay_key,
       before, type_hash, order_hash)
     values (?1, ?2, ?3, ?4, 0, 1, 0,
       (select coalesce(max(number), 0) from attempt join webhook on webhook.key = attempt.webhook_key
        where attempt.tenant_key = ?2 and attempt.event_seq = ?3 and webhook.url = ?5),
       ?6, ?7, ?8, (select type_hash from delivery where tenant_key = ?2 and filed = 1 and event_seq = ?3 limit 1), ?9)`,
  );
  const use = createWebhookUse(client);
  const lines = createLines(client);
  const deleteRecord = client.prepare("delete from delivery where key = ?1");

  function contentOf(eventSeq: number) {
    const { type = null, payloadErased = 0 } = selectContent.get(eventSeq) ?? {};
    return { type, isErased: payloadErased === 1 };
  }

  function requeueEvent(
    tx: WriteTransaction,
    held: HeldTenant,
    eventSeq: number,
    replay: Replaying & { readonly key: number },
    inAll: Queued,
  ): Done {
    const tenantKey = held.tenant.key;
    const records = recordsOf.all(tenantKey, eventSeq).map(toReplayed);
    const { type, isErased } = contentOf(eventSeq);
    const own = type !== null && isReserved(type) ? payloadOf.get(eventSeq) : null;
    const aboutId = own ? aboutOf(own.payload) : null;
    const change = requeue(held, { type, payloadErased: isErased, aboutId, records }, replay, tx);
    const orderHashes = orderHashesOf(held, eventSeq);
    const hasHead = (webhookKey: number) => (orderHash: number) => lines.hasHead(webhookKey, orderHash);
    for (const { webhook, nextAttemptAt, returnsTo } of change.added) {
      const { key, url } = webhook;
      const before = beforeText(returnsTo);
      const { orderHash, isHeldBack } = join(orderHashes.get(key) ?? null, hasHead(key));
      insertRecord.run(
        rowKeys.nextDelivery(),
        tenantKey,
        eventSeq,
        key,
        url,
        isHeldBack ? null : nextAttemptAt,
        replay.key,
        before,
        orderHash,
      );
      use.recordAdded(held, webhook);
    }
    for (const replayKey of change.superseded) ledger.end(replayKey, "superseded", tx.now);
    for (const found of change.restarted) {
      const { key: deliveryKey, webhookKey, returnsTo } = found;
      if (webhookKey === null) continue;
      const ref = { tenantKey, eventSeq, webhookKey, deliveryKey };
      const isOwned = ownership.has(ref);
      const isHeldBack = found.state === "PENDING" && found.nextAttemptAt === null;
      const place = rejoin({ ...found, isHeldBack, isOwned }, orderHashes.get(webhookKey) ?? null, hasHead(webhookKey));
      const dueAt = place.isHeldBack ? null : change.nextAttemptAt;
      restart.run(deliveryKey, dueAt, replay.key, beforeText(returnsTo), place.orderHash);
      if (place.leaves !== null) lines.release(webhookKey, place.leaves, tx.now);
      if (isOwned) inAll.overtaken.push(ref);
    }
    for (const { key, webhookKey, attempts } of change.replaced) {
      deleteRecord.run(key);
      if (webhookKey !== null && attempts === 0) use.recordReplaced(webhookKey);
    }
    held.counters = change.counters;
    failures.count(tx, { tenantKey, eventSeq }, change.failures, null);
    for (const key of change.webhookKeys) inAll.webhookKeys.add(key);
    inAll.seqs.push(eventSeq);
    return { queued: change.webhookKeys.length, skipped: change.skipped, payloadsErased: isErased ? 1 : 0 };
  }

  /** The event's place in the lines of the registered webhooks, by webhook key. */
  function orderHashesOf({ webhooks }: HeldTenant, eventSeq: number): ReadonlyMap<number, number | null> {
    if (!webhooks.some(({ ordered }) => ordered)) return new Map();
    const orderingKey = orderingKeyOf.get(eventSeq)?.orderingKey ?? null;
    return new Map(webhooks.map((webhook) => [webhook.key, orderHashFor(webhook, orderingKey)]));
  }

  return { requeueEvent, contentOf };
}
