import { explainFailure } from "../../format/failure.ts";
import { count } from "../../format/number.ts";
import { withoutQuery } from "../../format/shorten.ts";
import { relativeTime } from "../../format/time.ts";
import type { ListedRecord } from "./record.ts";

/** "HTTP 503 · 3 tries · next in 4 min" */
export function outcomeOf(record: ListedRecord, nowMs: number): string {
  const { state, errorReason, attempts, nextAttemptAt } = record;
  const reason = errorReason === null ? null : withoutQuery(explainFailure(record, errorReason).short);
  const tried = attempts === 0 ? null : attempts === 1 ? "1 try" : `${count(attempts)} tries`;
  const said = (...parts: readonly (string | null)[]) => parts.filter((part) => part !== null).join(" · ");
  if (state === "SKIPPED") return "No webhook takes its type";
  if (state === "DELIVERED") return said("Delivered", tried);
  if (state === "FAILED") return said(reason ?? "Failed", tried);
  if (record.heldBack) return said(reason ?? "Waiting", tried, "held back by an earlier one of its key");
  const next = nextAttemptAt === null ? null : Date.parse(nextAttemptAt);
  const soon = next === null || next <= nowMs ? "next now" : `next ${relativeTime(next, nowMs)}`;
  return said(reason ?? "Waiting", tried, attempts === 0 ? null : soon);
}
