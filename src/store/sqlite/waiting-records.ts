import type { Failure } from "../../domain/failure.ts";
import { kindWithoutAnswer, movesOf } from "../../domain/failure-groups.ts";
import { giveUp } from "../../domain/settlement.ts";
import { moveState } from "../../domain/tenant-state.ts";
import type { Connection } from "./connection.ts";
import type { FailureLedger } from "./failure-ledger.ts";
import { createLines } from "./lines.ts";
import { stateNumber } from "./queries.ts";
import type { ReplayLedger } from "./replay-ledger.ts";
import type { WriteTransaction } from "./transaction.ts";

export interface WaitingRecord {
  readonly key: number;
  readonly tenantKey: number;
  readonly eventSeq: number;
  readonly webhookKey: number;
  readonly replayKey: number | null;
  readonly failureKey: number | null;
  /** The line that it is the head of: when a record that is held back ends, nothing is released. */
  readonly orderHash: number | null;
}

export const waitingColumns = `key, tenant_key as tenantKey, event_seq as eventSeq, webhook_key as webhookKey,
  replay_key as replayKey, failure_key as failureKey,
  iif(next_attempt_at is null, null, order_hash) as orderHash`;

export interface WaitingRecords {
  /** Ends a waiting record without an attempt. */
  fail(tx: WriteTransaction, record: WaitingRecord, failure: Failure): void;
}

export function createWaitingRecords(
  { client, hold }: Connection,
  ledger: ReplayLedger,
  failures: FailureLedger,
): WaitingRecords {
  const update = client.prepare(
    `update delivery
     set state = ?2, next_attempt_at = null, finished_at = ?3, error_reason = ?4, error_code = ?5, status_code = ?6,
       before = null, failure_key = ?7, order_hash = null
     where key = ?1`,
  );

  const lines = createLines(client);

  return {
    fail(tx, record, failure) {
      const { key, tenantKey, webhookKey, replayKey, orderHash } = record;
      const held = hold(tx, tenantKey);
      // Nothing is counted for a deleted account any more.
      const failureKey = held.gone ? null : failures.keyOf(tx, tenantKey, kindWithoutAnswer(failure, webhookKey));
      const failed = giveUp(failure, tx.orderedNow);
      update.run(
        key,
        stateNumber[failed.state],
        failed.finishedAt,
        failed.errorReason,
        failed.errorCode,
        failed.statusCode,
        failureKey,
      );
      const moves = held.gone ? [] : movesOf({ ...record, state: "PENDING" }, { state: failed.state, failureKey });
      failures.count(tx, record, moves, failed.finishedAt);
      held.counters = moveState(held.counters, "PENDING", failed.state);
      if (replayKey !== null) ledger.end(replayKey, "failed", tx.now);
      if (orderHash !== null) lines.release(webhookKey, orderHash, tx.now);
    },
  };
}
