import { isToldOf, type OwnEventType, ownPayload } from "../domain/own-events.ts";
import type { WebhookRef } from "../domain/webhook.ts";
import { messageOf } from "../lib/error-message.ts";
import type { Log } from "../lib/log.ts";
import type { Limit, Limits } from "../store/limits.ts";
import type { AcceptedEvents, Store } from "../store/store.ts";

/** News for an account about one of its webhooks. */
export interface OwnNews {
  readonly type: OwnEventType;
  readonly about: WebhookRef;
  readonly tenantId: string;
  /** What the payload holds in addition to its type and the webhook. */
  readonly fields: Record<string, unknown>;
}

/**
 * Never rejects: the news is an extra, and the caller's own work is already done. Resolves to false when another server has
 * just told the same.
 */
export type TellAccount = (news: OwnNews) => Promise<boolean>;

/** What each server tells by turns of a minute (`exhausted-deliveries.ts`), and all of them together no more often. */
const byTurns: ReadonlySet<OwnEventType> = new Set(["postrider.delivery.exhausted", "postrider.delivery.recovered"]);

/** Less than a turn, so that a server that is alone always finds it over. */
const turns: Limit = { name: "news of deliveries", most: 1, windowMs: 55_000, keys: 20_000 };

export interface OwnEventsDeps {
  store: Pick<Store, "webhooks" | "acceptOwnEvent">;
  limits: Pick<Limits, "take">;
  /** These webhooks have something due. */
  wake(webhooks: readonly WebhookRef[]): void;
  announce(tenant: { readonly key: number; readonly id: string }, accepted: AcceptedEvents): void;
  log: Log;
}

/**
 * Tells an account something through an event of our own, which is stored and delivered like any other if a webhook asks
 * for it.
 */
export function createOwnEvents({ store, limits, wake, announce, log }: OwnEventsDeps): TellAccount {
  return async ({ type, about: { tenantKey, webhookKey }, tenantId, fields }) => {
    try {
      // Hardly any account asks for these, and then there is nothing to write.
      const webhooks = await store.webhooks(tenantKey);
      const about = webhooks.find(({ key }) => key === webhookKey);
      if (!about || !webhooks.some((webhook) => isToldOf(webhook, type, webhookKey))) return true;
      if (byTurns.has(type) && !(await limits.take([{ limit: turns, key: `${type} ${webhookKey}` }])).ok) return false;
      const accepted = await store.acceptOwnEvent({
        ...{ tenantKey, type, aboutKey: webhookKey },
        payload: ownPayload(type, about, fields),
      });
      if (!accepted) return true;
      wake(accepted.unowned);
      announce({ key: tenantKey, id: tenantId }, accepted);
    } catch (error) {
      log.write("warn", "webhook.untold", {
        ...{ type, tenantId },
        error: messageOf(error),
      });
    }
    return true;
  };
}
