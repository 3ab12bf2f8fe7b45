import type { ReplayRef } from "../../domain/replay.ts";
import { isCompleted } from "../../domain/replay-phase.ts";
import { arrayText } from "./parameters.ts";
import type { Pool, Transaction } from "./pool.ts";

/** How the runs that a replay began have ended, as an addition to its counts. */
export type ReplayCounts = Readonly<Record<"delivered" | "failed" | "superseded", number>>;

const none: ReplayCounts = { delivered: 0, failed: 0, superseded: 0 };

/** Adds to the counts of a replay, in the row of this slot. */
export async function countReplay(
  { run }: Pick<Transaction, "run">,
  { tenantKey, replayKey }: ReplayRef,
  slot: number,
  added: Partial<ReplayCounts>,
): Promise<void> {
  const { delivered, failed, superseded } = { ...none, ...added };
  await run(
    `insert into replay_count as c (tenant_key, replay_key, slot, delivered, failed, superseded)
     values ($1::bigint, $2::bigint, $3::smallint, $4::bigint, $5::bigint, $6::bigint)
     on conflict (tenant_key, replay_key, slot) do update set delivered = c.delivered + excluded.delivered,
       failed = c.failed + excluded.failed, superseded = c.superseded + excluded.superseded`,
    [tenantKey, replayKey, slot, delivered, failed, superseded],
  );
}

/**
 * The sums of the rows of `replay_count`. They are added to what the replay's own row says, even after its end: what was
 * counted as failed may still be delivered.
 */
async function countsOf({ run }: Pick<Transaction, "run">, { tenantKey, replayKey }: ReplayRef): Promise<ReplayCounts> {
  return sumOf(
    await run<ReplayCounts>(
      `select delivered::float8 as delivered, failed::float8 as failed, superseded::float8 as superseded
        from replay_count where tenant_key = $1::bigint and replay_key = $2::bigint`,
      [tenantKey, replayKey],
    ),
  );
}

/**
 * Completes those whose events are all queued and whose runs have all ended. To be called once the transaction that ended
 * runs, or queued the last of them, is committed: of two callers at the same time, the second sees what both have counted.
 */
export async function completeReplays(pool: Pool, replays: readonly ReplayRef[], now: number): Promise<void> {
  const ended = await pool.read<ReplayRef>(
    `select tenant_key::float8 as "tenantKey", key::float8 as "replayKey" from replay
      join unnest($1::bigint[], $2::bigint[]) as given (of_tenant, of_replay) on tenant_key = of_tenant and key = of_replay
      where phase = 'queued' and queued <= delivered + failed + superseded + (
        select coalesce(sum(c.delivered + c.failed + c.superseded), 0) from replay_count c
        where c.tenant_key = of_tenant and c.replay_key = of_replay)`,
    [arrayText(replays.map(({ tenantKey }) => tenantKey)), arrayText(replays.map(({ replayKey }) => replayKey))],
  );
  for (const replay of ended) await pool.transact((tx) => completeReplay(tx, replay, now));
}

async function completeReplay(tx: Transaction, replay: ReplayRef, now: number): Promise<void> {
  const ref = [replay.tenantKey, replay.replayKey];
  // Locked: of several callers at the same time, one completes it, and nobody begins to cancel it.
  const [row] = await tx.run<ReplayCounts & { queued: number }>(
    `select queued::float8 as queued, delivered::float8 as delivered, failed::float8 as failed,
       superseded::float8 as superseded
     from replay where tenant_key = $1::bigint and key = $2::bigint and phase = 'queued' for update`,
    ref,
  );
  if (!row) return;
  const { delivered, failed, superseded } = sumOf([row, await countsOf(tx, replay)]);
  if (!isCompleted({ phase: "queued", queued: row.queued, delivered, failed, superseded })) return;
  // The counts as they are by now.
  const counted = await tx.run<ReplayCounts>(
    `delete from replay_count where tenant_key = $1::bigint and replay_key = $2::bigint
      returning delivered::float8 as delivered, failed::float8 as failed, superseded::float8 as superseded`,
    ref,
  );
  const total = sumOf([row, ...counted]);
  await tx.run(
    `update replay set phase = 'completed', completed_at = $3::bigint, delivered = $4::bigint, failed = $5::bigint,
       superseded = $6::bigint
     where tenant_key = $1::bigint and key = $2::bigint`,
    [...ref, now, total.delivered, total.failed, total.superseded],
  );
}

const sumOf = (counts: readonly ReplayCounts[]): ReplayCounts =>
  counts.reduce(
    (sum, { delivered, failed, superseded }) => ({
      delivered: sum.delivered + delivered,
      failed: sum.failed + failed,
      superseded: sum.superseded + superseded,
    }),
    none,
  );
