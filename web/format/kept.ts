import type { Account, Previewed } from "../api/types.ts";
import { count } from "./number.ts";

/** What retention leaves, in words, and when a replay of it asks first. */

/** Replays of more events than this ask before they begin: a click alone is not enough. */
export const mostUnasked = 100;

type Ages = Pick<Account, "retention_seconds" | "retention_payloads_seconds" | "retention_by_size">;

/** "7 days", "36 hours", "ever". */
export function ageInWords(seconds: number | null): string {
  if (seconds === null) return "ever";
  const [n, unit] = seconds % 86_400 === 0 ? [seconds / 86_400, "day"] : [seconds / 3_600, "hour"];
  return `${count(n)} ${unit}${n === 1 ? "" : "s"}`;
}

/** "Events are kept for 30 days, their payloads for 7 days." */
export function keptInWords(kept: Ages): string {
  const { retention_seconds: events, retention_payloads_seconds: payloads } = kept;
  const alone = events === payloads ? "" : `, their payloads for ${ageInWords(payloads)}`;
  if (!kept.retention_by_size) return `Events are kept for ${ageInWords(events)}${alone}.`;
  return `Events are kept ${events === null ? "" : `for ${ageInWords(events)}, or `}until room runs short${alone}.`;
}

/** How many of the events that a replay selects it can send. */
export const sendableOf = ({ selected, payloadsErased = 0 }: Previewed): number => selected - payloadsErased;

/** Why these are not all, with a leading space; "" if they are all. */
export function erasedInWords(preview: Previewed): string {
  const { selected, payloadsErased = 0 } = preview;
  if (payloadsErased === 0) return "";
  const were = payloadsErased === 1 ? "payload was" : "payloads were";
  return `${count(sendableOf(preview))} of ${count(selected)} can be replayed; ${count(payloadsErased)} ${were} erased. `;
}
