import type { RecordBody } from "../../support/api-server.ts";
import type { Expected } from "../../support/expected-outcome.ts";
import type { Group } from "./catalogue.ts";

/** What the record of a webhook with a hostile receiver must say; the words are those of rules, section 7. */
export interface Wanted {
  /** A retry waits for an hour, so that it is seen as a verdict and not as another attempt. */
  verdict: "acknowledged" | "retryable" | "permanent";
  statusCode: number | null;
  error: string | null;
}

export interface AttemptBody {
  targetWebhook: string;
  durationMs: number;
  statusCode: number | null;
  error: string | null;
}

export function wantedOf(expected: Expected, url: string): Wanted {
  if (expected.kind === "no-response") {
    return { verdict: "retryable", statusCode: null, error: wordsFor(expected.cause, expected.detail, url) };
  }
  const { status } = expected;
  if (status >= 200 && status < 300) return { verdict: "acknowledged", statusCode: status, error: null };
  const isPermanent = status >= 400 && status < 500 && status !== 429;
  return {
    verdict: isPermanent ? "permanent" : "retryable",
    statusCode: status,
    error: `HTTP ${status} from ${url}`,
  };
}

function wordsFor(cause: string, detail: string | undefined, url: string): string {
  const why = detail === undefined ? "" : ` (${detail})`;
  const words: Record<string, string> = {
    timeout: `No response within 10 s from ${url}`,
    connection_refused: `Connection refused by ${url}`,
    connection_reset: `Connection closed by ${url} without a response`,
    tls_failed: `TLS connection to ${url} failed${why}`,
    protocol_error: `Invalid HTTP response from ${url}${why}`,
  };
  return words[cause] ?? `(no words for ${cause})`;
}

export function verdictOf({ state, nextAttemptAt }: RecordBody): Wanted["verdict"] | "unfinished" {
  if (state === "DELIVERED") return "acknowledged";
  if (state === "FAILED") return "permanent";
  return nextAttemptAt === null ? "unfinished" : "retryable";
}

/** Specification, "Limits": a webhook has 10 s. */
export const attemptMs = 10_000;
/** What is not to take the whole time is far from it, also on a loaded machine. */
const minTimeoutMs = 9_900;

/** What came of all attempts to one receiver. */
export interface Tally {
  readonly title: string;
  readonly group: Group;
  readonly wanted: Wanted["verdict"];
  times: number;
  /** Of an attempt, to its verdict. */
  longestMs: number;
  /** Of a connection, to its end, as the receiver saw it; what is read of a body is in it. */
  connectionMs: number;
  readonly faults: string[];
}

/** @param maxLateMs how late the machine may let a timer fire */
export function note(
  tally: Tally,
  expected: Expected,
  record: RecordBody,
  attempt: AttemptBody,
  maxLateMs: number,
): void {
  const { targetWebhook: url, durationMs, statusCode, error } = attempt;
  const wanted = wantedOf(expected, url);
  tally.times += 1;
  tally.longestMs = Math.max(tally.longestMs, durationMs);
  const seen: Wanted = { verdict: verdictOf(record) as Wanted["verdict"], statusCode, error };
  const isTimeout = expected.kind === "no-response" && expected.cause === "timeout";
  const isInTime =
    durationMs <= attemptMs + maxLateMs && (isTimeout ? durationMs >= minTimeoutMs : durationMs < minTimeoutMs);
  if (Bun.deepEquals(seen, wanted) && record.errorReason === wanted.error && isInTime) return;
  tally.faults.push(`${tally.title}: ${JSON.stringify({ ...seen, durationMs })}, not ${JSON.stringify(wanted)}`);
}
