import type { DisabledReason } from "../domain/failing-webhook.ts";
import type { Webhook, WebhookSettings, WebhookStanding } from "../domain/webhook.ts";
import type { ListedWebhook } from "../domain/webhook-list.ts";

/** A webhook as its row stores it. */
export type WebhookRow = Omit<Webhook, keyof WebhookSettings | keyof WebhookStanding> &
  SettingColumns &
  StandingColumns;

interface SettingColumns {
  eventTypes: string | null;
  /** Raw SQLite statements return a number. */
  ordered: boolean | number;
  paused: boolean | number;
  rateLimit: number | null;
  maxConcurrency: number | null;
  sealedHeaders: Uint8Array | null;
}

/** A webhook's standing, as columns. */
export interface StandingColumns {
  failingSince: number | null;
  /** Null when there are none. */
  goneInARow: number | null;
  toldAt: number | null;
  warnedAt: number | null;
  disabledAt: number | null;
  disabledReason: DisabledReason | null;
}

export const toWebhook = ({
  key,
  id,
  url,
  name,
  eventTypes,
  ordered,
  paused,
  rateLimit,
  maxConcurrency,
  sealedHeaders,
  ...standing
}: WebhookRow): Webhook => ({
  ...{ key, id, url, name },
  eventTypes: eventTypes === null ? null : JSON.parse(eventTypes),
  ordered: Boolean(ordered),
  paused: Boolean(paused),
  sealedHeaders,
  ...{ rateLimit, maxConcurrency },
  ...toStanding(standing),
});

const toStanding = ({
  failingSince: since,
  goneInARow,
  toldAt,
  warnedAt,
  disabledAt: at,
  disabledReason: reason,
}: StandingColumns): WebhookStanding => ({
  failing: since === null ? null : { since, goneInARow: goneInARow ?? 0, toldAt, warnedAt },
  disabled: at === null || reason === null ? null : { at, reason },
});

export const toStandingColumns = ({ failing, disabled }: WebhookStanding): StandingColumns => ({
  failingSince: failing?.since ?? null,
  goneInARow: failing?.goneInARow || null,
  toldAt: failing?.toldAt ?? null,
  warnedAt: failing?.warnedAt ?? null,
  disabledAt: disabled?.at ?? null,
  disabledReason: disabled?.reason ?? null,
});

/** The standing as raw SQL reads it. */
export const standingInSqlite = `failing_since as failingSince, gone_in_a_row as goneInARow, told_at as toldAt,
  warned_at as warnedAt, disabled_at as disabledAt, disabled_reason as disabledReason`;
export const standingInPostgres = `failing_since::float8 as "failingSince", gone_in_a_row as "goneInARow", told_at::float8 as "toldAt",
  warned_at::float8 as "warnedAt", disabled_at::float8 as "disabledAt", disabled_reason as "disabledReason"`;

/** The columns to write for a new webhook. */
export const toColumns = ({ id, url, name, ...settings }: ListedWebhook) => ({
  ...{ id, url, name },
  ...toSettingColumns(settings),
});

/** The columns to write for the settings that are given. */
export const toSettingColumns = (settings: Partial<WebhookSettings>) => {
  const { eventTypes, ordered, paused, rateLimit, maxConcurrency, sealedHeaders } = settings;
  return {
    ...(eventTypes !== undefined && { eventTypes: eventTypes && JSON.stringify(eventTypes) }),
    ...(ordered !== undefined && { ordered }),
    ...(paused !== undefined && { paused }),
    ...(rateLimit !== undefined && { rateLimit }),
    ...(maxConcurrency !== undefined && { maxConcurrency }),
    ...(sealedHeaders !== undefined && { sealedHeaders: sealedHeaders && Buffer.from(sealedHeaders) }),
  };
};
