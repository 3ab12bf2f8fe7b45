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

interface Rule extends Reason {
  readonly pattern: RegExp;
}

const theAddress = "Check the webhook's URL and that its server runs and is reachable from the internet, then replay.";

/** The texts of `errorReason` (decisions, section 7), each of which ends with or holds the URL. */
const rules: readonly Rule[] = [
  {
    pattern: /^No response within 10 s /,
    short: "No response within 10 s",
    meaning: "The receiver took longer than 10 s to answer.",
    remedy: "Let it answer first and do the work after that, then replay.",
  },
  {
    pattern: /^The host name of /,
    short: "Host name not found",
    meaning: "The host name of the webhook has no address.",
    remedy: "Check the webhook's URL and the name's DNS records, then replay.",
  },
  {
    pattern: /^Connection refused /,
    short: "Connection refused",
    meaning: "Nothing listens at the webhook's address.",
    remedy: "Start the receiver, then replay.",
  },
  {
    pattern: /^The host of /,
    short: "Host not reached",
    meaning: "There is no way to the webhook's host.",
    remedy: theAddress,
  },
  {
    pattern: /^Connection closed /,
    short: "Connection closed",
    meaning: "The receiver closed the connection before it had answered.",
    remedy: "Look into the receiver's log, then replay.",
  },
  {
    pattern: /^TLS failure /,
    short: "TLS failure",
    meaning: "No trusted, encrypted connection came about.",
    remedy: "Check the receiver's certificate and its chain, then replay.",
  },
  {
    pattern: /^Not a valid HTTP answer /,
    short: "Not an HTTP answer",
    meaning: "What came back is not HTTP/1.",
    remedy: theAddress,
  },
  {
    pattern: /^The address of /,
    short: "Address not public",
    meaning:
      "The webhook's host name leads to an address that is not public, and deliveries go to public addresses only.",
    remedy: "Register a URL with a public address, then replay.",
    isAboutWebhooks: true,
  },
  {
    pattern: /^The attempt to /,
    short: "Interrupted",
    meaning: "The attempt was interrupted on this side.",
    remedy: "Replay the event.",
  },
  {
    pattern: /^No webhook was registered/,
    short: "No webhook was registered",
    meaning: "The event went nowhere. It is kept.",
    remedy: "Register a webhook, then replay the event to it.",
    isAboutWebhooks: true,
  },
  {
    pattern: /^The webhook was removed/,
    short: "Webhook removed",
    meaning: "The webhook was removed before the delivery succeeded.",
    remedy: "Register it again, then replay.",
    isAboutWebhooks: true,
  },
];

/** Explains the `errorReason` of a record. One that this page does not know is shown as it is. */
export function explainReason(errorReason: string): Reason {
  const status = Number(/^HTTP (\d{3}) from /.exec(errorReason)?.[1] ?? Number.NaN);
  if (!Number.isNaN(status)) return { short: `HTTP ${status}`, ...explainStatus(status) };
  const { pattern: _, ...reason } = rules.find(({ pattern }) => pattern.test(errorReason)) ?? {
    pattern: null,
    short: errorReason,
    meaning: errorReason.endsWith(".") ? errorReason : `${errorReason}.`,
    remedy: "See to its cause, then replay.",
  };
  return reason;
}

/** Specification, "Acknowledgement and retry rules"; decisions, section 8. */
function explainStatus(status: number): Omit<Reason, "short"> {
  if (status === 429)
    return {
      meaning: "The receiver said that it gets too many requests (429), which may pass with time.",
      remedy: "Let it take more, or wait, then replay.",
    };
  if (status >= 400 && status < 500)
    return {
      meaning: `The receiver refused the event with ${status}. Apart from 429, a 4xx is permanent: it is not tried again.`,
      remedy:
        status === 401 || status === 403
          ? "Let the receiver accept requests without a login of its own and check the signature instead, then replay."
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
    remedy: "When it works again, replay.",
  };
}
