import { and, asc, eq, isNull, sql } from "drizzle-orm";
import { webhookListDetail } from "../../domain/audit.ts";
import { changed, throttled as throttledNow } from "../../domain/change.ts";
import type { Webhook } from "../../domain/webhook.ts";
import { replaceWebhooks } from "../../domain/webhook-list.ts";
import type { WebhookVerbs } from "../store.ts";
import { toColumns, toSettingColumns, toWebhook } from "../webhook-rows.ts";
import { noteAct } from "./audit.ts";
import type { Connection } from "./connection.ts";
import { hold, webhookColumns } from "./held-tenants.ts";
import { arrayText } from "./parameters.ts";
import * as t from "./schema.ts";
import { webhookHealthVerbs } from "./webhook-health.ts";
import { overtake } from "./writes.ts";

export function webhookVerbs({ pool, writes }: Connection): WebhookVerbs {
  const registered = pool.db
    .select(webhookColumns)
    .from(t.webhook)
    .where(and(eq(t.webhook.tenantKey, sql.placeholder("tenantKey")), isNull(t.webhook.removedAt)))
    .orderBy(asc(t.webhook.position))
    .prepare("webhooks_of_tenant");

  const webhooks = async (tenantKey: number): Promise<Webhook[]> =>
    (await registered.execute({ tenantKey })).map(toWebhook);

  return {
    webhooks,
    ...webhookHealthVerbs({ pool, webhooks }),

    replaceWebhooks: (tenantKey, wanted, now, act) =>
      writes.submit(async (tx) => {
        const held = await hold(tx, tenantKey);
        const change = replaceWebhooks(held, wanted);
        if (change.kind === "refused") throw change.error;
        const { removed, forgotten, throttled, unordered } = change;
        if (removed.length > 0) {
          await tx.run(
            "update webhook set removed_at = $3::bigint, drained = false, sealed_headers = null where tenant_key = $1::bigint and key = any($2::bigint[])",
            [tenantKey, arrayText(removed), now],
          );
          tx.changed({ ...changed(held.tenant), kind: "webhooks_removed", webhookKeys: removed });
        }
        if (unordered.length > 0) {
          await tx.run(
            "update webhook set is_releasing = true where tenant_key = $1::bigint and key = any($2::bigint[])",
            [tenantKey, arrayText(unordered)],
          );
          tx.changed({ ...changed(held.tenant), kind: "order_ended" });
        }
        // Whoever accepts a webhook's first record marks that while the tenant is locked, so these have none.
        if (forgotten.length > 0) {
          await tx.run("delete from webhook where tenant_key = $1::bigint and key = any($2::bigint[])", [
            tenantKey,
            arrayText(forgotten),
          ]);
        }
        if (throttled.length > 0) tx.changed({ ...changed(held.tenant), ...throttledNow(throttled) });
        const list: Webhook[] = [];
        for (const [position, webhook] of change.list.entries()) {
          const wishes = { name: webhook.name, position, ...toSettingColumns(webhook) };
          const row = { ...toColumns(webhook), tenantKey, position, createdAt: now, used: false };
          const [written] = await ("key" in webhook
            ? tx.db.update(t.webhook).set(wishes).where(keyed(tenantKey, webhook.key)).returning(webhookColumns)
            : tx.db.insert(t.webhook).values(row).returning(webhookColumns));
          if (!written) throw new Error("A webhook that was written was not returned");
          list.push(toWebhook(written));
        }
        const isTold = removed.length + throttled.length + unordered.length > 0;
        if (!isTold) await overtake(tx, new Set([tenantKey]));
        const detail = webhookListDetail(held.webhooks, list);
        if (act && detail) await noteAct(tx, held.tenant.id, { ...act, detail });
        return list;
      }),
  };
}

const keyed = (tenantKey: number, key: number) => and(eq(t.webhook.tenantKey, tenantKey), eq(t.webhook.key, key));
