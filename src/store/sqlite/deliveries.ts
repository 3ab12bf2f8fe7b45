import type { DueDelivery } from "../../domain/delivery.ts";
import { type Failure, type FailureCode, unreadable, webhookRemoved } from "../../domain/failure.ts";
import { asQueued, type FoundRecord, giveUp, type RecordChange, settle } from "../../domain/settlement.ts";
import type { Tier } from "../../domain/tenant.ts";
import { moveState } from "../../domain/tenant-state.ts";
import { encodeEventId } from "../../lib/id.ts";
import type { Growth } from "../growth.ts";
import { type DeliveryVerbs, type DueLane, keptAttempts, type Settled, type Settlement } from "../store.ts";
import type { Connection } from "./connection.ts";
import { damagedEvent, isStorageDamaged, isWhole, unlessDamaged } from "./damage.ts";
import type { HeldTenant } from "./held-tenants.ts";
import { stateNames, stateNumber } from "./queries.ts";
import type { ReplayLedger } from "./replay-ledger.ts";
import { wholeLabel } from "./replay-rows.ts";
import type { WriteTransaction } from "./writer.ts";

/** Attempts that one more makes forget: more than itself, so that a log from before becomes as short in time. */
const forgottenAtOnce = 10;

/** One seek for each webhook that has anything pending: `min` over the partial index, then the next one after it. */
const pendingWebhooks = `
  select min(webhook_key) from delivery where state = 0
  union all
  select (select min(webhook_key) from delivery where state = 0 and webhook_key > lane.webhook_key)
  from lane where lane.webhook_key is not null`;

