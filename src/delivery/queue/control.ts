import type { ThrottledWebhook } from "../../domain/change.ts";
import type { DeliveryRef } from "../../domain/delivery.ts";
import type { Tier } from "../../domain/tenant.ts";
import type { WebhookRef } from "../../domain/webhook.ts";

/** What the rest of the program may tell the dispatcher; `dispatcher.ts` is the one that listens. */
export interface DeliveryControl {
  /** These webhooks have something due in the table. */
  wake(webhooks: readonly WebhookRef[]): void;
  /** Newer runs of these deliveries wait in the table: those that wait here as well go back, to be claimed as they stand. */
  overtake(deliveries: readonly DeliveryRef[]): void;
  /** From the return on, no attempt of a run that this replay began starts; one in flight still counts. */
  cancelReplay(tenantKey: number, replayKey: number): void;
  /** From the return on, no attempt starts to these webhooks; one in flight still counts. */
  removeWebhooks(webhookKeys: readonly number[]): void;
  /** From the return on, no attempt starts to this webhook until it is enabled; one in flight still counts. */
  disableWebhook(webhookKey: number): void;
  /** What waits in the table for the webhook goes on, and what comes. */
  enableWebhook(webhook: WebhookRef): void;
  /** Webhooks are not ordered any more: what is held back for them goes out. */
  endOrder(): void;
  /** Nothing more is delivered for this tenant, and attempts in flight are aborted: the account is deleted. */
  stopTenant(tenantKey: number): void;
  /** No attempt starts for this tenant until it is resumed; attempts in flight end (operator's suspension). */
  pauseTenant(tenantKey: number): void;
  resumeTenant(tenantKey: number): void;
  /** Nothing of what is owned here is so any more: attempts in flight are aborted, and what waits here is forgotten. */
  surrender(): void;
  /** There may be more to start, or to find in the table, than was known of. */
  look(): void;
  /**
   * These webhooks go by this from now on. To a paused one no attempt starts; one in flight still counts. One that goes on
   * sends what has waited before what comes now.
   */
  throttle(tenantKey: number, webhooks: readonly ThrottledWebhook[]): void;
  /** The account has another plan now; its rate holds at once. */
  adoptPlan(tenantKey: number, tier: Tier): void;
}
