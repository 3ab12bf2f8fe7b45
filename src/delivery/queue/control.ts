import type { ThrottledWebhook } from "../../domain/change.ts";
import type { DeliveryRef } from "../../domain/delivery.ts";
import type { Tier } from "../../domain/tenant.ts";
import type { WebhookRef } from "../../domain/webhook.ts";

/** What the rest of the program may tell the dispatcher; `dispatcher.ts` is the one that listens. */
export interface DeliveryControl {
  /** These webhooks have something due in the table. */
  wake(webhooks: readonly WebhookRef[]): void;
  /**
   * Newer runs of these deliveries wait in the table: those that also wait here go back, to be claimed in their current state.
   */
  overtake(deliveries: readonly DeliveryRef[]): void;
  /** Once this returns, no attempt starts of a run that this replay began; one in flight still counts. */
  cancelReplay(tenantKey: number, replayKey: number): void;
  /** Once this returns, no attempt starts to these webhooks; one in flight still counts. */
  removeWebhooks(webhookKeys: readonly number[]): void;
  /** Once this returns, no attempt starts to this webhook until it is enabled; one in flight still counts. */
  disableWebhook(webhookKey: number): void;
  /** Deliveries to the webhook resume: those that wait in the table, and those to come. */
  enableWebhook(webhook: WebhookRef): void;
  /** Webhooks are no longer ordered: what is held back for them goes out. */
  endOrder(): void;
  /** Nothing more is delivered for this tenant, and attempts in flight are aborted: the account has been deleted. */
  stopTenant(tenantKey: number): void;
  /** No attempt starts for this tenant until it is resumed; attempts in flight may finish (suspension by the operator). */
  pauseTenant(tenantKey: number): void;
  resumeTenant(tenantKey: number): void;
  /**
   * Nothing that was owned here still is: attempts in flight are aborted, and what waits here is forgotten. So is what is
   * paused or disabled, since news of its end may be missed.
   * @returns the number of these deliveries
   */
  surrender(): number;
  /** There may be more to start, or to find in the table, than is known here. */
  look(): void;
  /**
   * These settings apply to the webhooks from now on. No attempt starts to a paused one; one in flight still counts. A
   * webhook that resumes sends what has been waiting before anything new.
   */
  throttle(tenantKey: number, webhooks: readonly ThrottledWebhook[]): void;
  /** The account has changed plans; the new rate applies immediately. */
  adoptPlan(tenantKey: number, tier: Tier): void;
}
