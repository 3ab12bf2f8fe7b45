import type { Webhook } from "../../api/types.ts";
import type { ListedRecord } from "./record.ts";

/** @param idOrUrl as a filter names a webhook */
export const isCalled =
  (idOrUrl: string) =>
  ({ id, url }: Pick<Webhook, "id" | "url">): boolean =>
    id === idOrUrl || url === idOrUrl;

export const isEnabled = ({ state }: Webhook): boolean => state !== "disabled";

/** The webhooks to which a replay delivers an event of this type: it passes over the others (rules, section 14). */
export const receiversOf = (webhooks: readonly Webhook[], eventType: string | null): Webhook[] =>
  webhooks.filter((webhook) => receives(webhook, eventType));

const receives = (webhook: Webhook, eventType: string | null): boolean =>
  isEnabled(webhook) && takes(webhook.event_types ?? null, eventType);

/** As the server decides it. */
export function takes(patterns: readonly string[] | null, type: string | null): boolean {
  if (patterns === null) return !type?.startsWith("postrider.");
  return patterns.some((one) => (one.endsWith(".*") ? type?.startsWith(one.slice(0, -1)) : one === type));
}

/**
 * URLs of the webhooks to which a replay delivers records that are in that state. A record of a removed webhook stays, but
 * a replay sends nothing there.
 */
export const receiversIn = (
  state: "DELIVERED" | "FAILED",
  records: readonly Pick<ListedRecord, "state" | "targetWebhook" | "eventType">[],
  webhooks: readonly Webhook[],
): string[] =>
  webhooks
    .filter((webhook) =>
      records.some(
        (record) =>
          record.state === state && record.targetWebhook === webhook.url && receives(webhook, record.eventType),
      ),
    )
    .map(({ url }) => url);
