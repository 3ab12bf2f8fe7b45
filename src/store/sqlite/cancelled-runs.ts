import { replayCancelled } from "../../domain/audit.ts";
import { beforeOf, returned } from "../../domain/cancelled-run.ts";
import { changed } from "../../domain/change.ts";
import { kindWithoutLine, movesOf } from "../../domain/failure-groups.ts";
import type { Replay } from "../../domain/replay.ts";
import { cancel } from "../../domain/replay-phase.ts";
import { refusalOfWrite } from "../../domain/standing.ts";
import { leaveState, moveState } from "../../domain/tenant-state.ts";
import type { ReplayVerbs, ReturnedRecords } from "../store.ts";
import { isStorageDamaged } from "../unless-damaged.ts";
import type { Connection } from "./connection.ts";
import { isDamage, readOrRefuse } from "./damage.ts";
import type { FailureLedger } from "./failure-ledger.ts";
import type { HeldTenant } from "./held-tenants.ts";
import { createLines } from "./lines.ts";
import { stateNumber } from "./queries.ts";
import { type ReplayRow, replayColumns, toReplay } from "./replay-rows.ts";
import { refuse, type WriteTransaction } from "./transaction.ts";
import { createWebhookUse } from "./webhook-use.ts";
import { writeAroundDamage } from "./write-around-damage.ts";

export type CancelledRuns = Pick<ReplayVerbs, "cancelReplay" | "cancelReplays" | "returnCancelled">;

export interface PutBack {
  /** Turns records that wait for a cancelled replay back into what they were; others, and owned ones, stay as they are. */
  putBack(tx: WriteTransaction, keys: readonly number[]): void;
}

interface WaitingRow {
  tenantKey: number;
  eventSeq: number;
  webhookKey: number;
  failureKey: number | null;
  attempts: number;
  lastAttemptAt: number | null;
  replayKey: number;
  before: string | null;
  orderHash: number | null;
  isHeldBack: number;
}

interface ReturningRow {
  readonly key: number;
  readonly id: string;
  readonly tenantKey: number;
  readonly tenantId: string;
  /** Its account has been deleted. */
  readonly isGone: number;
}

