import { formatDuration } from "../../lib/duration.ts";
import { count, counted } from "../count.ts";
import type { Style } from "../style.ts";
import { plainText } from "../table.ts";

/** A replay as shown by `GET /v1/events/replays/{id}`. `selected` counts events, the numbers after it count records. */
export interface ReplayRow {
  readonly id: string;
  readonly kind: string;
  readonly replayGroupId: string;
  /** The filters it was narrowed by, by name; absent when there were none. */
  readonly filter?: Readonly<Record<string, string | number>>;
  readonly status: string;
  readonly selected: number;
  readonly queued: number;
  readonly delivered: number;
  readonly failed: number;
  readonly superseded: number;
  readonly skipped: number;
  /** Records cancelled before they were sent; absent when none was. */
  readonly returned?: number;
  /** Events whose payload was erased; absent when there were none. Their deliveries are among the skipped ones. */
  readonly payloadsErased?: number;
  readonly createdAt: string;
  readonly completedAt: string | null;
}

/** Whether nothing more will happen to it. */
export const hasEnded = ({ status }: ReplayRow): boolean => status === "completed" || status === "cancelled";

/** Whether everything it was to deliver was acknowledged. What a later replay has overtaken may still fail there. */
export const hasSucceeded = ({ status, failed, superseded, skipped }: ReplayRow): boolean =>
  status === "completed" && failed === 0 && superseded === 0 && skipped === 0;

/** Records that have not ended. Of a cancelled replay: they are under way, or will be taken back. */
export const waitingOf = ({ queued, delivered, failed, superseded, returned = 0 }: ReplayRow): number =>
  queued - delivered - failed - superseded - returned;

/**
 * `97 delivered, 3 failed, 32 waiting`: the queued records, by outcome.
 * @param why deliveries were skipped, if that is known
 */
export function outcomeWords(replay: ReplayRow, style: Style, why?: string): string {
  const { status, delivered, failed, superseded, skipped, returned = 0 } = replay;
  const waiting = waitingOf(replay);
  const without = leastWithoutRecord(replay);
  return [
    delivered > 0 ? style.good(`${count(delivered)} delivered`) : "0 delivered",
    ...(failed > 0 ? [style.bad(`${count(failed)} failed`)] : []),
    ...(waiting > 0
      ? [`${count(waiting)} ${status === "cancelled" ? "under way or not taken back yet" : "waiting"}`]
      : []),
    ...(returned > 0 ? [`${count(returned)} taken back`] : []),
    ...(superseded > 0 ? [`${count(superseded)} overtaken by a later replay`] : []),
    ...(skipped > 0 ? [skippedWords(replay, why)] : []),
    ...(without > 0 ? [`for ${counted(without, "event")} there was nothing to send`] : []),
  ].join(", ");
}

/** Events that lost their payload could have had several deliveries each, so how many were skipped for that is unknown. */
function skippedWords({ skipped, payloadsErased = 0 }: ReplayRow, why: string | undefined): string {
  const words = `${count(skipped)} skipped`;
  if (payloadsErased === 0) return why === undefined ? words : `${words}, as ${why}`;
  return `${words}, as ${counted(payloadsErased, "payload")} ${payloadsErased === 1 ? "was" : "were"} erased`;
}

/**
 * How many events, at least, have left no record behind; exact where they could go to one webhook alone. No webhook takes them,
 * or what had selected them has changed or been removed since. The failed replay also leaves out what another replay attempts.
 */
function leastWithoutRecord({ kind, status, selected, queued, skipped, payloadsErased = 0 }: ReplayRow): number {
  const isTold = status === "completed" && kind !== "failed" && payloadsErased === 0;
  return isTold ? selected - queued - skipped : 0;
}

/** One line on its current state. */
export function summaryOf(replay: ReplayRow, style: Style, why?: string): string {
  const { id, status, selected } = replay;
  const state = hasEnded(replay) ? status : style.bold(plainText(status));
  return `${id} ${state}: ${counted(selected, "event")}; ${outcomeWords(replay, style, why)}`;
}

/** A line that changes in place; unstyled, because it is cut to the width of the terminal. */
export function progressLine(replay: ReplayRow, elapsedMs: number, style: Style): string {
  if (replay.status === "waiting") return `${replay.id} waits for an earlier replay of the account`;
  return `${summaryOf(replay, style)}  ${formatDuration(elapsedMs)}`;
}
