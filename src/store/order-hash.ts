import { lineOf } from "../domain/order.ts";
import type { WebhookSettings } from "../domain/webhook.ts";

/**
 * Identifies the line of a webhook in which deliveries with an ordering key wait: 53 bits of the key's XXH64; null when they
 * wait in none. Two keys with the same hash would wait for each other, with no other effect; with a million keys that happens
 * in one of 20,000 accounts.
 */
export function orderHashFor(webhook: Pick<WebhookSettings, "ordered">, orderingKey: string | null): number | null {
  const line = lineOf(webhook, orderingKey);
  return line === null ? null : Number(Bun.hash.xxHash64(line) >> 11n);
}
