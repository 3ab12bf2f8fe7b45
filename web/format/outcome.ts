/** What a response means for a delivery. */
export interface Outcome {
  /** The state of the record after this attempt. */
  readonly state: "DELIVERED" | "PENDING" | "FAILED";
  /** A sentence: the rule, and what follows from it. */
  readonly rule: string;
}

/**
 * What follows from an attempt (specification, "Acknowledgement and retry rules"; rules, section 8).
 * @param status null: no response in time
 */
export function outcomeOf(status: number | null): Outcome {
  if (status === null) return { state: "PENDING", rule: "Without a response, the delivery is retried." };
  if (status >= 200 && status < 300) return { state: "DELIVERED", rule: "Any 2xx acknowledges the delivery." };
  if (status === 429) return { state: "PENDING", rule: "After a 429, the delivery is retried." };
  if (status >= 500) return { state: "PENDING", rule: "After a 5xx, the delivery is retried." };
  if (status >= 400) {
    return { state: "FAILED", rule: "A 4xx other than 429 is a permanent failure: the delivery is not retried." };
  }
  return { state: "PENDING", rule: "Redirects are not followed; the delivery is retried." };
}

/** A reason for a failure, for places where it is already clear which webhook it is about, or that call it `webhook`. */
export const withoutUrl = (reason: string, url: string, webhook = "the webhook"): string =>
  url === "" ? reason : reason.replace(url, () => webhook);