/** Cancels replays, and returns the records that were waiting for a cancelled one (`domain/cancelled-run.ts`). */
export function createCancelledRuns(
  { client, writer, hold, ownership, audit, reportDamage }: Connection,
  failures: FailureLedger,
): { verbs: CancelledRuns } & PutBack {
  const byId = client.prepare<ReplayRow, [string, number]>(
    `select ${replayColumns} from replay where id = ?1 and tenant_key = ?2`,
  );
  const selectUnfinished = client.prepare<ReplayRow, [number]>(
    `select ${replayColumns} from replay
     where phase in ('waiting', 'queueing', 'queued')
       and exists (select 1 from tenant where tenant.key = replay.tenant_key and deleted_at is null)
     order by tenant_key, key limit ?1`,
  );
  const setCancelled = client.prepare(
    `update replay set phase = ?2, cursor_seq = ?3, completed_at = ?4, is_returning = max(is_returning, ?5) where key = ?1`,
  );
  const selectReturning = client.prepare<ReturningRow, []>(
    `select replay.key, replay.id, replay.tenant_key as tenantKey, tenant.id as tenantId, deleted_at is not null as isGone
     from replay join tenant on tenant.key = replay.tenant_key where is_returning = 1 order by replay.key`,
  );
  const endReturning = client.prepare("update replay set is_returning = 0 where key = ?1");
  // Reads only the index, which a damaged row leaves intact.
  const selectKeys = client.prepare<{ key: number }, [number, string, string, number]>(
    `select key from delivery where replay_key = ?1 and state = 0 and before is not null
       and key not in (select value from json_each(?2)) and key not in (select value from json_each(?3)) limit ?4`,
  );
  const selectWaiting = client.prepare<WaitingRow, [number]>(
    `select delivery.tenant_key as tenantKey, event_seq as eventSeq, webhook_key as webhookKey, failure_key as failureKey,
       attempts, last_attempt_at as lastAttemptAt, replay_key as replayKey, before, order_hash as orderHash, next_attempt_at is null as isHeldBack
     from delivery join replay on replay.key = replay_key
     where delivery.key = ?1 and state = 0 and before is not null and is_returning = 1`,
  );
  const update = client.prepare(
    `update delivery set state = ?2, run = run + 1, attempts_in_run = ?3, next_attempt_at = ?4, finished_at = ?5,
       error_reason = ?6, error_code = ?7, status_code = ?8, replay_key = ?9, failure_key = ?10, before = null,
       order_hash = iif(?2 = 0, order_hash, null)
     where key = ?1`,
  );
  const remove = client.prepare("delete from delivery where key = ?1");
  const count = client.prepare("update replay set returned = returned + 1 where key = ?1");
  // Names the phase that it leaves out, too: the index has all three.
  const selectFailedAskedAt = client.prepare<{ at: number | null }, [number]>(
    `select min(created_at) filter (where kind = 'failed' and phase <> 'queued') as at from replay
     where tenant_key = ?1 and phase in ('waiting', 'queueing', 'queued')`,
  );
  const replayAt = client.prepare<ReplayRow, [number]>(`select ${replayColumns} from replay where key = ?1`);
  const use = createWebhookUse(client);

  const lines = createLines(client);

  /** Damaged records, and replays whose records are: they stay as they are until the next start. */
  const lost = { keys: new Set<number>(), replays: new Set<number>() };

  /** Asks once for each account: all of a transaction's records are returned at one moment. */
  function failedAskedAt(): (tenantKey: number) => number | null {
    const known = new Map<number, number | null>();
    return (tenantKey) => {
      if (!known.has(tenantKey)) known.set(tenantKey, selectFailedAskedAt.get(tenantKey)?.at ?? null);
      return known.get(tenantKey) ?? null;
    };
  }

  /** @returns the webhook for which the record goes on waiting, or for which the next one in its line is now due */
  function putOneBack(tx: WriteTransaction, key: number, askedAt: ReturnType<typeof failedAskedAt>): number | null {
    const found = selectWaiting.get(key);
    const before = beforeOf(found?.before ?? null);
    if (!found || !before || ownership.has({ webhookKey: found.webhookKey, deliveryKey: key })) return null;
    const { tenantKey, webhookKey, attempts, lastAttemptAt, replayKey, orderHash } = found;
    const isHeldBack = found.isHeldBack === 1;
    const release = () => orderHash !== null && !isHeldBack && lines.release(webhookKey, orderHash, tx.now);
    const held = hold(tx, tenantKey);
    if (held.gone) return null;
    const { now, orderedNow } = tx;
    const record = returned(
      before,
      { isHeldBack, lastAttemptAt },
      { now, orderedNow, failedAskedAt: askedAt(tenantKey) },
    );
    count.run(replayKey);
    const kind = record && kindWithoutLine(record, webhookKey);
    const failureKey = kind && failures.keyAgain(tx, tenantKey, record.failureKey, kind);
    const moves = movesOf({ ...found, state: "PENDING" }, record && { ...record, failureKey });
    failures.count(tx, found, moves, record?.failedAt ?? null);
    if (!record) {
      remove.run(key);
      held.counters = leaveState(held.counters, "PENDING");
      if (attempts === 0) use.recordReplaced(webhookKey);
      return release() ? webhookKey : null;
    }
    update.run(
      key,
      stateNumber[record.state],
      record.attemptsInRun,
      record.nextAttemptAt,
      record.finishedAt,
      record.errorReason,
      record.errorCode,
      record.statusCode,
      record.replayKey,
      failureKey,
    );
    held.counters = moveState(held.counters, "PENDING", record.state);
    return record.state === "PENDING" || release() ? webhookKey : null;
  }

  /** @returns whether the replay had not ended yet */
  function cancelOne(tx: WriteTransaction, { tenant }: HeldTenant, row: ReplayRow, now: number): boolean {
    const cancellation = cancel(row, now);
    if (!cancellation) return false;
    const { phase, cursorSeq, completedAt, hasRuns } = cancellation;
    setCancelled.run(row.key, phase, cursorSeq, completedAt, hasRuns ? 1 : 0);
    if (hasRuns) tx.changed({ ...changed(tenant), kind: "replay_cancelled", replayKey: row.key });
    return true;
  }

  function passOver({ key, id }: ReturningRow): null {
    lost.replays.add(key);
    reportDamage(`What waits for the cancelled replay ${id}`);
    return null;
  }

  /** What is damaged is passed over, and holds up no other record and no other replay. */
  async function returnSome(replay: ReturningRow, limit: number): Promise<ReturnedRecords | "owned" | null> {
    const { key: replayKey, tenantKey, tenantId, isGone } = replay;
    if (lost.replays.has(replayKey)) return null;
    const lostKeys = JSON.stringify([...lost.keys]);
    const isLeft = (passedOver: string) => selectKeys.get(replayKey, "[]", passedOver, 1) !== null;
    const keys = isGone ? [] : selectKeys.all(replayKey, ownership.listAll(), lostKeys, limit);
    if (keys.length > 0) {
      const woken = await writeAroundDamage(
        writer,
        keys,
        (tx, some) => {
          const askedAt = failedAskedAt();
          return some.flatMap(({ key }) => putOneBack(tx, key, askedAt) ?? []);
        },
        ({ key }) => {
          lost.keys.add(key);
          reportDamage(`The delivery with the key ${key}`);
        },
      );
      // More is damaged than a page of records.
      if (woken.length === 0) return keys.length < limit ? null : passOver(replay);
      const webhooks = [...new Set(woken.flat())].map((webhookKey) => ({ tenantKey, webhookKey }));
      return { replay: toReplay(replayAt.get(replayKey)), tenantId, webhooks };
    }
    if (!isGone && isLeft("[]")) return isLeft(lostKeys) ? "owned" : null;
    await writer.submit<void>(() => void endReturning.run(replayKey));
    return null;
  }

  const verbs: CancelledRuns = {
    cancelReplay: (tenantKey, replayId, now, act) =>
      writer.submit<Replay | null>((tx) => {
        const held = hold(tx, tenantKey);
        const refusal = refusalOfWrite(held);
        if (refusal) return refuse(refusal);
        const row = byId.get(replayId, tenantKey);
        if (!row) return null;
        const isCancelled = cancelOne(tx, held, row, now);
        if (act && isCancelled) audit.note(tx, held.tenant.id, act);
        return toReplay(replayAt.get(row.key));
      }),

    cancelReplays: (limit, now, by) =>
      writer.submit<number>((tx) => {
        const rows = selectUnfinished.all(limit);
        for (const row of rows) {
          const held = hold(tx, row.tenantKey);
          cancelOne(tx, held, row, now);
          if (row.kind !== "single") audit.note(tx, held.tenant.id, replayCancelled(by, row.id));
        }
        return rows.length;
      }),

    async returnCancelled(limit) {
      const returning = await readOrRefuse(
        () => reportDamage("The list of replays"),
        () => selectReturning.all(),
      );
      let isOwned = false;
      for (const replay of returning) {
        const some = await returnSome(replay, limit).catch((error) => {
          if (isDamage(error) || isStorageDamaged(error)) return passOver(replay);
          throw error;
        });
        if (some !== "owned" && some !== null) return some;
        isOwned ||= some === "owned";
      }
      return isOwned ? "owned" : null;
    },
  };

  return {
    verbs,
    putBack(tx, keys) {
      const askedAt = failedAskedAt();
      for (const key of keys) putOneBack(tx, key, askedAt);
    },
  };
}
