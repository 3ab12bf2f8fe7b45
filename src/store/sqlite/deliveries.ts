import { type DueDelivery, deliveryStates } from "../../domain/delivery.ts";
import { serverRestored, webhookDisabled, webhookRemoved } from "../../domain/failure.ts";
import { kindOf, movesOf } from "../../domain/failure-groups.ts";
import { asQueued, type FoundRecord, type RecordChange, settle } from "../../domain/settlement.ts";
import { moveState } from "../../domain/tenant-state.ts";
import { headText } from "../attempt-heads.ts";
import { type DeliveryVerbs, keptAttempts, type Settled, type Settlement } from "../deliveries.ts";
import type { Growth } from "../growth.ts";
import { isStorageDamaged } from "../unless-damaged.ts";
import type { Connection } from "./connection.ts";
import { readOrRefuse } from "./damage.ts";
import type { FailureLedger } from "./failure-ledger.ts";
import type { HeldTenant } from "./held-tenants.ts";
import { createLines } from "./lines.ts";
import { stateNumber } from "./queries.ts";
import type { ReplayLedger } from "./replay-ledger.ts";
import type { WriteTransaction } from "./transaction.ts";
import { type WaitingRecord, type WaitingRecords, waitingColumns } from "./waiting-records.ts";

/** How many old attempts each new one removes: more than one, so that a log from before the limit shrinks to it over time. */
const forgottenAtOnce = 10;

