import { beforeOf } from "../../domain/cancelled-run.ts";
import { deliveryStates } from "../../domain/delivery.ts";
import type { JsonText } from "../../domain/event.ts";
import { filterOf, type ListedReplay, type Replay, type ReplayKind } from "../../domain/replay.ts";
import { type ReplayPhase, statusOfPhase } from "../../domain/replay-phase.ts";
import type { ReplayedRecord } from "../../domain/requeue.ts";

/** A replay as its table stores it. */
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
  /** As `filterText` writes it. */
  filter: string | null;
  returned: number;
  payloadsErased: number;
}

/** The full label of a `replay` row: long ones are stored separately. */
export const wholeLabel =
  "coalesce((select text from replay_label where replay_label.key = replay.label_key), replay.label)";

const columnsWith = (label: string) => `key, id, tenant_key as tenantKey, kind, ${label} as label, phase,
  from_seq as fromSeq, to_seq as toSeq, cursor_seq as cursorSeq, selected, queued, delivered, failed, superseded, skipped,
  created_at as createdAt, completed_at as completedAt, filter, returned, payloads_erased as payloadsErased`;

export const replayColumns = columnsWith(wholeLabel);

/** A text as `JsonText`, without creating a string for it. */
export const jsonTextSql = (text: string) => `cast(json_quote(${text}) as blob)`;

export type ListedReplayRow = Omit<ReplayRow, "label"> & { label: JsonText };

export const listedReplayColumns = columnsWith(jsonTextSql(wholeLabel));

export function toReplay(row: ReplayRow | null): Replay {
  if (!row) throw new Error("A replay that was just written cannot be read");
  return { ...numbersOf(row), replayGroupId: row.label };
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
  filter: filterOf(row.filter),
  returned: row.returned,
  payloadsErased: row.payloadsErased,
});

interface Replayed extends ReplayedRecord {
  readonly orderHash: number | null;
}

/** A record of a replayed event. */
export type ReplayedRow = Omit<Replayed, "state" | "before"> & { state: number; before: string | null };

export const toReplayed = ({ state, before, ...row }: ReplayedRow): Replayed => ({
  ...row,
  state: deliveryStates[state] ?? "FAILED",
  before: beforeOf(before),
});

/** What was done for some events: records queued and skipped, and events whose payload was erased. */
export type Done = Pick<ReplayRow, "queued" | "skipped" | "payloadsErased">;

export const noneDone: Done = { queued: 0, skipped: 0, payloadsErased: 0 };

export const plus = (one: Done, other: Done): Done => ({
  queued: one.queued + other.queued,
  skipped: one.skipped + other.skipped,
  payloadsErased: one.payloadsErased + other.payloadsErased,
});
