import type { JsonText } from "./event.ts";
import type { FailureCode } from "./failure.ts";

/**
 * Rules, section 15: a label may be as long as a body, and is cut to this many characters where each of a thousand
 * attempts names it. Its records and its replay have it in full.
 */
export const listedLabelCharacters = 255;

/** The label as it appears with attempts: one that is longer ends with an ellipsis. */
export function cutLabel(label: string): string {
  if (label.length <= listedLabelCharacters) return label;
  const begin = label.slice(0, listedLabelCharacters - 1);
  // Do not cut within a character of two units.
  return `${begin.isWellFormed() ? begin : begin.slice(0, -1)}…`;
}

export type ReplayKind = "single" | "timeline" | "all" | "failed";
export type ReplayStatus = "waiting" | "running" | "completed" | "cancelled";

/**
 * Narrows a replay, whatever its kind (rules, section 10): it takes an event that has a record which matches all of this.
 * What is absent leaves nothing out.
 */
export interface ReplayFilter {
  /**
   * Id or URL of a webhook, which is then the only one to get the events: those that it has a record of and, with a failure,
   * those that it has none of and that failed so for a webhook that is gone.
   */
  readonly webhook?: string | undefined;
  /** The event's type, as it was given. */
  readonly type?: string | undefined;
  /**
   * The failure's code and status, as `selectFailures` takes them: only webhooks whose record failed that way, or waits
   * after it, get the event.
   */
  readonly code?: FailureCode | undefined;
  readonly status?: number | undefined;
  /** Ingestion times, both inclusive. */
  readonly from?: number | undefined;
  readonly to?: number | undefined;
}

/** The form that stores keep: JSON, and null for a filter that leaves nothing out. */
export function filterText(filter: ReplayFilter = {}): string | null {
  const text = JSON.stringify(filter);
  return text === "{}" ? null : text;
}

/** The reverse of `filterText`. */
export const filterOf = (text: string | null): ReplayFilter | null => (text === null ? null : JSON.parse(text));

/** What a replay would take now, in events. */
export interface ReplayPreview {
  readonly selected: number;
  /** How many of them have nothing left to deliver again (`retention.ts`). */
  readonly payloadsErased: number;
}

/** A request to deliver stored events again. `selected` counts events, and so does `payloadsErased`; the other numbers count records. */
export interface Replay {
  readonly id: string;
  readonly kind: ReplayKind;
  readonly replayGroupId: string;
  /** Null: it has none. */
  readonly filter: ReplayFilter | null;
  readonly status: ReplayStatus;
  readonly selected: number;
  readonly queued: number;
  readonly delivered: number;
  readonly failed: number;
  readonly superseded: number;
  readonly skipped: number;
  /** Records that returned to what they were before when it was cancelled. */
  readonly returned: number;
  /** Events that had nothing left to deliver again (`retention.ts`). Their records are among the skipped ones. */
  readonly payloadsErased: number;
  readonly createdAt: number;
  readonly completedAt: number | null;
}

/** Identifies a replay internally: its key alone does not say where it is kept. */
export interface ReplayRef {
  readonly tenantKey: number;
  readonly replayKey: number;
}

/** A replay in a list of them. */
export type ListedReplay = Omit<Replay, "replayGroupId"> & { readonly replayGroupId: JsonText };
