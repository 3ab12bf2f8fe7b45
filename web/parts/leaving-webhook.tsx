import { call } from "../api/client.ts";
import type { EventPage, Webhook } from "../api/types.ts";
import { count } from "../format/number.ts";
import { withoutQuery } from "../format/shorten.ts";
import { useRefresh } from "../stream/live.ts";
import { useLoaded } from "../stream/load.ts";

const recountEveryMs = 1_000;

/**
 * What removing a webhook does to the records waiting for it (rules, section 7): they fail, and registering it again does
 * not revive them.
 */
export function LeavingWebhook({ webhook, when }: { webhook: Webhook; when: string }) {
  const waiting = useLoaded(webhook.id, (signal) =>
    call<EventPage>("/v1/events/state/PENDING", { query: { webhook: webhook.id, size: 1, payload: false }, signal }),
  );
  useRefresh(
    ["event.accepted", "delivery.attempted", "delivery.finished", "deliveries.ended"],
    recountEveryMs,
    waiting.reload,
  );
  const n = waiting.data?.total;
  return (
    <p class={n === 0 ? "notice" : "notice warn"}>
      {when} removes <code>{withoutQuery(webhook.url)}</code>. {whatHappens(n, waiting.data?.totalIsExact ?? true)}
      {n !== 0 && " A replay sends those events to the webhooks registered at that time."}
    </p>
  );
}

/** Until it is known how many are waiting, the rule is stated without a number. */
function whatHappens(waiting: number | undefined, isExact: boolean): string {
  if (waiting === undefined) return "Deliveries waiting for it will fail.";
  if (waiting === 0) return "No deliveries are waiting for it.";
  if (waiting === 1) return "1 delivery waiting for it will fail.";
  return `${isExact ? "" : "More than "}${count(waiting)} deliveries waiting for it will fail.`;
}
