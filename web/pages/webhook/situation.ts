import { call } from "../../api/client.ts";
import { serverNow } from "../../api/server-time.ts";
import type { EventPage, Webhook, WebhookHealth } from "../../api/types.ts";
import { withoutPayload } from "../events/record.ts";
import { failingOf, receiverOf } from "../overview/failing.ts";
import { type Range, startOf } from "../overview/range.ts";
import { readFailures, totalOf } from "../overview/situation.ts";

const shown = 8;

export type WebhookSituation = Awaited<ReturnType<typeof readWebhookSituation>>;

/** How one webhook is doing: what became of the events since a moment, why it fails, and its latest deliveries. */
export async function readWebhookSituation(webhook: Webhook, range: Range, signal: AbortSignal) {
  const since = new Date(startOf(range, serverNow())).toISOString();
  const [failures, health] = await Promise.all([
    readFailures({ from: since, webhook: webhook.id }, signal),
    call<WebhookHealth[]>("/v1/tenants/webhooks/health", { signal }),
  ]);
  const { from } = failures;
  const page = (state: string, query: object) =>
    call<EventPage>(`/v1/events${state}`, { query: { webhook: webhook.id, payload: "start", ...query }, signal });
  const [delivered, waiting, failed, latest] = await Promise.all([
    page("/state/DELIVERED", { from, size: shown }),
    page("/state/PENDING", { from, size: 1 }),
    page("/state/FAILED", { from, size: 1 }),
    page("", { size: shown }),
  ]);
  const newest = { latest: latest.events, delivered: delivered.events };
  return {
    from,
    ...{ delivered: totalOf(delivered), waiting: totalOf(waiting), failed: totalOf(failed) },
    health: health.find(({ id }) => id === webhook.id) ?? null,
    failing: failingOf(failures, [receiverOf(webhook, failures, newest)])[0] ?? null,
    latest: latest.events.map(withoutPayload),
  };
}