/** The queue. These statements run for every delivery, so they are prepared SQL (architecture, "SQL"). */
export function deliveryVerbs(connection: Connection, ledger: ReplayLedger, { mayGrow }: Growth): DeliveryVerbs {
  const { client, writer, hold, rowKeys, reportDamage } = connection;

  const selectDueLanes = client.prepare<{ webhookKey: number; firstDueAt: number; tenantKey: number }, []>(`
    with recursive lane (webhook_key) as (${pendingWebhooks})
    select lane.webhook_key as webhookKey, webhook.tenant_key as tenantKey,
           (select min(next_attempt_at) from delivery where state = 0 and delivery.webhook_key = lane.webhook_key) as firstDueAt
    from lane join webhook on webhook.key = lane.webhook_key join tenant on tenant.key = webhook.tenant_key
    where webhook.removed_at is null and tenant.deleted_at is null`);

  // Asked first: with its conditions among those of the rows, every row of a suspended account's backlog would be read.
  const selectReceiver = client.prepare<{ tenantKey: number; tenantId: string; tier: Tier; url: string }, [number]>(`
    select tenant.key as tenantKey, tenant.id as tenantId, coalesce(tenant.enforced_tier, 'free') as tier, webhook.url
    from webhook join tenant on tenant.key = webhook.tenant_key
    where webhook.key = ?1
      and webhook.removed_at is null and tenant.deleted_at is null and tenant.operator_suspended_at is null`);

  const dueColumns = `
    select d.key, d.event_seq as eventSeq, d.run, d.attempts_in_run as attemptsInRun, d.attempts,
           d.replay_key as replayKey, ${wholeLabel} as replayGroupId, event.id_tail as idTail, event.payload, event.checksum
    from delivery d
    join event on event.seq = d.event_seq
    left join replay on replay.key = d.replay_key`;
  const selectDue = client.prepare<DueRow, [number, number, number]>(`${dueColumns}
    where d.state = 0 and d.webhook_key = ?1 and d.next_attempt_at <= ?2
    order by d.next_attempt_at, d.key
    limit ?3`);

  // Inside the index, which the damage of a row leaves whole.
  const selectDueKeys = client.prepare<{ key: number }, [number, number, number, number]>(
    `select key from delivery where state = 0 and webhook_key = ?1 and next_attempt_at <= ?2
     order by next_attempt_at, key limit ?3 offset ?4`,
  );
  const selectDueByKey = client.prepare<DueRow, [number]>(`${dueColumns} where d.key = ?1`);
  const selectPending = client.prepare<{ tenantKey: number; eventSeq: number; replayKey: number | null }, [number]>(
    "select tenant_key as tenantKey, event_seq as eventSeq, replay_key as replayKey from delivery where key = ?1 and state = 0",
  );

  const selectNextDue = client.prepare<{ at: number | null }, [number, number]>(
    "select min(next_attempt_at) as at from delivery where state = 0 and webhook_key = ?1 and next_attempt_at > ?2",
  );

  /** Only a record that is in the state and the run that were decided about. */
  const updateRecord = client.prepare(
    `update delivery
     set state = ?4, next_attempt_at = ?5, finished_at = ?6, last_attempt_at = ?7,
         error_reason = ?8, error_code = ?9, status_code = ?10,
         attempts = attempts + 1, attempts_in_run = attempts_in_run + 1
     where key = ?1 and run = ?2 and state = ?3`,
  );

  const selectRecord = client.prepare<{ state: number; run: number; errorCode: FailureCode | null }, [number]>(
    "select state, run, error_code as errorCode from delivery where key = ?1",
  );

  const countLateAttempt = client.prepare("update delivery set attempts = attempts + 1 where key = ?1");

  /** Of the same event for the same URL, as it was registered again. */
  const selectSuccessor = client.prepare<{ key: number }, [number, number, string]>(
    `select delivery.key from delivery join webhook on webhook.key = delivery.webhook_key
     where delivery.tenant_key = ?1 and event_seq = ?2 and url = ?3 and removed_at is null`,
  );

  // The record has counted this attempt by then, and any other that settled since this one was read from the queue.
  const insertAttempt = client.prepare(
    `insert into attempt (key, tenant_key, event_seq, webhook_key, number, started_at, duration_ms, status_code, error,
       response_body, replay_key, error_code)
     values (?1, ?2, ?3, ?4, coalesce((select attempts from delivery where key = ?5), ?6), ?7, ?8, ?9, ?10, ?11, ?12, ?13)`,
  );

  // The index has them in the order in which they were logged, so the walk ends as soon as it has found the oldest ones.
  const deleteOldAttempts = client.prepare(
    `delete from attempt where key in (
       select key from attempt where event_seq = ?1 and webhook_key = ?2
         and number <= (select attempts from delivery where key = ?3) - ${keptAttempts}
       order by key limit ${forgottenAtOnce})`,
  );
  const countForgotten = client.prepare(
    "update delivery set attempts_forgotten = attempts_forgotten + ?2 where key = ?1",
  );

  const updateBody = client.prepare(
    `update attempt set response_body = ?2
     where key = ?1 and exists (select 1 from tenant where tenant.key = attempt.tenant_key and deleted_at is null)`,
  );

  const selectDraining = client.prepare<{ key: number }, [string]>(
    `select key from webhook where removed_at is not null and drained = 0
       and key not in (select value from json_each(?1)) order by removed_at limit 1`,
  );
  const markDrained = client.prepare("update webhook set drained = 1 where key = ?1");
  const selectWaiting = client.prepare<{ key: number; tenantKey: number; replayKey: number | null }, [number, number]>(
    "select key, tenant_key as tenantKey, replay_key as replayKey from delivery where state = 0 and webhook_key = ?1 limit ?2",
  );
  const updateWaiting = client.prepare(
    `update delivery
     set state = ?2, next_attempt_at = null, finished_at = ?3, error_reason = ?4, error_code = ?5, status_code = ?6
     where key = ?1`,
  );

  // By way of the lanes, so that it costs what is in the queue and not the number of accounts.
  const selectDepth = client.prepare<{ pending: number | null; oldestDueAt: number | null }, []>(`
    with recursive lane (webhook_key) as (${pendingWebhooks}),
    active (tenant_key, first_due_at) as (
      select tenant.key,
             (select min(next_attempt_at) from delivery where state = 0 and delivery.webhook_key = lane.webhook_key)
      from lane join webhook on webhook.key = lane.webhook_key join tenant on tenant.key = webhook.tenant_key
      where webhook.removed_at is null and tenant.deleted_at is null and tenant.operator_suspended_at is null
    )
    select (select sum(pending) from tenant_usage where tenant_key in (select tenant_key from active)) as pending,
           (select min(first_due_at) from active) as oldestDueAt`);

  /** @param countedBy key of the record whose count of attempts is the attempt's number */
  function log({ delivery, attempt }: Settlement, countedBy: number): number {
    const key = rowKeys.nextAttempt();
    insertAttempt.run(
      key,
      delivery.tenantKey,
      delivery.eventSeq,
      delivery.webhookKey,
      countedBy,
      delivery.attempts + 1,
      attempt.startedAt,
      attempt.durationMs,
      attempt.statusCode,
      attempt.error,
      mayGrow() ? attempt.responseBody : null,
      delivery.replayKey,
      attempt.errorCode,
    );
    if (delivery.attempts >= keptAttempts) {
      const { changes } = deleteOldAttempts.run(delivery.eventSeq, delivery.webhookKey, countedBy);
      if (changes > 0) countForgotten.run(countedBy, changes);
    }
    return key;
  }

  function find(deliveryKey: number): FoundRecord | null {
    const row = selectRecord.get(deliveryKey);
    return row && { ...row, state: stateNames[row.state] ?? "FAILED" };
  }

  /** Writes what the attempt does to its record; false when that is not found as it was decided about. */
  function write(
    tx: WriteTransaction,
    held: HeldTenant,
    { delivery, attempt }: Settlement,
    found: FoundRecord,
    { becomes, replay }: RecordChange,
  ): boolean {
    if (!becomes) {
      countLateAttempt.run(delivery.deliveryKey);
      return true;
    }
    const { changes } = updateRecord.run(
      delivery.deliveryKey,
      found.run,
      stateNumber[found.state],
      stateNumber[becomes.state],
      becomes.nextAttemptAt,
      becomes.finishedAt,
      attempt.startedAt,
      becomes.errorReason,
      becomes.errorCode,
      becomes.statusCode,
    );
    if (changes === 0) return false;
    held.counters = moveState(held.counters, found.state, becomes.state);
    if (replay !== null && delivery.replayKey !== null) {
      if (replay === "corrected") ledger.correct(delivery.replayKey);
      else ledger.end(delivery.replayKey, replay, tx.now);
    }
    return true;
  }

  function settleRecord(tx: WriteTransaction, held: HeldTenant, settlement: Settlement): RecordChange {
    // Nearly every record is as the queue gave it out: the statement compares, and only another one has to be read.
    const queued = asQueued(settlement.delivery);
    const change = settle(queued, held.webhooks, settlement, tx.orderedNow);
    if (write(tx, held, settlement, queued, change)) return change;
    const found = find(settlement.delivery.deliveryKey);
    const late = settle(found, held.webhooks, settlement, tx.orderedNow);
    if (found) write(tx, held, settlement, found, late);
    return late;
  }

  /** A record that waits ends without an attempt. */
  function failWaiting(
    tx: WriteTransaction,
    { key, tenantKey, replayKey }: { key: number; tenantKey: number; replayKey: number | null },
    failure: Failure,
  ): void {
    const held = hold(tx, tenantKey);
    const failed = giveUp(failure, tx.orderedNow);
    updateWaiting.run(
      key,
      stateNumber[failed.state],
      failed.finishedAt,
      failed.errorReason,
      failed.errorCode,
      failed.statusCode,
    );
    held.counters = moveState(held.counters, "PENDING", failed.state);
    if (replayKey !== null) ledger.end(replayKey, "failed", tx.now);
  }

  /** Of the record that goes on for the URL of a removed webhook, registered again; it has counted the attempt by then. */
  function countForSuccessor({ tenantKey, eventSeq, url }: DueDelivery): number | null {
    const successor = selectSuccessor.get(tenantKey, eventSeq, url);
    if (successor) countLateAttempt.run(successor.key);
    return successor?.key ?? null;
  }

  /** Deliveries that are due, and whose rows cannot be read or written: nothing is sent whose outcome has no place. */
  const setAside = new Set<number>();
  /** Removed webhooks with such a delivery. */
  const undrainable = new Set<number>();

  /** As `selectDue`, row by row, without those that are damaged. */
  function readableDue(webhookKey: number, now: number, limit: number): { rows: DueRow[]; damaged: number[] } {
    const rows: DueRow[] = [];
    const damaged: number[] = [];
    for (let offset = 0; rows.length < limit; offset += limit) {
      const keys = selectDueKeys.all(webhookKey, now, limit, offset);
      for (const { key } of keys) {
        const row = setAside.has(key) ? null : unlessDamaged(() => selectDueByKey.get(key));
        if (row && isWhole(row.payload, row.checksum)) rows.push(row);
        else if (!setAside.has(key)) damaged.push(key);
      }
      if (keys.length < limit) break;
    }
    return { rows: rows.slice(0, limit), damaged };
  }

  /** An event that cannot be read is never delivered: its record fails, and its webhook goes on with the others. */
  async function failDamaged(keys: readonly number[]): Promise<void> {
    for (const deliveryKey of keys) {
      try {
        await writer.submit<void>((tx) => {
          const found = selectPending.get(deliveryKey);
          if (!found) return;
          failWaiting(tx, { key: deliveryKey, ...found }, unreadable);
          reportDamage(damagedEvent(found.eventSeq));
        });
      } catch (error) {
        if (!isStorageDamaged(error)) throw error;
        setAside.add(deliveryKey);
        reportDamage(`The delivery with the key ${deliveryKey}`);
      }
    }
  }

  return {
    dueLanes: async () => selectDueLanes.all() satisfies DueLane[],

    async dueDeliveries(webhookKey, now, limit) {
      const receiver = selectReceiver.get(webhookKey);
      if (!receiver) return { due: [], nextDueAt: null };
      let rows = unlessDamaged(() => selectDue.all(webhookKey, now, limit));
      if (!rows?.every(({ payload, checksum }) => isWhole(payload, checksum))) {
        const found = readableDue(webhookKey, now, limit);
        rows = found.rows;
        await failDamaged(found.damaged);
      }
      const due = rows.map(({ key, idTail, checksum: _, ...row }): DueDelivery => {
        return { deliveryKey: key, webhookKey, eventId: encodeEventId(row.eventSeq, idTail), ...receiver, ...row };
      });
      const nextDueAt = rows.length === limit ? now : (selectNextDue.get(webhookKey, now)?.at ?? null);
      return { due, nextDueAt };
    },

    async settle(settlement) {
      const { delivery } = settlement;
      try {
        return await writer.submit<Settled>((tx) => {
          const held = hold(tx, delivery.tenantKey);
          if (held.gone) return { kind: "gone", attemptKey: null };
          const { kind, isLate } = settleRecord(tx, held, settlement);
          const countedBy = (isLate && countForSuccessor(delivery)) || delivery.deliveryKey;
          return { kind, attemptKey: log(settlement, countedBy) };
        });
      } catch (error) {
        if (!isStorageDamaged(error)) throw error;
        // Tried again, it would be sent again, and again without a trace.
        setAside.add(delivery.deliveryKey);
        reportDamage(`The delivery of ${delivery.eventId}`);
        return { kind: "gone", attemptKey: null };
      }
    },

    completeResponseBody: (attemptKey, responseBody) =>
      writer.submit<void>(() => {
        if (mayGrow()) updateBody.run(attemptKey, responseBody);
      }),

    async failDeliveriesOfRemoved(limit) {
      let key: number | null = null;
      const draining = () => selectDraining.get(JSON.stringify([...undrainable]))?.key ?? null;
      try {
        return await writer.submit<boolean>((tx) => {
          key = draining();
          if (key === null) return false;
          const waiting = selectWaiting.all(key, limit);
          for (const record of waiting) failWaiting(tx, record, webhookRemoved);
          if (waiting.length < limit) markDrained.run(key);
          return draining() !== null;
        });
      } catch (error) {
        if (!isStorageDamaged(error) || key === null) throw error;
        undrainable.add(key);
        reportDamage(`What waits for the removed webhook with the key ${key}`);
        return true;
      }
    },

    async queueDepth() {
      const depth = selectDepth.get();
      return { pending: depth?.pending ?? 0, oldestDueAt: depth?.oldestDueAt ?? null };
    },
  };
}

interface DueRow {
  key: number;
  eventSeq: number;
  run: number;
  attemptsInRun: number;
  attempts: number;
  replayKey: number | null;
  replayGroupId: string | null;
  idTail: Uint8Array;
  payload: Uint8Array;
  checksum: number | null;
}
