import { eq } from "drizzle-orm";
import { shownUrl } from "../../domain/audit.ts";
import { changed, type WebhookStands } from "../../domain/change.ts";
import { afterFailures, endsFailing } from "../../domain/failing-webhook.ts";
import { refusalOfWrite } from "../../domain/standing.ts";
import type { RegisteredWebhook } from "../../domain/tenant-state.ts";
import { newStanding, type Webhook, type WebhookStanding } from "../../domain/webhook.ts";
import type {
  EnabledWebhook,
  FailingWebhook,
  FailingWebhookVerbs,
  KnownFailing,
  NotedFailures,
} from "../failing-webhooks.ts";
import { toStandingColumns } from "../webhook-rows.ts";
import type { Connection } from "./connection.ts";
import type { HeldTenant } from "./held-tenants.ts";
import * as t from "./schema.ts";
import { refuse } from "./transaction.ts";

export function failingWebhookVerbs({ client, db, writer, hold, audit }: Connection): FailingWebhookVerbs {
  const selectFailing = client.prepare<KnownFailing, []>(
    `select tenant_key as tenantKey, key as webhookKey, failing_since as since,
       coalesce(gone_in_a_row, 0) as goneInARow
     from webhook
     where failing_since is not null and removed_at is null and disabled_at is null`,
  );

  const selectListed = client.prepare<FailingWebhook, [number]>(
    `select tenant.id as "tenantId", tenant.name as "tenantName", webhook.id as "webhookId", webhook.url, webhook.name,
       webhook.failing_since as "failingSince", webhook.disabled_at as "disabledAt"
     from webhook join tenant on tenant.key = webhook.tenant_key
     where webhook.failing_since is not null and webhook.removed_at is null and tenant.deleted_at is null
     order by webhook.failing_since limit ?`,
  );

  function write(held: HeldTenant, webhook: RegisteredWebhook, standing: WebhookStanding): Webhook {
    const row = { ...toStandingColumns(standing), ...(webhook.disabled && { drained: false }) };
    db.update(t.webhook).set(row).where(eq(t.webhook.key, webhook.key)).run();
    held.webhooks = held.webhooks.map((one) => (one.key === webhook.key ? { ...one, ...standing } : one));
    const { used: _, ...rest } = webhook;
    return { ...rest, ...standing };
  }

  return {
    failingWebhooks: async () => selectFailing.all(),

    listFailingWebhooks: async (limit) => selectListed.all(limit),

    noteFailures: ({ tenantKey, webhookKey }, failures, policy) =>
      writer.submit<NotedFailures | null>((tx) => {
        const held = hold(tx, tenantKey);
        const webhook = held.webhooks.find(({ key }) => key === webhookKey);
        if (!webhook || webhook.disabled) return null;
        const { failing, disabled, ...effect } = afterFailures(webhook.failing, failures, policy);
        if (disabled || !webhook.failing) {
          const stands: WebhookStands = disabled
            ? { as: "disabled", at: failures.at }
            : { as: "failing", at: failing.since };
          tx.changed({ ...changed(held.tenant), kind: "webhook_stands", webhookKey, ...stands });
        }
        const standing = { failing, disabled };
        return { ...effect, ...standing, isNew: !webhook.failing, webhook: write(held, webhook, standing) };
      }),

    noteSuccess: ({ tenantKey, webhookKey }, at) =>
      writer.submit<Webhook | null>((tx) => {
        const held = hold(tx, tenantKey);
        const webhook = held.webhooks.find(({ key }) => key === webhookKey);
        if (!webhook?.failing || webhook.disabled || !endsFailing(webhook.failing, at)) return null;
        tx.changed({ ...changed(held.tenant), kind: "webhook_stands", webhookKey, as: "well", at });
        return write(held, webhook, newStanding);
      }),

    enableWebhook: (tenantKey, webhookId, act) =>
      writer.submit<EnabledWebhook | null>((tx) => {
        const held = hold(tx, tenantKey);
        const refusal = refusalOfWrite(held);
        if (refusal) return refuse(refusal);
        const webhook = held.webhooks.find(({ id }) => id === webhookId);
        if (!webhook) return null;
        if (!webhook.disabled) return { webhook, wasDisabled: false };
        tx.changed({
          ...changed(held.tenant),
          kind: "webhook_stands",
          webhookKey: webhook.key,
          as: "well",
          at: tx.now,
        });
        if (act) audit.note(tx, held.tenant.id, { ...act, detail: { webhook: shownUrl(webhook) } });
        return { webhook: write(held, webhook, newStanding), wasDisabled: true };
      }),
  };
}
