import { sql } from "drizzle-orm";
import { percentile } from "../latency.ts";
import type { StatBucket, StatVerbs } from "../store.ts";
import type { Connection } from "./connection.ts";
import * as t from "./schema.ts";

const minuteMs = 60_000;

export function statVerbs({ db, lane, pages, reader }: Connection): StatVerbs {
  const add = db
    .insert(t.stat)
    .values({
      tenantKey: sql.placeholder("tenantKey"),
      minute: sql.placeholder("minute"),
      accepted: sql.placeholder("accepted"),
      delivered: sql.placeholder("delivered"),
      failed: sql.placeholder("failed"),
      attempts: sql.placeholder("attempts"),
    })
    .onConflictDoUpdate({
      target: [t.stat.tenantKey, t.stat.minute],
      set: {
        accepted: sql`${t.stat.accepted} + excluded.accepted`,
        delivered: sql`${t.stat.delivered} + excluded.delivered`,
        failed: sql`${t.stat.failed} + excluded.failed`,
        attempts: sql`${t.stat.attempts} + excluded.attempts`,
      },
    })
    .prepare();
  const addLatency = db
    .insert(t.statLatency)
    .values({
      tenantKey: sql.placeholder("tenantKey"),
      minute: sql.placeholder("minute"),
      bucket: sql.placeholder("bucket"),
      count: sql.placeholder("count"),
    })
    .onConflictDoUpdate({
      target: [t.statLatency.tenantKey, t.statLatency.minute, t.statLatency.bucket],
      set: { count: sql`${t.statLatency.count} + excluded.count` },
    })
    .prepare();

  return {
    addStats: (deltas) =>
      lane.submit<void>((tx) => {
        for (const { latency, ...counts } of deltas) {
          const { tenantKey, minute } = counts;
          if (pages(tx, tenantKey).gone) continue;
          add.run(counts);
          for (const [bucket, count] of latency) addLatency.run({ tenantKey, minute, bucket, count });
        }
      }),

    async stats(tenantKey, { from, to, bucketMs }) {
      const bucketMinutes = bucketMs / minuteMs;
      const first = Math.floor(from / bucketMs);
      const last = Math.floor(to / bucketMs);
      const { counts, latency } = await reader.run("stats", {
        tenantKey,
        from: first * bucketMinutes,
        to: (last + 1) * bucketMinutes - 1,
        bucketMinutes,
      });
      const countsAt = new Map(counts.map(({ bucket, ...values }) => [bucket, values]));
      const latencyAt = Map.groupBy(latency, ({ bucket }) => bucket);
      return Array.from({ length: last - first + 1 }, (_, i): StatBucket => {
        const values = countsAt.get(first + i) ?? { accepted: 0, delivered: 0, failed: 0, attempts: 0 };
        const steps = (latencyAt.get(first + i) ?? []).map(({ step, count }) => ({ bucket: step, count }));
        return {
          at: (first + i) * bucketMs,
          ...values,
          p50Ms: percentile(steps, 0.5),
          p95Ms: percentile(steps, 0.95),
        };
      });
    },
  };
}
