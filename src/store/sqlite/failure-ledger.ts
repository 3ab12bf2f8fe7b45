import type { Database } from "bun:sqlite";
import { type FailureKind, type FailureMove, maxFailureGroups, othersKey } from "../../domain/failure-groups.ts";
import { failureKeyOf, hourOf } from "../failure-key.ts";
import type { WriteTransaction } from "./transaction.ts";

/** What records fail with, in groups: updated by whatever code writes a record, in the same transaction. */
export interface FailureLedger {
  /** Key of the group for such failures, which is created if it does not exist. */
  keyOf(tx: WriteTransaction, tenantKey: number, kind: FailureKind): number;
  /**
   * Like `keyOf`, for a record that becomes what it was before.
   * @param key of its former group, which may be gone by now; null: it had none
   */
  keyAgain(tx: WriteTransaction, tenantKey: number, key: number | null, kind: FailureKind): number;
  /** @param failedAt when the failure came that the record now has; null: it has none, or waits again with the one it had */
  count(tx: WriteTransaction, record: CountedPlace, moves: readonly FailureMove[], failedAt: number | null): void;
}

export interface CountedPlace {
  readonly tenantKey: number;
  readonly eventSeq: number;
}

/** What a transaction adds to one row. */
interface Sum {
  readonly tenantKey: number;
  readonly failureKey: number;
  readonly hour: number;
  waiting: number;
  failed: number;
  lastFailedAt: number;
}

/**
 * A transaction adds up what its jobs count and writes the sums before the commit: a hundred attempts at a webhook that is down
 * are one row. A row that has dropped to zero is deleted, and a group with its last row, so an account has no more of them than
 * its records need.
 */
export function createFailureLedger(client: Database): FailureLedger {
  const findGroup = client.prepare("select 1 from failure_group where tenant_key = ?1 and key = ?2");
  const countGroups = client.prepare<{ n: number }, [number]>(
    "select count(*) as n from failure_group where tenant_key = ?1",
  );
  const insertGroup = client.prepare(
    "insert into failure_group (tenant_key, key, webhook_key, code, status, line) values (?1, ?2, ?3, ?4, ?5, ?6)",
  );
  // A later job of the same transaction may have erased the account.
  const add = client.prepare<{ records: number }, [number, number, number, number, number, number]>(
    `insert into failure_count (tenant_key, failure_key, hour, waiting, failed, last_failed_at)
     select ?1, ?2, ?3, ?4, ?5, ?6 where exists (select 1 from tenant where key = ?1)
     on conflict (tenant_key, failure_key, hour) do update set waiting = waiting + excluded.waiting,
       failed = failed + excluded.failed, last_failed_at = max(last_failed_at, excluded.last_failed_at)
     returning waiting + failed as records`,
  );
  const removeCount = client.prepare(
    "delete from failure_count where tenant_key = ?1 and failure_key = ?2 and hour = ?3",
  );
  const removeIfEmpty = client.prepare(
    `delete from failure_group where tenant_key = ?1 and key = ?2
       and not exists (select 1 from failure_count where tenant_key = ?1 and failure_key = ?2)`,
  );

  /** State of the current transaction. There is only ever one. */
  let current: { tx: WriteTransaction; sums: Map<string, Sum>; made: [tenantKey: number, key: number][] } | null = null;

  function open(tx: WriteTransaction) {
    if (current?.tx === tx) return current;
    const opened = { tx, sums: new Map<string, Sum>(), made: [] };
    current = opened;
    tx.beforeCommit(() => {
      current = null;
      write(opened);
    });
    return opened;
  }

  function write({ sums, made }: NonNullable<typeof current>): void {
    // Beside those left empty below, a group may have been created for an attempt that turned out to be late.
    const maybeEmpty = [...made];
    for (const { tenantKey, failureKey, hour, waiting, failed, lastFailedAt } of sums.values()) {
      const after = add.get(tenantKey, failureKey, hour, waiting, failed, lastFailedAt);
      if (after?.records !== 0) continue;
      removeCount.run(tenantKey, failureKey, hour);
      maybeEmpty.push([tenantKey, failureKey]);
    }
    // Only now: the group's last record of one hour may have left as its first of another came.
    for (const [tenantKey, key] of maybeEmpty) removeIfEmpty.run(tenantKey, key);
  }

  function keyOf(tx: WriteTransaction, tenantKey: number, kind: FailureKind): number {
    const key = failureKeyOf(kind);
    if (findGroup.get(tenantKey, key)) return key;
    if ((countGroups.get(tenantKey)?.n ?? 0) >= maxFailureGroups) return othersKey;
    insertGroup.run(tenantKey, key, kind.webhookKey, kind.code, kind.status, kind.line);
    open(tx).made.push([tenantKey, key]);
    return key;
  }

  return {
    keyOf,

    keyAgain(tx, tenantKey, key, kind) {
      const isThere = key === othersKey || (key !== null && findGroup.get(tenantKey, key) !== null);
      return isThere ? key : keyOf(tx, tenantKey, kind);
    },

    count(tx, { tenantKey, eventSeq }, moves, failedAt) {
      if (moves.length === 0) return;
      const { sums } = open(tx);
      const hour = hourOf(eventSeq);
      for (const { failureKey, waiting, failed } of moves) {
        const name = `${tenantKey} ${failureKey} ${hour}`;
        const sum = sums.get(name) ?? { tenantKey, failureKey, hour, waiting: 0, failed: 0, lastFailedAt: 0 };
        sums.set(name, sum);
        sum.waiting += waiting;
        sum.failed += failed;
        if (waiting + failed > 0 && failedAt !== null) sum.lastFailedAt = Math.max(sum.lastFailedAt, failedAt);
      }
    },
  };
}
