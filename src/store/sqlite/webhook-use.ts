import type { Database } from "bun:sqlite";
import type { RegisteredWebhook } from "../../domain/tenant-state.ts";
import type { MaintenanceVerbs } from "../store.ts";
import type { Connection } from "./connection.ts";
import { isDamage, readOrRefuse } from "./damage.ts";
import type { HeldTenant } from "./held-tenants.ts";

/**
 * Which webhooks records refer to, so that the row of a removed one is deleted when nothing needs its URL. Without this, thirty
 * seconds of switching a list back and forth between two long URLs left 52,912 rows and 194 MB behind forever.
 *
 *   registered, used = 0 ──first record──▶ used = 1 ──removed──▶ kept for its records and attempts
 *        └──removed──▶ the row goes                      └── a replay replaced a record that had no attempt: used = null
 *
 * Those with null, as all have in an older database, `forgetWebhooks` judges by walking through the account's events.
 */
export interface WebhookUse {
  /** A record of this webhook was added. Only the first one causes a write. */
  recordAdded(page: HeldTenant, webhook: RegisteredWebhook): void;
  /** A record of this webhook was deleted, and with it perhaps the last reference to the webhook. */
  recordReplaced(webhookKey: number): void;
}

export function createWebhookUse(client: Database): WebhookUse {
  const mark = client.prepare("update webhook set used = 1 where key = ?1");
  const doubt = client.prepare("update webhook set used = null where key = ?1 and used = 1");
  return {
    recordAdded(page, { key, used }) {
      if (used === true) return;
      mark.run(key);
      page.webhooks = page.webhooks.map((webhook) => (webhook.key === key ? { ...webhook, used: true } : webhook));
    },
    recordReplaced: (webhookKey) => void doubt.run(webhookKey),
  };
}

/** Events that are looked through in one go: takes the reader about 10 ms. */
const eventsInOneLook = 1_000;

/** By then the outcomes of attempts that were in progress when the webhook was removed are in the log. */
const graceMs = 60_000;

/** A walk that judges one account's webhooks. After a restart it starts over. */
interface Walk {
  readonly tenantKey: number;
  /** Later webhooks are left to the next walk. */
  readonly upToKey: number;
  /** The last event that was looked through; null when all were. */
  cursorSeq: number | null;
  readonly named: Set<number>;
}

export function webhookUseVerbs({
  client,
  writer,
  reader,
  filing,
  reportDamage,
}: Pick<Connection, "client" | "writer" | "reader" | "filing" | "reportDamage">): Pick<
  MaintenanceVerbs,
  "forgetWebhooks"
> {
  const toJudge = "removed_at is not null and used is null and drained = 1 and removed_at <= ?1";
  const nextWalk = client.prepare<{ tenantKey: number; upToKey: number }, [number]>(
    `select tenant_key as tenantKey, (select max(key) from webhook) as upToKey from webhook
     where ${toJudge} order by tenant_key limit 1`,
  );
  const someToJudge = client.prepare<{ key: number }, [number, number, number, number]>(
    `select key from webhook where ${toJudge} and tenant_key = ?2 and key <= ?3 order by key limit ?4`,
  );
  const keep = client.prepare("update webhook set used = 1 where key = ?1");
  const forget = client.prepare("delete from webhook where key = ?1");
  let walk: Walk | null = null;

  /** @returns false when none is left to judge */
  function judge({ tenantKey, upToKey, named }: Walk, removedBy: number, limit: number): Promise<boolean> {
    return writer.submit<boolean>(() => {
      const webhooks = someToJudge.all(removedBy, tenantKey, upToKey, limit);
      for (const { key } of webhooks) (named.has(key) ? keep : forget).run(key);
      return webhooks.length === limit;
    });
  }

  return {
    async forgetWebhooks(now, limit) {
      if (!walk) {
        const next = await readOrRefuse(
          () => reportDamage("The list of webhooks"),
          () => nextWalk.get(now - graceMs),
        );
        if (!next) return false;
        walk = { ...next, cursorSeq: 0, named: new Set() };
        await filing.whenFiled(next.tenantKey);
      }
      const { tenantKey, cursorSeq: afterSeq } = walk;
      if (afterSeq !== null) {
        const looked = { tenantKey, afterSeq, events: eventsInOneLook };
        const found = await reader.run("namedWebhooks", looked).catch((error: unknown) => {
          if (!isDamage(error)) throw error;
          return null;
        });
        if (!found) {
          // What cannot be read may refer to any of them, so all stay.
          walk = null;
          return false;
        }
        for (const key of found.webhookKeys) walk.named.add(key);
        walk.cursorSeq = found.lastSeq;
      } else if (!(await judge(walk, now - graceMs, limit))) {
        walk = null;
      }
      return true;
    },
  };
}
