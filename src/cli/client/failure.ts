import { isDistrust, readFailure } from "../../delivery/network/no-response.ts";
import { StartupError } from "../../domain/errors.ts";
import type { NoResponseCause } from "../../domain/failure.ts";
import { formatDuration } from "../../lib/duration.ts";
import { codeOf } from "../../lib/error-message.ts";

/** A failure that a retry may overcome: no connection, or a server that says "not now". */
export class TemporaryFailure extends Error {
  override readonly name = "TemporaryFailure";

  constructor(
    /** As a clause: "cannot be reached (connection refused)". */
    readonly reason: string,
    readonly details: {
      /** How long the server asks to wait; null when it does not say. */
      retryAfterMs: number | null;
      /** Whether the request may have taken effect all the same. */
      mayHaveArrived: boolean;
      /** The variable that names the proxy on the way, if there is one. */
      proxy?: string | null;
      /** Absent: there was no answer. Its words are the server's own; null when something else has answered. */
      answer?: { readonly status: number; readonly words: string | null };
    },
  ) {
    super(reason);
  }
}

/**
 * For a command that stops repeating a request, or does not wait for as long as the server asks: why, and what to do.
 * @param patienceMs for how long it repeats one
 */
export function givenUp(url: string, { reason, details }: TemporaryFailure, patienceMs: number): StartupError {
  const { answer, retryAfterMs, proxy = null } = details;
  const wait = retryAfterMs === null ? "later." : `again in ${formatDuration(retryAfterMs)}.`;
  if (answer && retryAfterMs !== null && retryAfterMs > patienceMs) {
    return new StartupError(`${answer.words ?? `${url} ${reason}.`} Try: ${wait}`);
  }
  // Whatever limits requests, or says so in Postrider's form, is at the right address.
  const isRightAddress = answer !== undefined && (answer.words !== null || answer.status === 429);
  const toCheck = `${proxy === null ? "" : `check ${proxy}, and `}--server with the address of your server.`;
  const remedy = isRightAddress ? wait : toCheck;
  return new StartupError(`${url} ${reason}; gave up after ${formatDuration(patienceMs)}. Try: ${remedy}`);
}

/** Why there was no answer, in a few words. */
export function wordsFor(error: unknown): string {
  const code = codeOf(error);
  // These messages name the proxy's status, which is what the proxy's user needs.
  if (code === "ERR_PROXY_TUNNEL" && error instanceof Error) return asClause(error.message);
  const { cause, detail } = readFailure(error, false);
  return ownWords[code] ?? detail ?? causeWords[cause] ?? "connection failed";
}

/** Whether it failed before a byte was sent. */
export const isBeforeSending = (error: unknown): boolean =>
  ["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "ERR_PROXY_TUNNEL", "EPROTO"].includes(codeOf(error)) || isDistrust(error);

const ownWords: Readonly<Record<string, string>> = {
  ENOTFOUND: "no such host name",
  EAI_AGAIN: "the host name could not be looked up",
  EPROTO: "it does not speak TLS",
};

const causeWords: Partial<Record<NoResponseCause, string>> = {
  connection_refused: "connection refused",
  host_unreachable: "no route",
  connection_reset: "connection closed",
  protocol_error: "the response is not HTTP",
  tls_failed: "TLS handshake failed",
};

const asClause = (words: string) => words.charAt(0).toLowerCase() + words.slice(1);
