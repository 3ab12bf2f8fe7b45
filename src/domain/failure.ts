/**
 * Why a delivery failed: a stable code for programs, with a sentence for people (rules, section 15). The sentences are
 * written here and parsed nowhere: code that has to know what happened uses the code.
 */

/** Why an attempt got no answer. All of them are retryable (rules, section 8). */
export type NoResponseCause =
  | "timeout"
  | "dns_failed"
  | "connection_refused"
  | "host_unreachable"
  | "connection_reset"
  | "tls_failed"
  | "protocol_error"
  | "address_not_public"
  | "proxy_failed"
  | "interrupted";

/** Records without an attempt: none could or will be made. */
const noAttemptCauses = ["no_webhook", "webhook_removed", "webhook_disabled", "server_restored", "unreadable"] as const;

type NoAttemptCause = (typeof noAttemptCauses)[number];

export type FailureCode = "http_status" | NoResponseCause | NoAttemptCause;

/** The statuses that an answer may have: receivers also send some that no standard knows, such as 999. */
export const statusRange = { lowest: 100, highest: 999 } as const;

/** Every code and its meaning, in the words of the interface's document. A code never changes once it has been answered. */
export const failureCodes: Readonly<Record<FailureCode, string>> = {
  http_status: "the receiver responded with the status in `statusCode`",
  timeout: "no complete response head within the time limit of an attempt",
  dns_failed: "the host name could not be resolved",
  connection_refused: "nothing is listening at the address",
  host_unreachable: "there is no route to the host",
  connection_reset: "the connection closed before the response head was complete",
  tls_failed: "no trusted TLS connection could be established",
  protocol_error: "the response is not HTTP/1",
  address_not_public: "the host name resolves to an address that deliveries may not reach",
  proxy_failed: "the proxy through which this server delivers did not connect to the host",
  interrupted: "the server shut down during a test delivery",
  no_webhook: "no webhook was registered when the event arrived",
  webhook_removed: "the webhook was removed before the delivery succeeded",
  webhook_disabled: "the webhook was disabled, because every attempt had failed for days or it kept answering 410",
  server_restored:
    "the server was restored from a backup, and its operator chose to fail the deliveries that were pending in it",
  unreadable: "the event's page in the database is damaged",
};

/** Whether a delivery that failed so may be retried. */
export const mayBeRetried = (code: string): boolean => !(noAttemptCauses as readonly string[]).includes(code);

/** A failure as it is stored and reported. */
export interface Failure {
  readonly code: FailureCode;
  /** `errorReason` (rules, section 7). It may name the URL, but never the address that was dialled. */
  readonly reason: string;
}

/** The code of an attempt in the log: one that predates the codes is known by its answer, if it had one. */
export const codeOfAttempt = ({
  error,
  errorCode,
  statusCode,
}: {
  readonly error: string | null;
  readonly errorCode: FailureCode | null;
  readonly statusCode: number | null;
}): FailureCode | null => errorCode ?? (error !== null && statusCode !== null ? "http_status" : null);

/** There is nothing to repeat; a replay delivers the event once a webhook is registered. */
export const noWebhook: Failure = { code: "no_webhook", reason: "No webhook was registered when the event arrived" };

export const webhookRemoved: Failure = {
  code: "webhook_removed",
  reason: "The webhook was removed before the delivery succeeded",
};

export const webhookDisabled: Failure = {
  code: "webhook_disabled",
  reason: "The webhook was disabled before the delivery succeeded",
};

/** It says nothing about the webhook: the server that was backed up may have delivered the event since. */
export const serverRestored: Failure = {
  code: "server_restored",
  reason: "The server was restored from a backup in which the delivery was pending",
};

/** Damage ends the delivery of one event, not the work of the queue. */
export const unreadable: Failure = {
  code: "unreadable",
  reason: "The event cannot be read because its page in the database is damaged",
};

/** A receiver answered, and did not acknowledge. */
export const refusedWith = (status: number, url: string): Failure => ({
  code: "http_status",
  reason: `HTTP ${status} from ${url}`,
});

/** @param detail a few words on the cause, without any address, port or name */
export const unanswered = (code: NoResponseCause, detail: string | undefined, url: string): Failure => ({
  code,
  reason: explain(code, detail === undefined ? "" : ` (${detail})`, url),
});

function explain(cause: NoResponseCause, because: string, url: string): string {
  switch (cause) {
    case "timeout":
      return `No response within 10 s from ${url}`;
    case "dns_failed":
      return `The host name of ${url} could not be resolved${because}`;
    case "connection_refused":
      return `Connection refused by ${url}`;
    case "host_unreachable":
      return `The host of ${url} could not be reached${because}`;
    case "connection_reset":
      return `Connection closed by ${url} without a response`;
    case "tls_failed":
      return `TLS connection to ${url} failed${because}`;
    case "protocol_error":
      return `Invalid HTTP response from ${url}${because}`;
    case "address_not_public":
      return `The address of ${url} is not public`;
    case "proxy_failed":
      return `The delivery proxy of this server did not connect to ${url}${because}`;
    case "interrupted":
      return `The attempt to reach ${url} was interrupted`;
  }
}
