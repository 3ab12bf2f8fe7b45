/** An endpoint of the tenant. A removed one stays as a row, because its records still name its URL. */
export interface Webhook {
  readonly key: number;
  readonly id: string;
  readonly url: string;
  readonly name: string;
}
