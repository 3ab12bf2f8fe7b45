import type { Database } from "bun:sqlite";
import { addCount, addStored, type Histogram, writeHistogram } from "../latency.ts";
import type { MinuteTable } from "../minute-tables.ts";
import type { OldMinutes } from "../old-minutes.ts";
import type { Connection } from "./connection.ts";

const parameters = (columns: readonly string[], first = 1) => columns.map((_, i) => `?${first + i}`).join(", ");
const equal = (columns: readonly string[]) => columns.map((column, i) => `${column} = ?${i + 1}`).join(" and ");

/** Adds to a row. Histograms are read and added up here, since SQL cannot do it. */
export function createMinuteRows(client: Database, { name, keys, counts }: MinuteTable) {
  const key = [...keys, "minute"];
  const columns = [...key, ...counts, "latency"];
  const latencyOf = client.prepare<{ latency: string }, number[]>(`select latency from ${name} where ${equal(key)}`);
  const upsert = client.prepare<void, (number | string)[]>(
    `insert into ${name} (${columns.join(", ")}) values (${parameters(columns)})
     on conflict (${key.join(", ")}) do update set
       ${counts.map((count) => `${count} = ${count} + excluded.${count}`).join(", ")}, latency = excluded.latency`,
  );
  return {
    add(of: readonly number[], counted: readonly number[], latency: ReadonlyMap<number, number>): void {
      const sum: Histogram = [];
      const stored = latencyOf.get(...of);
      if (stored) addStored(stored.latency, sum);
      for (const [bucket, count] of latency) addCount(sum, bucket, count);
      upsert.run(...of, ...counted, writeHistogram(sum));
    },
  };
}

export function oldMinutes(
  { client, writer, hold }: Pick<Connection, "client" | "writer" | "hold">,
  { name, keys, counts }: MinuteTable,
): OldMinutes {
  const list = keys.join(", ");
  const columns = [...keys, "minute", ...counts, "latency"];
  const between = `${equal(keys)} and minute >= ?${keys.length + 1} and minute < ?${keys.length + 2}`;
  const next = client.prepare(
    `select ${list} from ${name} where (${list}) > (${parameters(keys)}) order by ${list} limit 1`,
  );
  const first = client.prepare(`select min(minute) from ${name} where ${equal(keys)}`);
  const within = client.prepare(`select min(minute) from ${name} where ${between} and minute % 60 <> 0`);
  const rows = client.prepare(`select minute, latency, ${counts.join(", ")} from ${name} where ${between}`);
  const remove = client.prepare(`delete from ${name} where ${between}`);
  const insert = client.prepare(`insert into ${name} (${columns.join(", ")}) values (${parameters(columns)})`);

  return {
    next: async (after) => (next.values(...(after ?? keys.map(() => -1)))[0] as number[] | undefined) ?? null,
    first: async (of) => first.values(...of)[0]?.[0] as number | null,
    firstWithinHour: async (of, from, to) => within.values(...of, from, to)[0]?.[0] as number | null,
    rows: async (of, from, to) =>
      (rows.values(...of, from, to) as [number, string, ...number[]][]).map(([minute, latency, ...counted]) => ({
        minute,
        latency,
        counts: counted,
      })),
    replace: (of, from, to, given) =>
      writer.submit<void>((tx) => {
        remove.run(...of, from, to);
        if (hold(tx, of[0] ?? 0).gone) return;
        for (const { minute, counts: counted, latency } of given) insert.run(...of, minute, ...counted, latency);
      }),
  };
}
