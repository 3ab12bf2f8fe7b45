import { isToldOf, type OwnEventType, ownPayload } from "../domain/own-events.ts";
import type { WebhookRef } from "../domain/webhook.ts";
import { messageOf } from "../lib/error-message.ts";
import type { Log } from "../lib/log.ts";
import type { AcceptedEvents, Store } from "../store/store.ts";

/** News for an account about one of its webhooks. */
export interface OwnNews {
  readonly type: OwnEventType;
  readonly about: WebhookRef;
  readonly tenantId: string;
  /** What the payload holds in addition to its type and the webhook. */
  readonly fields: Record<string, unknown>;
}

/** Never rejects: the news is an extra, and the caller's own work is already done. */
export type TellAccount = (news: OwnNews) => Promise<void>;

export interface OwnEventsDeps {
  store: Pick<Store, "webhooks" | "acceptOwnEvent">;
  /** These webhooks have something due. */
  wake(webhooks: readonly WebhookRef[]): void;
  announce(tenant: { readonly key: number; readonly id: string }, accepted: AcceptedEvents): void;
  log: Log;
}

/**
 * Tells an account something through an event of our own, which is stored and delivered like any other if a webhook asks
 * for it.
 */
export function createOwnEvents({ store, wake, announce, log }: OwnEventsDeps): TellAccount {
  return async ({ type, about: { tenantKey, webhookKey }, tenantId, fields }) => {
    try {
      // Hardly any account asks for these, and then there is nothing to write.
      const webhooks = await store.webhooks(tenantKey);
      const about = webhooks.find(({ key }) => key === webhookKey);
      if (!about || !webhooks.some((webhook) => isToldOf(webhook, type, webhookKey))) return;
      const accepted = await store.acceptOwnEvent({
        ...{ tenantKey, type, aboutKey: webhookKey },
        payload: ownPayload(type, about, fields),
      });
      if (!accepted) return;
      wake(accepted.unowned);
      announce({ key: tenantKey, id: tenantId }, accepted);
    } catch (error) {
      log.write("warn", "webhook.untold", {
        ...{ type, tenantId },
        error: messageOf(error),
      });
    }
  };
}
