import { explainFailure } from "../../format/failure.ts";
import { count } from "../../format/number.ts";
import { withoutQuery } from "../../format/shorten.ts";
import { duration, relativeTime } from "../../format/time.ts";
import { type NextAttempt, nextAttemptOf } from "./next-attempt.ts";
import type { ListedRecord } from "./record.ts";

/**
 * "HTTP 503 · 41 ms · 3 tries · next in 4 min"
 * @param isPaused the operator holds back all deliveries, or the account those to this webhook
 */
export function outcomeOf(record: ListedRecord, nowMs: number, isPaused = false): string {
  const { state, errorReason, statusCode, attempts, lastDurationMs, nextAttemptAt } = record;
  const reason = errorReason === null ? null : withoutQuery(explainFailure(record, errorReason).short);
  const tried = attempts === 0 ? null : attempts === 1 ? "1 try" : `${count(attempts)} tries`;
  // How long a response took. If none came, the reason says how long that lasted.
  const isAnswered = state === "DELIVERED" || statusCode !== null;
  const took = isAnswered && lastDurationMs !== null ? duration(lastDurationMs) : null;
  const said = (what: string, ...parts: readonly (string | null)[]) =>
    [what, took, tried, ...parts].filter((part) => part !== null).join(" · ");
  if (state === "SKIPPED") return "No webhook takes its type";
  if (state === "DELIVERED") return said("Delivered");
  if (state === "FAILED") return said(reason ?? "Failed");
  if (record.heldBack) return said(reason ?? "Waiting", "held back by an earlier one with the same key");
  const next = nextAttemptOf(nextAttemptAt, nowMs, isPaused);
  if (attempts === 0) return said(reason ?? (next === "turn" ? "Waiting for its turn" : "Waiting"));
  return said(reason ?? "Waiting", soonInWords[next] ?? `next ${relativeTime(Date.parse(nextAttemptAt ?? ""), nowMs)}`);
}

const soonInWords: Readonly<Partial<Record<NextAttempt, string>>> = {
  paused: "paused",
  now: "next now",
  turn: "waiting for its turn",
};
