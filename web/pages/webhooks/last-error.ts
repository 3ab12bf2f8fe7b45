import type { WebhookHealth } from "../../api/types.ts";
import { explainFailure } from "../../format/failure.ts";
import { withoutUrl } from "../../format/outcome.ts";
import type { Failing } from "../overview/failing.ts";

export interface LastError {
  /** ISO 8601: when the attempt started. */
  readonly at: string;
  readonly words: string;
}

/** Deliveries end like this without an attempt. */
const withoutAttempt: readonly (string | null)[] = ["webhook_removed", "webhook_disabled", "server_restored"];

/**
 * The latest error of a webhook: that of its latest deliveries, or a later one of others. A retry of an earlier delivery
 * may be what failed last, and of a webhook that hangs the latest hundred may all be untried.
 *
 * @param failing what fails at the webhook; undefined: nothing, or it is not known
 */
export function lastErrorOf(
  { lastFailedAt, lastError, url }: Pick<WebhookHealth, "lastFailedAt" | "lastError" | "url">,
  failing: Pick<Failing, "causes"> | undefined,
): LastError | null {
  const known = lastFailedAt === null || lastError === null ? null : { at: lastFailedAt, words: lastError };
  const [latest] = (failing?.causes ?? [])
    .filter(({ code }) => !withoutAttempt.includes(code))
    .toSorted((one, other) => other.lastFailedAt - one.lastFailedAt);
  if (latest && latest.lastFailedAt > Date.parse(known?.at ?? "1970-01-01")) {
    const { short } = explainFailure({ errorCode: latest.code, statusCode: latest.status }, "Failed");
    return { at: new Date(latest.lastFailedAt).toISOString(), words: short };
  }
  return known && { ...known, words: withoutUrl(known.words, url) };
}
