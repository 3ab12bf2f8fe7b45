import type { Webhook, WebhookSettings } from "../domain/webhook.ts";
import type { ListedWebhook } from "../domain/webhook-list.ts";

/** A webhook as its row has it. */
export type WebhookRow = Omit<Webhook, keyof WebhookSettings> & SettingColumns;

interface SettingColumns {
  eventTypes: string | null;
  /** SQLite's own statements answer a number. */
  paused: boolean | number;
  rateLimit: number | null;
  maxConcurrency: number | null;
}

export const toWebhook = ({ key, id, url, name, eventTypes, paused, ...limits }: WebhookRow): Webhook => ({
  ...{ key, id, url, name },
  eventTypes: eventTypes === null ? null : JSON.parse(eventTypes),
  paused: Boolean(paused),
  ...{ rateLimit: limits.rateLimit, maxConcurrency: limits.maxConcurrency },
});

/** What is to be written of a webhook that is new. */
export const toColumns = ({ id, url, name, ...settings }: ListedWebhook) => ({
  ...{ id, url, name },
  ...toSettingColumns(settings),
});

/** What is to be written of the settings that are given. */
export const toSettingColumns = ({ eventTypes, paused, rateLimit, maxConcurrency }: Partial<WebhookSettings>) => ({
  ...(eventTypes !== undefined && { eventTypes: eventTypes && JSON.stringify(eventTypes) }),
  ...(paused !== undefined && { paused }),
  ...(rateLimit !== undefined && { rateLimit }),
  ...(maxConcurrency !== undefined && { maxConcurrency }),
});
