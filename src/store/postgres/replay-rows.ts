import { filterOf, type ListedReplay, type Replay, type ReplayKind, type ReplayRef } from "../../domain/replay.ts";
import { type ReplayPhase, statusOfPhase } from "../../domain/replay-phase.ts";
import { labelOf, wholeLabel } from "./labels.ts";
import type { Transaction } from "./pool.ts";

/** A replay as stored in its table, with what the lanes have counted for it. */
export interface ReplayRow {
  key: number;
  id: string;
  tenantKey: number;
  kind: ReplayKind;
  /** In its stored form. */
  label: string;
  phase: ReplayPhase;
  fromSeq: number;
  toSeq: number;
  cursorSeq: number;
  selected: number;
  queued: number;
  delivered: number;
  failed: number;
  superseded: number;
  skipped: number;
  createdAt: number;
  completedAt: number | null;
  /** As written by `filterText`. */
  filter: string | null;
  returned: number;
  payloadsErased: number;
}

/** Columns of `replay` with `replayJoins`. */
export const replayColumns = `replay.key::float8 as key, replay.id, replay.tenant_key::float8 as "tenantKey", replay.kind,
  ${wholeLabel} as label, replay.phase, replay.from_seq::float8 as "fromSeq", replay.to_seq::float8 as "toSeq",
  replay.cursor_seq::float8 as "cursorSeq", replay.selected::float8 as selected, replay.queued::float8 as queued,
  (replay.delivered + c.delivered)::float8 as delivered, (replay.failed + c.failed)::float8 as failed,
  (replay.superseded + c.superseded)::float8 as superseded, replay.skipped::float8 as skipped,
  replay.created_at::float8 as "createdAt", replay.completed_at::float8 as "completedAt",
  replay.filter, replay.returned::float8 as returned, replay.payloads_erased::float8 as "payloadsErased"`;

/** How the runs of `replay` have ended since its counts were last moved to its own row. */
export const replayCounts = `cross join lateral (
  select coalesce(sum(delivered), 0) as delivered, coalesce(sum(failed), 0) as failed,
    coalesce(sum(superseded), 0) as superseded
  from replay_count where replay_count.tenant_key = replay.tenant_key and replay_count.replay_key = replay.key) c`;

/** What `replayColumns` needs besides `replay`. */
export const replayJoins = `left join replay_label
  on replay_label.tenant_key = replay.tenant_key and replay_label.key = replay.label_key
  ${replayCounts}`;

export function toReplay(row: ReplayRow | undefined): Replay {
  if (!row) throw new Error("A replay that was just written cannot be read");
  return { ...numbersOf(row), replayGroupId: labelOf(row.label) };
}

/** Labels are JSON, as stored. */
const utf8 = new TextEncoder();

export const toListedReplay = (row: ReplayRow): ListedReplay => ({
  ...numbersOf(row),
  replayGroupId: utf8.encode(row.label),
});

const numbersOf = (row: Omit<ReplayRow, "label">) => ({
  id: row.id,
  kind: row.kind,
  status: statusOfPhase[row.phase],
  selected: row.selected,
  queued: row.queued,
  delivered: row.delivered,
  failed: row.failed,
  superseded: row.superseded,
  skipped: row.skipped,
  createdAt: row.createdAt,
  completedAt: row.completedAt,
  filter: filterOf(row.filter),
  returned: row.returned,
  payloadsErased: row.payloadsErased,
});

export async function rowAt({ run }: Pick<Transaction, "run">, ref: ReplayRef): Promise<ReplayRow | undefined> {
  const [row] = await run<ReplayRow>(
    `select ${replayColumns} from replay ${replayJoins} where replay.tenant_key = $1::bigint and replay.key = $2::bigint`,
    [ref.tenantKey, ref.replayKey],
  );
  return row;
}
