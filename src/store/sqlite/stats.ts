import type { Database } from "bun:sqlite";
import { type RefusalReason, sumRefused } from "../../domain/refused-events.ts";
import { ingestedAtMs } from "../../lib/id.ts";
import { addCount, addStored, type Histogram, writeHistogram } from "../latency.ts";
import type { StatVerbs } from "../stats.ts";
import { chartOf } from "../sum-minutes.ts";
import type { Connection } from "./connection.ts";
import * as t from "./schema.ts";

export function statVerbs({ client, writer, hold, reader }: Connection): StatVerbs {
  // The last entry of `delivery_by_state` for the state. One statement, so that both answers are of one moment.
  const selectWaiting = client.prepare<{ records: number; oldestSeq: number | null }, [number]>(
    `select pending as records,
            (select event_seq from delivery where tenant_key = ?1 and state = ${t.statePending} order by event_seq limit 1)
              as oldestSeq
     from tenant_usage where tenant_key = ?1`,
  );
  const ofAccounts = minuteRows(
    client,
    "stat",
    ["tenant_key", "minute"],
    ["accepted", "delivered", "failed", "attempts"],
  );
  const ofWebhooks = minuteRows(
    client,
    "webhook_stat",
    ["tenant_key", "webhook_key", "minute"],
    ["delivered", "failed", "attempts"],
  );
  const addRefused = client.prepare<void, [number, number, string, number]>(
    `insert into refused_events (tenant_key, month, reason, events) values (?1, ?2, ?3, ?4)
     on conflict (tenant_key, month, reason) do update set events = events + excluded.events`,
  );
  const selectRefused = client.prepare<{ reason: RefusalReason; events: number }, [number, number]>(
    "select reason, events from refused_events where tenant_key = ?1 and month = ?2",
  );

  return {
    addStats: (deltas) =>
      writer.submit<void>((tx) => {
        for (const { tenantKey, webhookKey, minute, accepted, delivered, failed, attempts, latency } of deltas) {
          if (hold(tx, tenantKey).gone) continue;
          if (webhookKey === undefined) {
            ofAccounts.add([tenantKey, minute], [accepted, delivered, failed, attempts], latency);
          } else ofWebhooks.add([tenantKey, webhookKey, minute], [delivered, failed, attempts], latency);
        }
      }),

    stats: (tenantKey, { webhookId, ...range }) =>
      chartOf(range, async (minutes) => {
        if (webhookId === undefined) return reader.run("stats", { tenantKey, ...minutes });
        const webhookKeys = await reader.run("webhookKeys", { tenantKey, idOrUrl: webhookId });
        return reader.run("webhookStats", { tenantKey, webhookKeys, ...minutes });
      }),

    addRefused: (deltas) =>
      writer.submit<void>((tx) => {
        for (const { tenantKey, month, reason, events } of deltas) {
          if (!hold(tx, tenantKey).gone) addRefused.run(tenantKey, month, reason, events);
        }
      }),

    refusedEvents: async (tenantKey, month) => sumRefused(selectRefused.all(tenantKey, month)),

    async waiting(tenantKey) {
      const { records, oldestSeq } = selectWaiting.get(tenantKey) ?? { records: 0, oldestSeq: null };
      return { records, oldestIngestedAt: oldestSeq === null ? null : ingestedAtMs(oldestSeq) };
    },
  };
}

/** A table with a row for each minute. A histogram is added where it was read, as SQLite has no words for that. */
function minuteRows(client: Database, table: string, keys: readonly string[], counts: readonly string[]) {
  const latencyOf = client.prepare<{ latency: string }, number[]>(
    `select latency from ${table} where ${keys.map((key, i) => `${key} = ?${i + 1}`).join(" and ")}`,
  );
  const columns = [...keys, ...counts, "latency"];
  const upsert = client.prepare<void, (number | string)[]>(
    `insert into ${table} (${columns.join(", ")}) values (${columns.map((_, i) => `?${i + 1}`).join(", ")})
     on conflict (${keys.join(", ")}) do update set
       ${counts.map((count) => `${count} = ${count} + excluded.${count}`).join(", ")}, latency = excluded.latency`,
  );
  return {
    add(key: readonly number[], counted: readonly number[], latency: ReadonlyMap<number, number>): void {
      const sum: Histogram = [];
      const stored = latencyOf.get(...key);
      if (stored) addStored(stored.latency, sum);
      for (const [bucket, count] of latency) addCount(sum, bucket, count);
      upsert.run(...key, ...counted, writeHistogram(sum));
    },
  };
}
