import type { NoResponseCause, Reply } from "./transport.ts";

/** What one attempt means for its delivery (specification, "Acknowledgement and retry rules"). */
export type Verdict =
  | { kind: "acknowledged" }
  | { kind: "retryable"; reason: string; retryAfter?: string }
  | { kind: "permanent"; reason: string };

/**
 * Judges the outcome of one attempt by the status alone. A 4xx says that sending the same bytes again is pointless;
 * everything else that is not a 2xx may pass with time, a redirect too: receivers redirect to a maintenance page and come
 * back.
 */
export function judge(reply: Reply, url: string): Verdict {
  if (reply.kind === "no-response") return { kind: "retryable", reason: explain(reply.cause, reply.detail, url) };
  const { status, retryAfter } = reply;
  if (status >= 200 && status < 300) return { kind: "acknowledged" };
  const reason = `HTTP ${status} from ${url}`;
  if (status >= 400 && status < 500 && status !== 429) return { kind: "permanent", reason };
  const saysWhen = (status === 429 || status === 503) && retryAfter !== undefined;
  return { kind: "retryable", reason, ...(saysWhen && { retryAfter }) };
}

/** Decisions, section 7: `errorReason`. It names the URL and never the address that was dialled. */
function explain(cause: NoResponseCause, detail: string | undefined, url: string): string {
  const because = detail === undefined ? "" : ` (${detail})`;
  switch (cause) {
    case "timeout":
      return `No response within 10 s from ${url}`;
    case "dns":
      return `The host name of ${url} could not be resolved${because}`;
    case "refused":
      return `Connection refused by ${url}`;
    case "unreachable":
      return `The host of ${url} could not be reached${because}`;
    case "reset":
      return `Connection closed without an answer by ${url}`;
    case "tls":
      return `TLS failure with ${url}${because}`;
    case "protocol":
      return `Not a valid HTTP answer from ${url}${because}`;
    case "address_not_public":
      return `The address of ${url} is not public`;
    case "aborted":
      return `The attempt to ${url} was interrupted`;
  }
}
