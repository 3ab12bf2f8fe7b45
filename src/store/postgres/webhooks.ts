import { and, asc, eq, isNull, sql } from "drizzle-orm";
import { changed } from "../../domain/change.ts";
import type { Webhook } from "../../domain/webhook.ts";
import { replaceWebhooks } from "../../domain/webhook-list.ts";
import type { WebhookVerbs } from "../store.ts";
import type { Connection } from "./connection.ts";
import { hold } from "./held-tenants.ts";
import { arrayText } from "./parameters.ts";
import * as t from "./schema.ts";
import { webhookHealthVerbs } from "./webhook-health.ts";
import { overtake } from "./writes.ts";

export function webhookVerbs({ pool, writes }: Connection): WebhookVerbs {
  const registered = pool.db
    .select({ key: t.webhook.key, id: t.webhook.id, url: t.webhook.url, name: t.webhook.name })
    .from(t.webhook)
    .where(and(eq(t.webhook.tenantKey, sql.placeholder("tenantKey")), isNull(t.webhook.removedAt)))
    .orderBy(asc(t.webhook.position))
    .prepare("webhooks_of_tenant");

  const webhooks = (tenantKey: number): Promise<Webhook[]> => registered.execute({ tenantKey });

  return {
    webhooks,
    ...webhookHealthVerbs({ pool, webhooks }),

    replaceWebhooks: (tenantKey, webhooks, limit, now) =>
      writes.submit(async (tx) => {
        const held = await hold(tx, tenantKey);
        const change = replaceWebhooks(held, webhooks, limit);
        if (change.kind === "refused") throw change.error;
        const { removed, forgotten } = change;
        if (removed.length > 0) {
          await tx.run(
            "update webhook set removed_at = $3::bigint where tenant_key = $1::bigint and key = any($2::bigint[])",
            [tenantKey, arrayText(removed), now],
          );
          tx.changed({ ...changed(held.tenant), kind: "webhooks_removed", webhookKeys: removed });
        }
        // Whoever accepts the first record of a webhook says so while the tenant is locked, so these have none.
        if (forgotten.length > 0) {
          await tx.run("delete from webhook where tenant_key = $1::bigint and key = any($2::bigint[])", [
            tenantKey,
            arrayText(forgotten),
          ]);
        }
        const list: Webhook[] = [];
        for (const [position, { id, url, name, ...known }] of change.list.entries()) {
          const row = { id, tenantKey, url, name, position, createdAt: now, used: false };
          const [written] = await ("key" in known
            ? tx.db.update(t.webhook).set({ name, position }).where(keyed(tenantKey, known.key)).returning(keyColumn)
            : tx.db.insert(t.webhook).values(row).returning(keyColumn));
          if (!written) throw new Error("A webhook that was written was not returned");
          list.push({ ...written, id, url, name });
        }
        if (removed.length === 0) await overtake(tx, new Set([tenantKey]));
        return list;
      }),
  };
}

const keyColumn = { key: t.webhook.key };

const keyed = (tenantKey: number, key: number) => and(eq(t.webhook.tenantKey, tenantKey), eq(t.webhook.key, key));
