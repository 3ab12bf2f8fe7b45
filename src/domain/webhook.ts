/** An endpoint of the tenant. A removed one stays as a row, because its records still name its URL. */
export interface Webhook extends WebhookSettings {
  readonly key: number;
  readonly id: string;
  readonly url: string;
  readonly name: string;
}

/** What the tenant may say of a webhook beside its URL (rules, section 14). */
export interface WebhookSettings {
  /** Patterns of the types that it takes; null: every event of the tenant's own. */
  readonly eventTypes: readonly string[] | null;
}

/** Of a webhook of which nothing was said. */
export const usualSettings: WebhookSettings = { eventTypes: null };

/** What a webhook is found by: its key alone does not say where it is kept. */
export interface WebhookRef {
  readonly tenantKey: number;
  readonly webhookKey: number;
}
