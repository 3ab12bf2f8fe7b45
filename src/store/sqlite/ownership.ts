import type { DeliveryRef } from "../../domain/delivery.ts";

type Owned = Pick<DeliveryRef, "webhookKey" | "deliveryKey">;

/**
 * Which deliveries are somebody's: from the moment in which they were accepted or claimed until they are settled or released.
 * One process has the database to itself, so this is memory: claiming writes nothing, and after a restart nothing is owned.
 * It is as large as what its owner holds and has in flight.
 */
export interface Ownership {
  take(deliveries: readonly Owned[]): void;
  end(deliveries: readonly Owned[]): void;
  has(delivery: Owned): boolean;
  /** Keys of those of a webhook, for `json_each`. */
  listOf(webhookKey: number): string;
  /** As `listOf`, of all. */
  listAll(): string;
}

const none = "[]";

export function createOwnership(): Ownership {
  const byWebhook = new Map<number, Set<number>>();
  return {
    take(deliveries) {
      for (const { webhookKey, deliveryKey } of deliveries) {
        const keys = byWebhook.get(webhookKey);
        if (keys) keys.add(deliveryKey);
        else byWebhook.set(webhookKey, new Set([deliveryKey]));
      }
    },
    end(deliveries) {
      for (const { webhookKey, deliveryKey } of deliveries) {
        const keys = byWebhook.get(webhookKey);
        if (keys?.delete(deliveryKey) && keys.size === 0) byWebhook.delete(webhookKey);
      }
    },
    has: ({ webhookKey, deliveryKey }) => byWebhook.get(webhookKey)?.has(deliveryKey) === true,
    listOf(webhookKey) {
      const keys = byWebhook.get(webhookKey);
      return keys ? JSON.stringify([...keys]) : none;
    },
    listAll: () => JSON.stringify([...byWebhook.values()].flatMap((keys) => [...keys])),
  };
}
