import type { DeliveryRef } from "../../domain/delivery.ts";

type Owned = Pick<DeliveryRef, "webhookKey" | "deliveryKey">;

/**
 * Which deliveries are owned: from the moment they were accepted or claimed until they are settled or released. One process
 * has the database to itself, so ownership is kept in memory: claiming writes nothing, and after a restart nothing is owned.
 * Its size is that of what the owner holds and has in flight.
 */
export interface Ownership {
  take(deliveries: readonly Owned[]): void;
  end(deliveries: readonly Owned[]): void;
  has(delivery: Owned): boolean;
  /** Keys of a webhook's owned deliveries, for `json_each`. */
  listOf(webhookKey: number): string;
  /** Like `listOf`, for all webhooks. */
  listAll(): string;
}

/** How many webhooks without owned deliveries are remembered: in a moment they will have some again. */
const mostEmpty = 1_000;

export function createOwnership(): Ownership {
  /** At most a few hundred keys each; for why this is not a `Set`, see `Slots`. */
  const byWebhook = new Map<number, number[]>();
  let empty = 0;

  function forgetEmpty(): void {
    for (const [webhookKey, keys] of byWebhook) if (keys.length === 0) byWebhook.delete(webhookKey);
    empty = 0;
  }

  return {
    take(deliveries) {
      for (const { webhookKey, deliveryKey } of deliveries) {
        const keys = byWebhook.get(webhookKey);
        if (!keys) byWebhook.set(webhookKey, [deliveryKey]);
        else if (!keys.includes(deliveryKey)) {
          if (keys.length === 0) empty -= 1;
          keys.push(deliveryKey);
        }
      }
    },
    end(deliveries) {
      for (const { webhookKey, deliveryKey } of deliveries) {
        const keys = byWebhook.get(webhookKey);
        const at = keys?.indexOf(deliveryKey) ?? -1;
        if (!keys || at === -1) continue;
        keys.splice(at, 1);
        if (keys.length === 0) empty += 1;
      }
      if (empty > mostEmpty) forgetEmpty();
    },
    has: ({ webhookKey, deliveryKey }) => byWebhook.get(webhookKey)?.includes(deliveryKey) === true,
    listOf: (webhookKey) => JSON.stringify(byWebhook.get(webhookKey) ?? []),
    listAll: () => JSON.stringify([...byWebhook.values()].flat()),
  };
}
