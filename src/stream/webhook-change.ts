import type { Webhook } from "../domain/webhook.ts";
import { stateOf } from "../domain/webhook.ts";
import { formatIsoOrNull } from "../lib/iso-time.ts";

/** The part of the stream hub that reports the state of webhooks. */
export interface WebhookHub {
  publish(tenantId: string, kind: "webhook.changed", data: () => Record<string, unknown>): void;
}

/** Tells the account's streams that a webhook has begun to fail, works again, was disabled or was enabled. */
export function announceWebhook(hub: WebhookHub, tenantId: string, webhook: Webhook): void {
  const { id, url, failing, disabled } = webhook;
  hub.publish(tenantId, "webhook.changed", () => ({
    ...{ webhookId: id, targetWebhook: url, state: stateOf(webhook) },
    failingSince: formatIsoOrNull(failing?.since ?? null),
    disabledAt: formatIsoOrNull(disabled?.at ?? null),
    disabledReason: disabled?.reason ?? null,
  }));
}
