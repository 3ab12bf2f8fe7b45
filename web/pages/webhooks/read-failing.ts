import { readWebhooks } from "../../api/webhooks.ts";
import { type Failing, failingOf, receiverOf } from "../overview/failing.ts";
import { mostCounted, readFailures, readHealth, readNewest } from "../overview/situation.ts";

/** What fails of the last day's events, judged as on the overview. */
export async function readFailing(signal: AbortSignal): Promise<Failing[]> {
  const [failures, webhooks] = await Promise.all([readFailures({}, signal), readWebhooks(signal)]);
  const health = await readHealth(webhooks, signal);
  const receivers = webhooks.map(async (webhook) => {
    // Otherwise its records would tell nothing new.
    const isUnsure =
      !webhook.failing_since && failures.groups.some(({ webhookId, ongoing }) => ongoing && webhookId === webhook.id);
    const isRead = isUnsure && webhooks.length <= mostCounted;
    const newest = isRead ? await readNewest(webhook.id, failures.from, signal) : null;
    return receiverOf(webhook, failures, newest, health.get(webhook.id));
  });
  return failingOf(failures, await Promise.all(receivers));
}
