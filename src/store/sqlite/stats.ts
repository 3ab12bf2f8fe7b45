import { type RefusalReason, sumRefused } from "../../domain/refused-events.ts";
import { ingestedAtMs } from "../../lib/id.ts";
import { accountMinutes, webhookMinutes } from "../minute-tables.ts";
import { createThinner } from "../old-minutes.ts";
import type { StatVerbs } from "../stats.ts";
import { chartOf } from "../sum-minutes.ts";
import type { Connection } from "./connection.ts";
import { readOrRefuse } from "./damage.ts";
import { createMinuteRows, oldMinutes } from "./minute-rows.ts";
import * as t from "./schema.ts";
import { writeAroundDamage } from "./write-around-damage.ts";

export function statVerbs({ client, writer, hold, filing, reader, reportDamage }: Connection): StatVerbs {
  // The last entry of `delivery_by_state` for the state. One statement, so that both values are from the same moment.
  const selectWaiting = client.prepare<{ records: number; oldestSeq: number | null }, [number]>(
    `select pending as records,
            (select event_seq from delivery where tenant_key = ?1 and filed = 1 and state = ${t.statePending} order by event_seq limit 1)
              as oldestSeq
     from tenant_usage where tenant_key = ?1`,
  );
  const ofAccounts = createMinuteRows(client, accountMinutes);
  const ofWebhooks = createMinuteRows(client, webhookMinutes);
  const addRefused = client.prepare<void, [number, number, string, number]>(
    `insert into refused_events (tenant_key, month, reason, events) values (?1, ?2, ?3, ?4)
     on conflict (tenant_key, month, reason) do update set events = events + excluded.events`,
  );
  const selectRefused = client.prepare<{ reason: RefusalReason; events: number }, [number, number]>(
    "select reason, events from refused_events where tenant_key = ?1 and month = ?2",
  );

  const thin = createThinner(
    [accountMinutes, webhookMinutes].map((table) => oldMinutes({ client, writer, hold }, table)),
  );

  async function addUndamaged<Delta extends { readonly tenantKey: number }>(
    deltas: readonly Delta[],
    add: (delta: Delta) => void,
  ): Promise<void> {
    await writeAroundDamage(
      writer,
      deltas,
      (tx, some) => {
        for (const delta of some) if (!hold(tx, delta.tenantKey).gone) add(delta);
      },
      ({ tenantKey }) => reportDamage(`A part of the statistics of the account with the key ${tenantKey}`),
    );
  }

  return {
    addStats: (deltas) =>
      addUndamaged(deltas, ({ tenantKey, webhookKey, minute, accepted, delivered, failed, attempts, latency }) => {
        if (webhookKey === undefined) {
          ofAccounts.add([tenantKey, minute], [accepted, delivered, failed, attempts], latency);
        } else ofWebhooks.add([tenantKey, webhookKey, minute], [delivered, failed, attempts], latency);
      }),

    stats: (tenantKey, { webhookId, ...range }) =>
      chartOf(range, async (minutes) => {
        if (webhookId === undefined) return reader.run("stats", { tenantKey, ...minutes });
        const webhookKeys = await reader.run("webhookKeys", { tenantKey, idOrUrl: webhookId });
        return reader.run("webhookStats", { tenantKey, webhookKeys, ...minutes });
      }),

    thinStats: (now) =>
      readOrRefuse(
        () => reportDamage("A part of the statistics"),
        () => thin(now),
      ),

    addRefused: (deltas) =>
      addUndamaged(deltas, ({ tenantKey, month, reason, events }) => {
        addRefused.run(tenantKey, month, reason, events);
      }),

    refusedEvents: async (tenantKey, month) => sumRefused(selectRefused.all(tenantKey, month)),

    async waiting(tenantKey) {
      await filing.whenFiled(tenantKey);
      const { records, oldestSeq } = selectWaiting.get(tenantKey) ?? { records: 0, oldestSeq: null };
      return { records, oldestIngestedAt: oldestSeq === null ? null : ingestedAtMs(oldestSeq) };
    },
  };
}
