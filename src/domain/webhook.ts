/** An endpoint of the tenant. A removed one stays as a row, because its records still name its URL. */
export interface Webhook {
  readonly key: number;
  readonly id: string;
  readonly url: string;
  readonly name: string;
}

/** What a webhook is found by: its key alone does not say where it is kept. */
export interface WebhookRef {
  readonly tenantKey: number;
  readonly webhookKey: number;
}
