import type { Act } from "../domain/audit.ts";
import type { DisablePolicy, Failing, FailureEffect, Failures } from "../domain/failing-webhook.ts";
import type { Webhook, WebhookRef } from "../domain/webhook.ts";

/** What failures have done to a webhook, and the webhook as it is now. */
export interface NotedFailures extends FailureEffect {
  /** The webhook was not failing before. */
  readonly isNew: boolean;
  readonly webhook: Webhook;
}

export interface EnabledWebhook {
  readonly webhook: Webhook;
  readonly wasDisabled: boolean;
}

/** A failing webhook. */
export interface KnownFailing extends WebhookRef, Pick<Failing, "since" | "goneInARow"> {}

/** A webhook of any account that is failing or was disabled; for the operator. */
export interface FailingWebhook {
  readonly tenantId: string;
  readonly tenantName: string;
  readonly webhookId: string;
  readonly url: string;
  readonly name: string;
  readonly failingSince: number;
  /** Null while it still gets deliveries. */
  readonly disabledAt: number | null;
}

/** What failures do to webhooks (`domain/failing-webhook.ts`). A webhook that these no longer apply to is null, not an error. */
export interface FailingWebhookVerbs {
  /** Registered webhooks whose failures have been noted, and that are not disabled. */
  failingWebhooks(): Promise<KnownFailing[]>;
  /** Those of accounts that are not deleted, including disabled ones; longest failing first. */
  listFailingWebhooks(limit: number): Promise<FailingWebhook[]>;
  /**
   * Attempts have failed. Null when the webhook is no longer registered, or disabled. Where other processes deliver too, it is
   * not disabled for a row of 410 answers that its latest records contradict: the row begins after that.
   */
  noteFailures(webhook: WebhookRef, failures: Failures, policy: DisablePolicy): Promise<NotedFailures | null>;
  /**
   * An attempt succeeded at this time. Null when no earlier failure was noted, or when the webhook is disabled or no longer
   * registered.
   */
  noteSuccess(webhook: WebhookRef, at: number): Promise<Webhook | null>;
  /** New deliveries go to it again; what has failed stays failed. Null when there is no such webhook. The act records its URL. */
  enableWebhook(tenantKey: number, webhookId: string, act?: Act): Promise<EnabledWebhook | null>;
}
