import type { FailureCode } from "../../src/domain/failure.ts";

/** Why a delivery failed, as people say it. */
export interface Reason {
  /** A few words for a row. */
  readonly short: string;
  /** What it means. */
  readonly meaning: string;
  /** What to do about it before a replay. */
  readonly remedy: string;
  /** Where in the dashboard that is done. */
  readonly isAboutWebhooks?: boolean;
}

const theAddress =
  "Check the webhook's URL, and that its server is running and reachable from the internet, then replay.";

/** The dashboard's words, by failure code; a response is explained by its status. */
const reasons: Readonly<Record<Exclude<FailureCode, "http_status">, Reason>> = {
  timeout: {
    short: "No response within 10 s",
    meaning: "The receiver took longer than 10 s to respond.",
    remedy: "Make the receiver respond first and do the work afterwards, then replay.",
  },
  dns_failed: {
    short: "Host name not found",
    meaning: "The webhook's host name does not resolve to an address.",
    remedy: "Check the webhook's URL and the name's DNS records, then replay.",
  },
  connection_refused: {
    short: "Connection refused",
    meaning: "Nothing is listening at the webhook's address.",
    remedy: "Start the receiver, then replay.",
  },
  host_unreachable: {
    short: "Host unreachable",
    meaning: "There is no route to the webhook's host.",
    remedy: theAddress,
  },
  connection_reset: {
    short: "Connection closed",
    meaning: "The receiver closed the connection before it responded.",
    remedy: "Check the receiver's log, then replay.",
  },
  tls_failed: {
    short: "TLS failure",
    meaning: "A trusted, encrypted connection could not be established.",
    remedy: "Check the receiver's certificate and its chain, then replay.",
  },
  protocol_error: {
    short: "Not an HTTP response",
    meaning: "What came back was not valid HTTP/1.",
    remedy: theAddress,
  },
  proxy_failed: {
    short: "Proxy failure",
    meaning: "The proxy through which this server delivers did not connect to the webhook's host.",
    remedy: "Ask the operator of this server, then replay.",
  },
  address_not_public: {
    short: "Address not public",
    meaning:
      "The webhook's host name resolves to an address that is not public, and deliveries only go to public addresses.",
    remedy: "Register a URL with a public address, then replay.",
    isAboutWebhooks: true,
  },
  interrupted: {
    short: "Interrupted",
    meaning: "The server was interrupted during the attempt.",
    remedy: "Replay the event.",
  },
  no_webhook: {
    short: "No webhook was registered",
    meaning: "The event was stored, but there was nowhere to deliver it.",
    remedy: "Register a webhook, then replay the event to it.",
    isAboutWebhooks: true,
  },
  webhook_removed: {
    short: "Webhook removed",
    meaning: "Whatever was still waiting for it was given up.",
    remedy: "Register it again, then replay.",
    isAboutWebhooks: true,
  },
  webhook_disabled: {
    short: "Webhook disabled",
    meaning: "It had failed for days or answered 410, and nothing is sent to it until it is enabled.",
    remedy: "Enable it again, then replay.",
    isAboutWebhooks: true,
  },
  server_restored: {
    short: "Server restored",
    meaning: "It was pending in the backup that the server was restored from, and may have been delivered since.",
    remedy: "Check whether the receiver has the event, and replay it if not.",
  },
  unreadable: {
    short: "Event damaged",
    meaning: "Part of the event was lost on the server's disk, so it was not delivered.",
    remedy: "Ask the operator of this server to restore it from a backup, then replay.",
  },
};

const isKnown = (code: string): code is keyof typeof reasons => Object.hasOwn(reasons, code);

/** The codes that a list can be narrowed to. */
export const failureCodes: readonly string[] = ["http_status", ...Object.keys(reasons)];

export const isFailureCode = (code: string): boolean => failureCodes.includes(code);

/** What a list is narrowed to by code and status, either of which may be "". */
export function reasonInWords(code: string, status: string): string {
  const answer = status === "" ? "Any HTTP error" : `HTTP ${status}`;
  if (code === "" || code === "http_status") return answer;
  const { short } = explainFailure({ errorCode: code, statusCode: null }, code);
  return status === "" ? short : `${short}, ${answer}`;
}

/**
 * Explains the failure of a record or of an attempt.
 * @param sentence the server's own: shown as is when there is no code (the failure is older than the codes), or when this
 * page does not know the code
 */
export function explainFailure(
  { errorCode, statusCode }: { readonly errorCode: string | null; readonly statusCode: number | null },
  sentence: string,
): Reason {
  if (errorCode === "http_status" && statusCode !== null) {
    return { short: `HTTP ${statusCode}`, ...explainStatus(statusCode) };
  }
  if (errorCode !== null && isKnown(errorCode)) return reasons[errorCode];
  return {
    short: sentence,
    meaning: `${sentence}.`,
    remedy: "Fix the cause, then replay.",
  };
}

/** Specification, "Acknowledgement and retry rules"; rules, section 8. */
function explainStatus(status: number): Omit<Reason, "short"> {
  if (status === 429)
    return {
      meaning: "The receiver said that it is getting too many requests (429).",
      remedy: "Raise the receiver's limit or wait, then replay.",
    };
  if (status >= 400 && status < 500)
    return {
      meaning: `The receiver refused the event with ${status}. Any 4xx except 429 is permanent: the delivery is not retried.`,
      remedy:
        status === 401 || status === 403
          ? "Let the receiver accept requests without a login and check the signature instead, then replay."
          : "Fix the receiver or the webhook's URL, then replay.",
    };
  if (status >= 300 && status < 400)
    return {
      meaning: `The receiver answered with a redirect (${status}), and redirects are not followed.`,
      remedy: "Register the URL that it redirects to, then replay.",
      isAboutWebhooks: true,
    };
  return {
    meaning: `The receiver failed with ${status}.`,
    remedy: "Replay once it works again.",
  };
}
