import type { WebhookHealth, WebhookVerbs } from "../store.ts";
import { type LastAttempt, type LatestRecord, summarizeHealth } from "../webhook-health.ts";
import type { Connection } from "./connection.ts";
import { arrayText } from "./parameters.ts";
import type { Transaction } from "./pool.ts";

/**
 * The latest records of each webhook (`$2`) of a tenant (`$1`), up to `$4` of each, among the latest `$3` of the tenant. The
 * queue and history are each walked along their index; that of history has everything that the choice needs, and only the
 * chosen records are read. A single statement, so that a record that moves from one to the other meanwhile is found once.
 *
 * `limit 1` leaves the planner no choice but to look each of them up.
 */
export const latestText = `
  with walked as materialized (
    (select event_seq, key, webhook_key, true as waits, last_attempt_at, last_duration_ms, error_reason, error_code, status_code
      from pending
      where tenant_key = $1::bigint order by event_seq desc, key limit $3::int)
    union all
    (select event_seq, key, webhook_key, false, null, null, null, null, null from delivery
      where tenant_key = $1::bigint order by event_seq desc, key limit $3::int)
  ), latest as (
    select * from walked order by event_seq desc, key limit $3::int
  ), placed as (
    select *, row_number() over (partition by webhook_key order by event_seq desc, key) as place
    from latest where webhook_key = any($2::bigint[])
  )
  select webhook_key::float8 as "webhookKey", event_seq::float8 as "eventSeq", found.*
  from placed cross join lateral (
    select 'PENDING' as state, placed.last_attempt_at::float8 as "lastAttemptAt", placed.error_reason as "errorReason",
      placed.error_code as "errorCode", null::float8 as "typeHash", placed.status_code as "statusCode",
      (placed.last_attempt_at + coalesce(placed.last_duration_ms, 0))::float8 as "endedAt" where waits
    union all
    (select case state when 1 then 'DELIVERED' else 'FAILED' end, last_attempt_at::float8, error_reason, error_code,
        type_hash::float8, status_code, (last_attempt_at + coalesce(last_duration_ms, 0))::float8
      from delivery where not waits and tenant_key = $1::bigint and delivery.event_seq = placed.event_seq
        and delivery.key = placed.key limit 1)
  ) found
  where place <= $4::int`;

/** The statuses of the attempts that began at `$3`, for the events `$4`, of these webhooks (`$2`) of a tenant (`$1`). */
export const statusesText = `
  select asked.webhook_key::float8 as "webhookKey", found.status_code as "statusCode"
  from unnest($2::bigint[], $3::bigint[], $4::bigint[]) as asked (webhook_key, started_at, event_seq)
  cross join lateral (
    select status_code from attempt where attempt.event_seq = asked.event_seq and attempt.tenant_key = $1::bigint
      and attempt.webhook_key = asked.webhook_key and attempt.started_at = asked.started_at
    order by key desc limit 1
  ) found`;

interface LatestOfWebhook extends LatestRecord {
  readonly webhookKey: number;
  readonly statusCode: number | null;
  /** When its latest attempt ended; null: there was none. */
  readonly endedAt: number | null;
}

export const latestOf = (
  read: Transaction["run"],
  tenantKey: number,
  keys: readonly number[],
  { records, walked }: HealthLimits,
) => read<LatestOfWebhook>(latestText, [tenantKey, arrayText(keys), walked, records]);

export function webhookHealthVerbs({
  pool,
  webhooks: webhooksOf,
}: Pick<Connection, "pool"> & Pick<WebhookVerbs, "webhooks">): Pick<WebhookVerbs, "webhookHealth"> {
  async function statusesOf(
    tenantKey: number,
    attempts: readonly (LastAttempt & { webhookKey: number })[],
  ): Promise<Map<number, number | null>> {
    const rows = await pool.read<{ webhookKey: number; statusCode: number | null }>(statusesText, [
      tenantKey,
      arrayText(attempts.map(({ webhookKey }) => webhookKey)),
      arrayText(attempts.map(({ at }) => at)),
      arrayText(attempts.map(({ eventSeq }) => eventSeq)),
    ]);
    return new Map(rows.map(({ webhookKey, statusCode }) => [webhookKey, statusCode]));
  }

  return {
    async webhookHealth(tenantKey, limits) {
      const webhooks = await webhooksOf(tenantKey);
      if (webhooks.length === 0) return [];
      const keys = webhooks.map(({ key }) => key);
      const rows = await latestOf(pool.read, tenantKey, keys, limits);
      const latest = Map.groupBy(rows, ({ webhookKey }) => webhookKey);
      const summaries = webhooks.map((webhook) => ({ webhook, ...summarizeHealth(latest.get(webhook.key) ?? []) }));
      const attempts = summaries.flatMap(({ webhook, last }) => (last ? [{ ...last, webhookKey: webhook.key }] : []));
      const statuses = await statusesOf(tenantKey, attempts);
      return summaries.map(
        ({ webhook, health }): WebhookHealth => ({
          webhook,
          ...health,
          lastStatusCode: statuses.get(webhook.key) ?? null,
        }),
      );
    },
  };
}

type HealthLimits = Parameters<WebhookVerbs["webhookHealth"]>[1];
