import type { Failure } from "../../domain/failure.ts";
import { giveUp } from "../../domain/settlement.ts";
import { moveState } from "../../domain/tenant-state.ts";
import type { Connection } from "./connection.ts";
import { stateNumber } from "./queries.ts";
import type { ReplayLedger } from "./replay-ledger.ts";
import type { WriteTransaction } from "./writer.ts";

export interface WaitingRecord {
  readonly key: number;
  readonly tenantKey: number;
  readonly replayKey: number | null;
}

export interface WaitingRecords {
  /** A record that waits ends without an attempt. */
  fail(tx: WriteTransaction, record: WaitingRecord, failure: Failure): void;
}

export function createWaitingRecords({ client, hold }: Connection, ledger: ReplayLedger): WaitingRecords {
  const update = client.prepare(
    `update delivery
     set state = ?2, next_attempt_at = null, finished_at = ?3, error_reason = ?4, error_code = ?5, status_code = ?6,
       before = null
     where key = ?1`,
  );

  return {
    fail(tx, { key, tenantKey, replayKey }, failure) {
      const held = hold(tx, tenantKey);
      const failed = giveUp(failure, tx.orderedNow);
      update.run(
        key,
        stateNumber[failed.state],
        failed.finishedAt,
        failed.errorReason,
        failed.errorCode,
        failed.statusCode,
      );
      held.counters = moveState(held.counters, "PENDING", failed.state);
      if (replayKey !== null) ledger.end(replayKey, "failed", tx.now);
    },
  };
}
