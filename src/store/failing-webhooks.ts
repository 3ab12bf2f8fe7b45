import type { Act } from "../domain/audit.ts";
import type { DisablePolicy, Failing, FailureEffect, Failures } from "../domain/failing-webhook.ts";
import type { Webhook, WebhookRef } from "../domain/webhook.ts";

/** What failures have done to a webhook, as it is now. */
export interface NotedFailures extends FailureEffect {
  /** It was well before. */
  readonly isNew: boolean;
  readonly webhook: Webhook;
}

export interface EnabledWebhook {
  readonly webhook: Webhook;
  readonly wasDisabled: boolean;
}

/** A webhook that fails. */
export interface KnownFailing extends WebhookRef, Pick<Failing, "since" | "goneInARow"> {}

/** A webhook of any account that fails or was disabled, for the operator. */
export interface FailingWebhook {
  readonly tenantId: string;
  readonly tenantName: string;
  readonly webhookId: string;
  readonly url: string;
  readonly name: string;
  readonly failingSince: number;
  /** Null: it is still delivered to. */
  readonly disabledAt: number | null;
}

/** What failures do to webhooks (`domain/failing-webhook.ts`). What nothing is to be said of any more is null, and no error. */
export interface FailingWebhookVerbs {
  /** Registered webhooks whose failures have been noted, and that are not disabled. */
  failingWebhooks(): Promise<KnownFailing[]>;
  /** Of living accounts, disabled ones too; those first that have failed for longest. */
  listFailingWebhooks(limit: number): Promise<FailingWebhook[]>;
  /** Attempts have failed. Null: the webhook is not registered any more, or disabled. */
  noteFailures(webhook: WebhookRef, failures: Failures, policy: DisablePolicy): Promise<NotedFailures | null>;
  /**
   * An attempt had succeeded at this time. Null: no failure from before was noted, or the webhook is disabled, or not
   * registered any more.
   */
  noteSuccess(webhook: WebhookRef, at: number): Promise<Webhook | null>;
  /** Deliveries go to it again, new ones; what has failed stays so. Null: there is no such webhook. The act gets its URL. */
  enableWebhook(tenantKey: number, webhookId: string, act?: Act): Promise<EnabledWebhook | null>;
}
