import type { Disabled, Failing } from "./failing-webhook.ts";

/** An endpoint of the tenant. A removed one stays as a row, because its records still name its URL. */
export interface Webhook extends WebhookSettings, WebhookStanding {
  readonly key: number;
  readonly id: string;
  readonly url: string;
  readonly name: string;
}

/** How its deliveries have been going. */
export interface WebhookStanding {
  /** Null: its latest attempt succeeded, or it had none. */
  readonly failing: Failing | null;
  /** Null: deliveries go to it. */
  readonly disabled: Disabled | null;
}

/** The standing of a webhook to which nothing was sent yet. */
export const newStanding: WebhookStanding = { failing: null, disabled: null };

/** What the tenant may set for a webhook in addition to its URL (rules, section 14). */
export interface WebhookSettings extends Throttle {
  /** Patterns of the types that it takes; null: every event of the tenant's own. */
  readonly eventTypes: readonly string[] | null;
  /** The tenant's own headers (`HeaderVault`); null: none. */
  readonly sealedHeaders: Uint8Array | null;
  /** Deliveries of events that share an ordering key go one after the other. */
  readonly ordered: boolean;
}

/** The settings that the queue of a webhook follows. */
export interface Throttle extends WebhookLimits {
  /** Its deliveries wait. */
  readonly paused: boolean;
}

/** How fast deliveries may go out to a webhook; null: no limit of its own. */
export interface WebhookLimits {
  /** The most attempts that start in a second. */
  readonly rateLimit: number | null;
  /** The most concurrent attempts. */
  readonly maxConcurrency: number | null;
}

/** One object for all webhooks without limits: a delivery in the queue carries no copy. */
export const noLimits: WebhookLimits = { rateLimit: null, maxConcurrency: null };

/** The settings of a webhook for which nothing was set. */
export const usualSettings: WebhookSettings = {
  eventTypes: null,
  ordered: false,
  sealedHeaders: null,
  paused: false,
  ...noLimits,
};

/** Rules, section 14. */
export const highestRateLimit = 1000;

/** The limits by themselves: a delivery carries them. */
export const limitsOf = ({ rateLimit, maxConcurrency }: WebhookLimits): WebhookLimits =>
  rateLimit === null && maxConcurrency === null ? noLimits : { rateLimit, maxConcurrency };

/** Whether both have the same settings for the queue, and their deliveries carry the same. */
export const isDeliveredAlike = (a: WebhookSettings, b: WebhookSettings): boolean =>
  a.paused === b.paused &&
  a.rateLimit === b.rateLimit &&
  a.maxConcurrency === b.maxConcurrency &&
  a.sealedHeaders === b.sealedHeaders;

/** Identifies a webhook: its key alone does not say where it is kept. */
export interface WebhookRef {
  readonly tenantKey: number;
  readonly webhookKey: number;
}

/** How a webhook stands, in a word of the interface. */
export type WebhookState = "active" | "paused" | "disabled";

/** Disabled wins: a paused webhook that is enabled again is still paused. */
export function stateOf({ disabled, paused }: Pick<Webhook, "disabled" | "paused">): WebhookState {
  if (disabled) return "disabled";
  return paused ? "paused" : "active";
}

/** Whether it is still open to deliveries, despite any failures. */
export const isEnabled = ({ disabled }: Pick<Webhook, "disabled">): boolean => disabled === null;
