import type { Database } from "bun:sqlite";
import type { WebhookRef } from "../../domain/webhook.ts";
import type { DeliveryVerbs } from "../deliveries.ts";
import type { Connection } from "./connection.ts";
import { readOrRefuse } from "./damage.ts";

/** The lines in which deliveries to ordered webhooks wait for each other (`domain/order.ts`). */
export interface Lines {
  hasHead(webhookKey: number, orderHash: number): boolean;
  /** The head of a line has ended or left it, so the next one becomes due now. @returns whether there was one */
  release(webhookKey: number, orderHash: number, now: number): boolean;
}

const isHead =
  "webhook_key = ?1 and order_hash = ?2 and state = 0 and order_hash is not null and next_attempt_at is not null";

export function createLines(client: Database): Lines {
  const head = client.prepare<{ found: number }, [number, number]>(`select 1 as found from delivery where ${isHead}`);
  // There is only ever one head, even if another record has become the head in the meantime.
  const releaseNext = client.prepare(
    `update delivery set next_attempt_at = ?3
     where key = (
         select key from delivery where webhook_key = ?1 and order_hash = ?2 and state = 0 and next_attempt_at is null
         order by event_seq limit 1)
       and not exists (select 1 from delivery where ${isHead})`,
  );
  return {
    hasHead: (webhookKey, orderHash) => head.get(webhookKey, orderHash) !== null,
    release: (webhookKey, orderHash, now) => releaseNext.run(webhookKey, orderHash, now).changes > 0,
  };
}

/** Releases what is held back for webhooks that are no longer ordered. */
export function orderVerbs({
  client,
  writer,
  reportDamage,
}: Pick<Connection, "client" | "writer" | "reportDamage">): Pick<DeliveryVerbs, "endOrder"> {
  const releasing = client.prepare<{ key: number; tenantKey: number; isUnordered: number }, []>(
    `select key, tenant_key as tenantKey, ordered = 0 and removed_at is null as isUnordered from webhook
     where is_releasing = 1 order by key limit 1`,
  );
  const heldBack = client.prepare<{ key: number }, [number, number]>(
    "select key from delivery where webhook_key = ?1 and state = 0 and next_attempt_at is null limit ?2",
  );
  const letGo = client.prepare("update delivery set next_attempt_at = ?2, order_hash = null where key = ?1");
  const endReleasing = client.prepare("update webhook set is_releasing = 0 where key = ?1");

  return {
    async endOrder(limit) {
      const first = await readOrRefuse(
        () => reportDamage("The list of webhooks"),
        () => releasing.get(),
      );
      if (first === null) return null;
      return writer.submit<WebhookRef[] | null>((tx) => {
        const webhook = releasing.get();
        if (!webhook) return null;
        const { key: webhookKey, tenantKey, isUnordered } = webhook;
        const records = isUnordered ? heldBack.all(webhookKey, limit) : [];
        for (const { key } of records) letGo.run(key, tx.now);
        if (records.length < limit) endReleasing.run(webhookKey);
        return records.length > 0 ? [{ tenantKey, webhookKey }] : [];
      });
    },
  };
}
