import { addCount, addStored, type Histogram, writeHistogram } from "../latency.ts";
import type { MinuteTable } from "../minute-tables.ts";
import type { Connection } from "./connection.ts";
import { arrayText } from "./parameters.ts";

export interface MinuteCounts {
  readonly keys: readonly number[];
  readonly minute: number;
  readonly counts: readonly number[];
  /** Counts by latency bucket (`store/latency.ts`). */
  readonly latency: ReadonlyMap<number, number>;
}

/** The parameters of a statement: after `$1`, which is the slot, an array for each column. */
const parametersOf = ({ keys, counts }: MinuteTable, ...texts: readonly string[]) => {
  const columns = [...keys, "minute", ...counts, ...texts];
  const typeOf = (i: number) => (i < keys.length ? "bigint" : i <= keys.length + counts.length ? "int" : "text");
  return `unnest(${columns.map((_, i) => `$${i + 2}::${typeOf(i)}[]`).join(", ")}) as given (${columns.join(", ")})`;
};

const added = (counts: readonly string[], by: string) =>
  counts.map((count) => `${count} = s.${count} + ${by}.${count}`).join(", ");

/** The counts of a histogram in the form of `writeHistogram`. */
const countsIn = (latency: string) => `
  select counts[i] as bucket, counts[i + 1] as n
  from (select string_to_array(btrim(${latency}, '[]'), ',')::bigint[] as counts) stored,
    generate_series(1, cardinality(counts), 2) i`;

const returned = ({ keys }: MinuteTable) => keys.map((key) => `s.${key}::float8 as ${key}`).join(", ");

/**
 * Only this node adds to the rows of its slot, one statement at a time, so it knows what is in them and adds up histograms
 * itself. A row with a different histogram is left out, because a node that was taken for dead may still be writing.
 */
export const addToKnownText = (table: MinuteTable) => `update ${table.name} as s set ${added(table.counts, "given")},
    latency = given.latency
  from (select *, $1::smallint as slot from ${parametersOf(table, "known", "latency")} offset 0) as given
  where ${[...table.keys, "minute", "slot"].map((key) => `s.${key} = given.${key}`).join(" and ")}
    and s.latency = given.known
  returning ${returned(table)}`;

/** For other rows, histograms are added while the row is locked; that takes half a millisecond each. */
export const addText = (table: MinuteTable) => {
  const { name, keys, counts } = table;
  const key = [...keys, "minute", "slot"].join(", ");
  const columns = [...counts, "latency"].join(", ");
  return `insert into ${name} as s (${key}, ${columns})
  select ${[...keys, "minute"].map((column) => `given.${column}`).join(", ")}, $1::smallint, ${columns}
  from ${parametersOf(table, "latency")}
  join tenant on tenant.key = given.tenant_key and tenant.deleted_at is null
  order by ${[...keys, "minute"].map((_, i) => i + 1).join(", ")}
  on conflict (${key}) do update set ${added(counts, "excluded")},
    latency = case when excluded.latency = '[]' then s.latency else (
      select '[' || coalesce(string_agg(bucket || ',' || n, ',' order by bucket), '') || ']' from (
        select bucket, sum(n) as n from (
          ${countsIn("s.latency")} union all ${countsIn("excluded.latency")}
        ) counted group by bucket
      ) merged) end
  returning ${returned(table)}, minute, latency`;
};

/** The known histogram of a row. */
interface KnownLatency {
  readonly stored: string;
  readonly latency: Histogram;
}

/** Sums of one row. */
interface CountedMinute {
  readonly keys: readonly number[];
  readonly minute: number;
  readonly counts: number[];
  readonly latency: Histogram;
}

/** Adds to the rows of this node, one call at a time. */
export function createMinuteRows({ pool, node }: Pick<Connection, "pool" | "node">, table: MinuteTable) {
  const texts = { addToKnown: addToKnownText(table), add: addText(table) };
  const nameOf = (keys: readonly number[]) => keys.join(" ");
  const nameIn = (row: Readonly<Record<string, unknown>>) => table.keys.map((key) => row[key]).join(" ");

  /** For the latest minute, what this node's rows contain. */
  const known = new Map<string, KnownLatency>();
  let knownMinute = Number.NEGATIVE_INFINITY;

  const valuesOf = (minutes: readonly CountedMinute[]): string[] => [
    ...table.keys.map((_, i) => arrayText(minutes.map(({ keys }) => keys[i] ?? 0))),
    arrayText(minutes.map(({ minute }) => minute)),
    ...table.counts.map((_, i) => arrayText(minutes.map(({ counts }) => counts[i] ?? 0))),
  ];

  /** @returns those whose row still was as known */
  async function addToKnown(minutes: readonly CountedMinute[]): Promise<ReadonlySet<CountedMinute>> {
    const totals = new Map<string, KnownLatency & { readonly of: CountedMinute; readonly before: string }>();
    for (const of of minutes) {
      const name = nameOf(of.keys);
      const before = of.minute === knownMinute ? known.get(name) : undefined;
      if (!before) continue;
      // Whatever happens to the statement, only its answer makes the row known again.
      known.delete(name);
      const latency = before.latency.slice();
      of.latency.forEach((count, bucket) => {
        addCount(latency, bucket, count);
      });
      totals.set(name, { of, before: before.stored, latency, stored: writeHistogram(latency) });
    }
    if (totals.size === 0) return new Set();
    const rows = await pool.write<Record<string, number>>(texts.addToKnown, [
      node().slot,
      ...valuesOf([...totals.values()].map(({ of }) => of)),
      arrayText([...totals.values()].map(({ before }) => before)),
      arrayText([...totals.values()].map(({ stored }) => stored)),
    ]);
    const done = new Set<CountedMinute>();
    for (const row of rows) {
      const name = nameIn(row);
      const total = totals.get(name);
      if (!total) continue;
      known.set(name, total);
      done.add(total.of);
    }
    return done;
  }

  async function addToOthers(minutes: readonly CountedMinute[]): Promise<void> {
    const rows = await pool.write<{ minute: number; latency: string }>(texts.add, [
      node().slot,
      ...valuesOf(minutes),
      arrayText(minutes.map(({ latency }) => writeHistogram(latency))),
    ]);
    for (const row of rows) {
      if (row.minute !== knownMinute) continue;
      const latency: Histogram = [];
      addStored(row.latency, latency);
      known.set(nameIn({ ...row }), { stored: row.latency, latency });
    }
  }

  return async function add(given: readonly MinuteCounts[]): Promise<void> {
    if (given.length === 0) return;
    const minutes = sumMinutes(given);
    const latest = minutes.reduce((last, { minute }) => Math.max(last, minute), knownMinute);
    if (latest > knownMinute) known.clear();
    knownMinute = latest;
    const done = await addToKnown(minutes);
    const others = minutes.filter((one) => !done.has(one));
    if (others.length > 0) await addToOthers(others);
  };
}

/** One per row: a statement cannot write a row twice. */
function sumMinutes(given: readonly MinuteCounts[]): CountedMinute[] {
  const rows = new Map<string, CountedMinute>();
  for (const { keys, minute, counts, latency } of given) {
    const name = `${keys.join(" ")} ${minute}`;
    const sum = rows.get(name) ?? { keys, minute, counts: counts.map(() => 0), latency: [] };
    rows.set(name, sum);
    counts.forEach((count, i) => {
      sum.counts[i] = (sum.counts[i] ?? 0) + count;
    });
    for (const [bucket, count] of latency) addCount(sum.latency, bucket, count);
  }
  return [...rows.values()];
}
