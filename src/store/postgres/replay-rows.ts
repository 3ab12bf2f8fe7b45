import type { JsonText } from "../../domain/event.ts";
import type { ListedReplay, Replay, ReplayKind } from "../../domain/replay.ts";
import { type ReplayPhase, statusOfPhase } from "../../domain/replay-phase.ts";
import type { KeyedRow } from "./key-cursor.ts";

/** A replay as it stands in its table, with what the lanes have counted of it. */
export interface ReplayRow {
  key: number;
  id: string;
  tenantKey: number;
  kind: ReplayKind;
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
}

/**
 * The whole label of a row of `replay r`, as JSON, which is how it is stored: a label may have any character, and a text
 * here has none that is 0.
 */
export const wholeLabel =
  "coalesce((select text from replay_label l where l.tenant_key = r.tenant_key and l.key = r.label_key), r.label)";

/** As it is stored. */
export const labelText = (label: string): string => JSON.stringify(label);

export const labelOf = (text: string): string => JSON.parse(text);

const columnsWith = (label: string) => `r.key::float8 as key, r.id, r.tenant_key::float8 as "tenantKey", r.kind,
  ${label} as label, r.phase, r.from_seq::float8 as "fromSeq", r.to_seq::float8 as "toSeq",
  r.cursor_seq::float8 as "cursorSeq", r.selected::float8 as selected, r.queued::float8 as queued,
  (r.delivered + c.delivered)::float8 as delivered, (r.failed + c.failed)::float8 as failed,
  (r.superseded + c.superseded)::float8 as superseded, r.skipped::float8 as skipped,
  r.created_at::float8 as "createdAt", r.completed_at::float8 as "completedAt"`;

/** Of rows of `replay r` that `replayCounts` is joined to. */
export const replayColumns = columnsWith(wholeLabel);

/** For `replay r`: how its runs have ended since it last went to its own row. */
export const replayCounts = `cross join lateral (
  select coalesce(sum(delivered), 0) as delivered, coalesce(sum(failed), 0) as failed,
    coalesce(sum(superseded), 0) as superseded
  from replay_count where replay_count.tenant_key = r.tenant_key and replay_count.replay_key = r.key) c`;

export type ListedReplayRow = Omit<ReplayRow, "label"> & KeyedRow & { label: JsonText };

/** What a row takes beside its label. */
const bytesBeside = 300;

/** As `replayColumns`, of a list, with the label as `JsonText`: its bytes, without a string of it. */
export const listedReplayColumns = `${columnsWith(`convert_to(${wholeLabel}, 'UTF8')`)}, nth::int as nth,
  octet_length(${wholeLabel}) + ${bytesBeside} as size`;

export function toReplay(row: ReplayRow | undefined): Replay {
  if (!row) throw new Error("A replay that was just written cannot be read");
  return { ...numbersOf(row), replayGroupId: labelOf(row.label) };
}

export const toListedReplay = (row: ListedReplayRow): ListedReplay => ({ ...numbersOf(row), replayGroupId: row.label });

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
});