/** How deliveries end. These statements run for every delivery, so they are prepared SQL (architecture, "SQL"). */
export function deliveryVerbs(
  { client, writer, hold, rowKeys, ownership, filing, reportDamage }: Connection,
  ledger: ReplayLedger,
  failures: FailureLedger,
  waiting: WaitingRecords,
  { mayGrow }: Growth,
): Pick<DeliveryVerbs, "settle" | "completeResponseBody" | "failUndeliverable" | "failPending"> {
  /** Only updates a record that is still in the state and the run that the decision was based on. */
  const updateRecord = client.prepare(
    `update delivery
     set state = ?4, next_attempt_at = ?5, finished_at = ?6, last_attempt_at = ?7, last_duration_ms = ?13,
         error_reason = ?8, error_code = ?9, status_code = ?10, before = iif(?4 = 0, before, null),
         order_hash = iif(?4 = 0, order_hash, null),
         failure_key = ?12,
         attempts = attempts + 1, attempts_in_run = attempts_in_run + 1
     where key = ?1 and run = ?2 and state = ?3 and failure_key is ?11`,
  );

  const selectRecord = client.prepare<Omit<FoundRecord, "state"> & { state: number }, [number]>(
    "select state, run, error_code as errorCode, failure_key as failureKey from delivery where key = ?1",
  );

  const countLateAttempt = client.prepare("update delivery set attempts = attempts + 1 where key = ?1");

  /** The record of the same event for the same URL after that was registered again. */
  const selectSuccessor = client.prepare<{ key: number }, [number, number, string]>(
    `select delivery.key from delivery join webhook on webhook.key = delivery.webhook_key
     where delivery.tenant_key = ?1 and filed = 1 and event_seq = ?2 and url = ?3 and removed_at is null`,
  );

  // By then the record has counted this attempt, and any other that was settled since this one was read from the queue.
  const insertAttempt = client.prepare(
    `insert into attempt (key, tenant_key, event_seq, webhook_key, number, started_at, duration_ms, status_code, error,
       response_body, replay_key, error_code, answer_head)
     values (?1, ?2, ?3, ?4, coalesce((select attempts from delivery where key = ?5), ?6), ?7, ?8, ?9, ?10, ?11, ?12, ?13,
       ?14)`,
  );

  // The index is in the order in which they were logged, so the walk ends as soon as it has found the oldest ones.
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

  const lines = createLines(client);

  const others = "key not in (select value from json_each(?1))";
  const selectRemoved = client.prepare<{ key: number }, [string]>(
    `select key from webhook where removed_at is not null and drained = 0 and ${others} order by removed_at limit 1`,
  );
  const selectDisabled = client.prepare<{ key: number }, [string]>(
    `select key from webhook where disabled_at is not null and removed_at is null and drained = 0 and ${others}
     order by disabled_at limit 1`,
  );
  const markDrained = client.prepare("update webhook set drained = 1 where key = ?1");
  const selectWaiting = client.prepare<WaitingRecord, [number, number]>(
    `select ${waitingColumns} from delivery where state = 0 and webhook_key = ?1 limit ?2`,
  );
  const selectUnowned = client.prepare<WaitingRecord, [number, string]>(
    `select ${waitingColumns} from delivery where state = 0 and webhook_key > 0
       and key not in (select value from json_each(?2)) limit ?1`,
  );

  /** @param countedBy key of the record whose attempt count becomes the attempt's number */
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
      mayGrow() ? headText(attempt.answerHead) : null,
    );
    if (delivery.attempts >= keptAttempts) {
      const { changes } = deleteOldAttempts.run(delivery.eventSeq, delivery.webhookKey, countedBy);
      if (changes > 0) countForgotten.run(countedBy, changes);
    }
    return key;
  }

  function find(deliveryKey: number): FoundRecord | null {
    const row = selectRecord.get(deliveryKey);
    return row && { ...row, state: deliveryStates[row.state] ?? "FAILED" };
  }

  /** Writes what the attempt does to its record; false when the record is no longer as it was when this was decided. */
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
    const kind = kindOf(becomes, delivery.webhookKey, attempt.responseBody);
    const failureKey = kind && failures.keyOf(tx, delivery.tenantKey, kind);
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
      found.failureKey,
      failureKey,
      attempt.durationMs,
    );
    if (changes === 0) return false;
    const failedAt = kind && attempt.startedAt;
    failures.count(tx, delivery, movesOf(found, { state: becomes.state, failureKey }), failedAt);
    held.counters = moveState(held.counters, found.state, becomes.state);
    if (replay !== null && delivery.replayKey !== null) {
      if (replay === "corrected") ledger.correct(delivery.replayKey);
      else ledger.end(delivery.replayKey, replay, tx.now);
    }
    return true;
  }

  function settleRecord(tx: WriteTransaction, held: HeldTenant, settlement: Settlement): RecordChange {
    // Nearly every record is still as the queue handed it out: the statement compares, so a record has to be read only if it
    // differs or has failed before.
    if (settlement.delivery.attempts === 0) {
      const queued = asQueued(settlement.delivery);
      const change = settle(queued, held.webhooks, settlement, tx.orderedNow);
      if (write(tx, held, settlement, queued, change)) return change;
    }
    const found = find(settlement.delivery.deliveryKey);
    const late = settle(found, held.webhooks, settlement, tx.orderedNow);
    if (found) write(tx, held, settlement, found, late);
    return late;
  }

  /**
   * Key of the record that carries on for the URL of a removed webhook that was registered again; it has counted the attempt by
   * then.
   */
  function countForSuccessor(tx: WriteTransaction, { tenantKey, eventSeq, url }: DueDelivery): number | null {
    filing.file(tx, tenantKey);
    const successor = selectSuccessor.get(tenantKey, eventSeq, url);
    if (successor) countLateAttempt.run(successor.key);
    return successor?.key ?? null;
  }

  /** Releases the next delivery in its line. @returns whether there was one */
  function release(tx: WriteTransaction, { webhookKey, orderHash }: DueDelivery, change: RecordChange): boolean {
    if (orderHash === null || change.becomes === null || change.becomes.state === "PENDING") return false;
    return lines.release(webhookKey, orderHash, tx.now);
  }

  /** Removed and disabled webhooks with a waiting record that cannot be written. */
  const undrainable = new Set<number>();

  /** The next webhook whose records have to fail, and why. */
  function draining() {
    const but = JSON.stringify([...undrainable]);
    const removed = selectRemoved.get(but);
    if (removed) return { key: removed.key, failure: webhookRemoved };
    const disabled = selectDisabled.get(but);
    return disabled && { key: disabled.key, failure: webhookDisabled };
  }

  return {
    async settle(settlement, isAwaited = true) {
      const { delivery } = settlement;
      try {
        const settled = await writer.submit<Settled>(
          (tx) => {
            const held = hold(tx, delivery.tenantKey);
            if (held.gone) return { kind: "gone", attempt: null };
            const change = settleRecord(tx, held, settlement);
            const { kind, isLate } = change;
            const hasReleased = release(tx, delivery, change);
            const countedBy = (isLate && countForSuccessor(tx, delivery)) || delivery.deliveryKey;
            const { tenantKey, eventSeq } = delivery;
            const attempt = { tenantKey, eventSeq, key: log(settlement, countedBy) };
            return { kind, attempt, ...(hasReleased && { hasReleased }) };
          },
          isAwaited ? "settlement" : "patient",
        );
        ownership.end([delivery]);
        return settled;
      } catch (error) {
        if (!isStorageDamaged(error)) throw error;
        // It stays owned until the next restart: if it were claimed again, it would be sent again, and again leave no trace.
        reportDamage(`The delivery of ${delivery.eventId}`);
        return { kind: "gone", attempt: null };
      }
    },

    completeResponseBody: (attempt, responseBody) =>
      writer.submit<void>(() => {
        if (mayGrow()) updateBody.run(attempt.key, responseBody);
      }),

    async failUndeliverable(limit) {
      const first = await readOrRefuse(() => reportDamage("The list of webhooks"), draining);
      if (first === null) return false;
      let key: number | null = null;
      try {
        return await writer.submit<boolean>((tx) => {
          const found = draining();
          if (!found) return false;
          key = found.key;
          const records = selectWaiting.all(key, limit);
          for (const record of records) waiting.fail(tx, record, found.failure);
          if (records.length < limit) markDrained.run(key);
          return draining() !== null;
        });
      } catch (error) {
        if (!isStorageDamaged(error) || key === null) throw error;
        undrainable.add(key);
        reportDamage(`What waits for the removed or disabled webhook with the key ${key}`);
        return true;
      }
    },

    failPending: (limit) =>
      writer.submit<number>((tx) => {
        const records = selectUnowned.all(limit, ownership.listAll());
        for (const record of records) waiting.fail(tx, record, serverRestored);
        return records.length;
      }),
  };
}
