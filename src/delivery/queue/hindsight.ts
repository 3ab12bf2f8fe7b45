import type { DueDelivery } from "../../domain/delivery.ts";
import type { WebhookRef } from "../../domain/webhook.ts";
import { createRecent } from "../../lib/recent.ts";

/**
 * What the dispatcher has learned recently. News takes time to arrive: a delivery may be offered although its webhook has
 * been removed since. Such a delivery is never older than its way is long, so a bounded memory is enough.
 */
export interface Hindsight {
  /** The webhook was removed or disabled. */
  webhookClosed(webhookKey: number): void;
  webhookEnabled(webhookKey: number): void;
  /** Some may have been enabled since, without any news of it; or the store has gone back, and none of it has happened. */
  forgetAll(): void;
  tenantDeleted(tenantKey: number): void;
  replayCancelled(replayKey: number): void;
  /** Nothing is to be sent to it. */
  isOutdated(webhook: WebhookRef): boolean;
  /** The replay that started its run has been cancelled. */
  isCancelled(delivery: Pick<DueDelivery, "replayKey">): boolean;
}

/** About 100 bytes each. */
const remembered = 10_000;

export function createHindsight(): Hindsight {
  let webhooks = createRecent<number, boolean>(remembered);
  let tenants = createRecent<number, true>(remembered);
  let replays = createRecent<number, true>(remembered);

  return {
    webhookClosed: (webhookKey) => webhooks.set(webhookKey, true),
    webhookEnabled(webhookKey) {
      if (webhooks.get(webhookKey)) webhooks.set(webhookKey, false);
    },
    forgetAll() {
      webhooks = createRecent(remembered);
      tenants = createRecent(remembered);
      replays = createRecent(remembered);
    },
    tenantDeleted: (tenantKey) => tenants.set(tenantKey, true),
    replayCancelled: (replayKey) => replays.set(replayKey, true),
    isOutdated: ({ webhookKey, tenantKey }) =>
      webhooks.get(webhookKey) === true || tenants.get(tenantKey) !== undefined,
    isCancelled: ({ replayKey }) => replayKey !== null && replays.get(replayKey) !== undefined,
  };
}
