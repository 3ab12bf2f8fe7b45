import { relativeTime } from "../../format/time.ts";
import { explainReason } from "./reason.ts";
import { type ListedRecord, tries } from "./record.ts";

/** "HTTP 503 · 3 tries · next in 4 min" */
export function outcomeOf({ state, errorReason, attempts, nextAttemptAt }: ListedRecord, nowMs: number): string {
  const reason = errorReason === null ? null : explainReason(errorReason).short;
  const tried = attempts === 0 ? null : tries(attempts);
  const said = (...parts: readonly (string | null)[]) => parts.filter((part) => part !== null).join(" · ");
  if (state === "DELIVERED") return said("Delivered", tried);
  if (state === "FAILED") return said(reason ?? "Failed", tried);
  const next = nextAttemptAt === null ? null : Date.parse(nextAttemptAt);
  const soon = next === null || next <= nowMs ? "next now" : `next ${relativeTime(next, nowMs)}`;
  return said(reason ?? "Waiting", tried, attempts === 0 ? null : soon);
}
