import { and, eq, sql } from "drizzle-orm";
import { ingestedAtMs } from "../../lib/id.ts";
import { addCount, addStored, type Histogram, writeHistogram } from "../latency.ts";
import type { StatVerbs } from "../stats.ts";
import { chartOf } from "../sum-minutes.ts";
import type { Connection } from "./connection.ts";
import * as t from "./schema.ts";

export function statVerbs({ client, db, writer, hold, reader }: Connection): StatVerbs {
  // The last entry of `delivery_by_state` for the state. One statement, so that both answers are of one moment.
  const selectWaiting = client.prepare<{ records: number; oldestSeq: number | null }, [number]>(
    `select pending as records,
            (select event_seq from delivery where tenant_key = ?1 and state = ${t.statePending} order by event_seq limit 1)
              as oldestSeq
     from tenant_usage where tenant_key = ?1`,
  );
  const latencyOfMinute = db
    .select({ latency: t.stat.latency })
    .from(t.stat)
    .where(and(eq(t.stat.tenantKey, sql.placeholder("tenantKey")), eq(t.stat.minute, sql.placeholder("minute"))))
    .prepare();
  const add = db
    .insert(t.stat)
    .values({
      tenantKey: sql.placeholder("tenantKey"),
      minute: sql.placeholder("minute"),
      accepted: sql.placeholder("accepted"),
      delivered: sql.placeholder("delivered"),
      failed: sql.placeholder("failed"),
      attempts: sql.placeholder("attempts"),
      latency: sql.placeholder("latency"),
    })
    .onConflictDoUpdate({
      target: [t.stat.tenantKey, t.stat.minute],
      set: {
        accepted: sql`${t.stat.accepted} + excluded.accepted`,
        delivered: sql`${t.stat.delivered} + excluded.delivered`,
        failed: sql`${t.stat.failed} + excluded.failed`,
        attempts: sql`${t.stat.attempts} + excluded.attempts`,
        latency: sql`excluded.latency`,
      },
    })
    .prepare();

  return {
    addStats: (deltas) =>
      writer.submit<void>((tx) => {
        for (const { latency: added, ...counts } of deltas) {
          const { tenantKey, minute } = counts;
          if (hold(tx, tenantKey).gone) continue;
          const latency: Histogram = [];
          const stored = latencyOfMinute.get({ tenantKey, minute });
          if (stored) addStored(stored.latency, latency);
          for (const [bucket, count] of added) addCount(latency, bucket, count);
          add.run({ ...counts, latency: writeHistogram(latency) });
        }
      }),

    stats: (tenantKey, range) => chartOf(range, (minutes) => reader.run("stats", { tenantKey, ...minutes })),

    async waiting(tenantKey) {
      const { records, oldestSeq } = selectWaiting.get(tenantKey) ?? { records: 0, oldestSeq: null };
      return { records, oldestIngestedAt: oldestSeq === null ? null : ingestedAtMs(oldestSeq) };
    },
  };
}
