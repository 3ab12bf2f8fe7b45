import { eq, inArray } from "drizzle-orm";
import { webhookListDetail } from "../../domain/audit.ts";
import { changed, throttled as throttledNow } from "../../domain/change.ts";
import type { RegisteredWebhook } from "../../domain/tenant-state.ts";
import type { Webhook } from "../../domain/webhook.ts";
import { type AddedWebhook, replaceWebhooks } from "../../domain/webhook-list.ts";
import type { WebhookHealth, WebhookVerbs } from "../store.ts";
import { toColumns, toSettingColumns } from "../webhook-rows.ts";
import type { Connection } from "./connection.ts";
import { webhooksOf } from "./held-tenants.ts";
import * as t from "./schema.ts";
import { refuse } from "./transaction.ts";

export function webhookVerbs({ db, writer, hold, reader, filing, audit }: Connection): WebhookVerbs {
  const registered = webhooksOf(db);

  return {
    webhooks: async (tenantKey) => registered(tenantKey),

    async webhookHealth(tenantKey, limits) {
      const webhooks = registered(tenantKey);
      if (webhooks.length === 0) return [];
      await filing.whenFiled(tenantKey);
      const webhookKeys = webhooks.map(({ key }) => key);
      const healths = await reader.run("webhookHealth", { tenantKey, webhookKeys, ...limits });
      return webhooks.flatMap((webhook): WebhookHealth[] => {
        const health = healths.get(webhook.key);
        return health ? [{ webhook, ...health }] : [];
      });
    },

    replaceWebhooks: (tenantKey, wanted, now, act) =>
      writer.submit<Webhook[]>((tx) => {
        const held = hold(tx, tenantKey);
        const change = replaceWebhooks(held, wanted);
        if (change.kind === "refused") return refuse(change.error);
        const before = held.webhooks;
        const { removed, forgotten, throttled, unordered } = change;
        if (removed.length > 0) {
          db.update(t.webhook)
            .set({ removedAt: now, drained: false, sealedHeaders: null })
            .where(inArray(t.webhook.key, removed))
            .run();
          tx.changed({ ...changed(held.tenant), kind: "webhooks_removed", webhookKeys: removed });
        }
        if (forgotten.length > 0) db.delete(t.webhook).where(inArray(t.webhook.key, forgotten)).run();
        if (throttled.length > 0) tx.changed({ ...changed(held.tenant), ...throttledNow(throttled) });
        if (unordered.length > 0) {
          db.update(t.webhook).set({ isReleasing: true }).where(inArray(t.webhook.key, unordered)).run();
          tx.changed({ ...changed(held.tenant), kind: "order_ended" });
        }
        held.webhooks = change.list.map((webhook, position): RegisteredWebhook => {
          if (!("key" in webhook)) return add(tenantKey, webhook, position, now);
          const row = { name: webhook.name, position, ...toSettingColumns(webhook) };
          db.update(t.webhook).set(row).where(eq(t.webhook.key, webhook.key)).run();
          return webhook;
        });
        const detail = webhookListDetail(before, held.webhooks);
        if (act && detail) audit.note(tx, held.tenant.id, { ...act, detail });
        return held.webhooks.map(({ used: _, ...webhook }) => webhook);
      }),
  };

  function add(tenantKey: number, webhook: AddedWebhook, position: number, now: number): RegisteredWebhook {
    const row = { ...toColumns(webhook), tenantKey, position, createdAt: now, used: false };
    const { key } = db.insert(t.webhook).values(row).returning({ key: t.webhook.key }).get();
    return { ...webhook, key, used: false };
  }
}
