import { and, eq } from "drizzle-orm";
import { shownUrl } from "../../domain/audit.ts";
import { changed, type WebhookStands } from "../../domain/change.ts";
import { afterFailures, type EndedAttempt, endsFailing, goneSince, wouldBeGone } from "../../domain/failing-webhook.ts";
import type { RegisteredWebhook } from "../../domain/tenant-state.ts";
import { newStanding, type Webhook, type WebhookStanding } from "../../domain/webhook.ts";
import type { FailingWebhook, FailingWebhookVerbs, KnownFailing } from "../failing-webhooks.ts";
import { healthLimits } from "../webhook-health.ts";
import { toStandingColumns } from "../webhook-rows.ts";
import { noteAct } from "./audit.ts";
import type { Connection } from "./connection.ts";
import { hold, holdLiving } from "./held-tenants.ts";
import type { Transaction } from "./pool.ts";
import * as t from "./schema.ts";
import { latestOf } from "./webhook-health.ts";

/**
 * What nodes keep of a tenant includes whether a webhook is disabled, so that change is announced and invalidates it. How
 * long a webhook has been failing is read where it is needed; what nodes keep may be older.
 */
export function failingWebhookVerbs({ pool, writes }: Connection): FailingWebhookVerbs {
  async function write(
    tx: Transaction,
    tenantKey: number,
    { used: _, ...webhook }: RegisteredWebhook,
    standing: WebhookStanding,
  ): Promise<Webhook> {
    const row = { ...toStandingColumns(standing), ...(webhook.disabled && { drained: false }) };
    await tx.db
      .update(t.webhook)
      .set(row)
      .where(and(eq(t.webhook.tenantKey, tenantKey), eq(t.webhook.key, webhook.key)));
    return { ...webhook, ...standing };
  }

  /** As far back as health is judged. What other nodes got since the first of three 410s is rarely of an older event. */
  async function endedOf({ run }: Transaction, tenantKey: number, webhookKey: number): Promise<EndedAttempt[]> {
    const latest = await latestOf(run, tenantKey, [webhookKey], healthLimits);
    return latest.flatMap(({ endedAt, statusCode }) => (endedAt === null ? [] : { endedAt, statusCode }));
  }

  return {
    failingWebhooks: async () => [
      ...(await pool.read<KnownFailing>(
        `select tenant_key::float8 as "tenantKey", key::float8 as "webhookKey", failing_since::float8 as since,
           coalesce(gone_in_a_row, 0) as "goneInARow"
         from webhook
         where failing_since is not null and removed_at is null and disabled_at is null`,
      )),
    ],

    listFailingWebhooks: async (limit) => [
      ...(await pool.read<FailingWebhook>(
        `select tenant.id as "tenantId", tenant.name as "tenantName", webhook.id as "webhookId", webhook.url, webhook.name,
           webhook.failing_since::float8 as "failingSince", webhook.disabled_at::float8 as "disabledAt"
         from webhook join tenant on tenant.key = webhook.tenant_key
         where webhook.failing_since is not null and webhook.removed_at is null and tenant.deleted_at is null
         order by webhook.failing_since limit $1`,
        [limit],
      )),
    ],

    noteFailures: ({ tenantKey, webhookKey }, heard, policy) =>
      writes.submit(async (tx) => {
        const { tenant, webhooks } = await hold(tx, tenantKey);
        const webhook = webhooks.find(({ key }) => key === webhookKey);
        if (!webhook || webhook.disabled) return null;
        const failures = wouldBeGone(heard, policy)
          ? { ...heard, gone: goneSince(heard.gone, await endedOf(tx, tenantKey, webhookKey)) }
          : heard;
        const { failing, disabled, ...effect } = afterFailures(webhook.failing, failures, policy);
        if (disabled || !webhook.failing) {
          const stands: WebhookStands = disabled
            ? { as: "disabled", at: failures.at }
            : { as: "failing", at: failing.since };
          tx.changed({ ...changed(tenant), kind: "webhook_stands", webhookKey, ...stands });
        }
        const standing = { failing, disabled };
        return {
          ...effect,
          ...standing,
          isNew: !webhook.failing,
          webhook: await write(tx, tenantKey, webhook, standing),
        };
      }),

    noteSuccess: ({ tenantKey, webhookKey }, at) =>
      writes.submit(async (tx) => {
        const { tenant, webhooks } = await hold(tx, tenantKey);
        const webhook = webhooks.find(({ key }) => key === webhookKey);
        if (!webhook?.failing || webhook.disabled || !endsFailing(webhook.failing, at)) return null;
        tx.changed({ ...changed(tenant), kind: "webhook_stands", webhookKey, as: "well", at });
        return write(tx, tenantKey, webhook, newStanding);
      }),

    enableWebhook: (tenantKey, webhookId, act) =>
      writes.submit(async (tx) => {
        const { tenant, webhooks } = await holdLiving(tx, tenantKey);
        const webhook = webhooks.find(({ id }) => id === webhookId);
        if (!webhook) return null;
        if (!webhook.disabled) return { webhook, wasDisabled: false };
        tx.changed({ ...changed(tenant), kind: "webhook_stands", webhookKey: webhook.key, as: "well", at: tx.now });
        if (act) await noteAct(tx, tenant.id, { ...act, detail: { webhook: shownUrl(webhook) } });
        return { webhook: await write(tx, tenantKey, webhook, newStanding), wasDisabled: true };
      }),
  };
}
