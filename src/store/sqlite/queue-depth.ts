import type { Database } from "bun:sqlite";
import type { QueueDepth } from "../deliveries.ts";

/** One seek for each webhook that has anything pending: `min` over the partial index, then the next one after it. */
export const pendingWebhooks = `
  select min(webhook_key) from delivery where state = 0
  union all
  select (select min(webhook_key) from delivery where state = 0 and webhook_key > lane.webhook_key)
  from lane where lane.webhook_key is not null`;

/** Goes by lanes, so that the cost depends on what is in the queue and not on the number of accounts. */
const depthText = `
  with recursive lane (webhook_key) as (${pendingWebhooks}),
  active (tenant_key, first_due_at) as (
    select tenant.key,
           case when not webhook.paused
             then (select min(next_attempt_at) from delivery where state = 0 and delivery.webhook_key = lane.webhook_key)
           end
    from lane join webhook on webhook.key = lane.webhook_key join tenant on tenant.key = webhook.tenant_key
    where webhook.removed_at is null and webhook.disabled_at is null and tenant.deleted_at is null and tenant.operator_suspended_at is null
  )
  select (select sum(pending) from tenant_usage where tenant_key in (select tenant_key from active)) as pending,
         (select min(first_due_at) from active) as oldestDueAt`;

export function queueDepth(client: Database): QueueDepth {
  const found = client.query<{ pending: number | null; oldestDueAt: number | null }, []>(depthText).get();
  return { pending: found?.pending ?? 0, oldestDueAt: found?.oldestDueAt ?? null };
}
