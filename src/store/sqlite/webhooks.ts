import { eq } from "drizzle-orm";
import { invalid } from "../../domain/errors.ts";
import { accountGone } from "../../domain/standing.ts";
import type { RegisteredWebhook } from "../../domain/tenant-state.ts";
import type { Webhook } from "../../domain/webhook.ts";
import type { WebhookHealth, WebhookVerbs } from "../store.ts";
import type { Connection } from "./connection.ts";
import { refuse } from "./lane.ts";
import * as t from "./schema.ts";
import { webhooksOf } from "./tenant-page.ts";

export function webhookVerbs({ db, lane, pages, reader }: Connection): WebhookVerbs {
  const registered = webhooksOf(db);

  return {
    webhooks: async (tenantKey) => registered.all({ tenantKey }),

    async webhookHealth(tenantKey, limits) {
      const webhooks = registered.all({ tenantKey });
      if (webhooks.length === 0) return [];
      const webhookKeys = webhooks.map(({ key }) => key);
      const healths = await reader.run("webhookHealth", { tenantKey, webhookKeys, ...limits });
      return webhooks.flatMap((webhook): WebhookHealth[] => {
        const health = healths.get(webhook.key);
        return health ? [{ webhook, ...health }] : [];
      });
    },

    replaceWebhooks: (tenantKey, webhooks, limit, now) =>
      lane.submit<{ saved: Webhook[]; removed: number[] }>((tx) => {
        const page = pages(tx, tenantKey);
        if (page.gone) return refuse(accountGone());
        if (webhooks.length > limit) return refuse(tooManyWebhooks(webhooks.length, limit));
        const wanted = new Set(webhooks.map(({ url }) => url));
        const removed = page.webhooks.filter(({ url }) => !wanted.has(url)).map(({ key }) => key);
        for (const { key, used } of page.webhooks.filter(({ url }) => !wanted.has(url))) {
          // What no record names is of no use to anybody: lists that go to and fro would leave a row each time.
          if (used === false) db.delete(t.webhook).where(eq(t.webhook.key, key)).run();
          else db.update(t.webhook).set({ removedAt: now }).where(eq(t.webhook.key, key)).run();
        }
        const staying = new Map(page.webhooks.map((webhook) => [webhook.url, webhook]));
        const listed = webhooks.map(({ id, url, name }, position): RegisteredWebhook => {
          const stays = staying.get(url);
          if (stays) {
            db.update(t.webhook).set({ name, position }).where(eq(t.webhook.key, stays.key)).run();
            return { ...stays, name };
          }
          const { key } = db
            .insert(t.webhook)
            .values({ id, tenantKey, url, name, position, createdAt: now, used: false })
            .returning({ key: t.webhook.key })
            .get();
          return { key, id, url, name, used: false };
        });
        page.webhooks = listed;
        return { saved: listed.map(({ used: _, ...webhook }) => webhook), removed };
      }),
  };
}

/** Specification, "Limits": more entries than the plan allows are 400. */
export const tooManyWebhooks = (given: number, limit: number) =>
  invalid(
    `webhooks has ${given} entries, but the plan allows ${limit}; leave some out or upgrade the account.`,
    "too_many_webhooks",
  );
