import { type Failure, refusedWith, unanswered } from "../domain/failure.ts";
import type { Outcome } from "./network/transport.ts";

/** What one attempt means for its delivery (specification, "Acknowledgement and retry rules"). */
export type Verdict =
  | { kind: "acknowledged" }
  | { kind: "retryable"; failure: Failure; retryAfter?: string }
  | { kind: "permanent"; failure: Failure };

/** Judges the outcome of one attempt by the status alone. */
export function judge(outcome: Outcome, url: string): Verdict {
  if (outcome.kind === "no-response")
    return { kind: "retryable", failure: unanswered(outcome.cause, outcome.detail, url) };
  const { status, retryAfter } = outcome;
  const kind = meaningOf(status);
  if (kind === "acknowledged") return { kind };
  const failure = refusedWith(status, url);
  if (kind === "permanent") return { kind, failure };
  const saysWhen = (status === 429 || status === 503) && retryAfter !== undefined;
  return { kind: "retryable", failure, ...(saysWhen && { retryAfter }) };
}

/**
 * A 4xx says that sending the same bytes again is pointless; everything else that is not a 2xx may pass with time,
 * redirects included: receivers redirect to a maintenance page and come back.
 */
export function meaningOf(status: number): Verdict["kind"] {
  if (status >= 200 && status < 300) return "acknowledged";
  return status >= 400 && status < 500 && status !== 429 ? "permanent" : "retryable";
}
