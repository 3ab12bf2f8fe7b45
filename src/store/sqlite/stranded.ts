/**
 * SQL: whether a record failed for a webhook that is gone, or found none, and the webhook with these keys, in JSON, has no record
 * of the event: then it may take that record's place (`requeue.ts`).
 */
export const isStrandedFor = (keys: string): string => `(delivery.state = 2
  and not exists (select 1 from webhook where webhook.key = delivery.webhook_key and webhook.removed_at is null)
  and not exists (
    select 1 from delivery own
    where own.tenant_key = delivery.tenant_key and own.filed = 1 and own.event_seq = delivery.event_seq
      and own.webhook_key in (select value from json_each(${keys}))))`;
