import { ingestedAtMs } from "../../lib/id.ts";
import { addCount, addStored, type Histogram, writeHistogram } from "../latency.ts";
import type { StatDelta, StatVerbs } from "../stats.ts";
import { chartOf, type MinuteRow, sumMinutes } from "../sum-minutes.ts";
import type { Connection } from "./connection.ts";
import { arrayText } from "./parameters.ts";

/** The counts of a histogram as `writeHistogram` has it. */
const countsIn = (latency: string) => `
  select counts[i] as bucket, counts[i + 1] as n
  from (select string_to_array(btrim(${latency}, '[]'), ',')::bigint[] as counts) stored,
    generate_series(1, cardinality(counts), 2) i`;

/**
 * Of its slot only this node adds to the rows, in one statement at a time: so it knows what is in them, and adds up histograms
 * by itself. A row that has another one is left out, for a node that was taken for dead may still be at it.
 */
export const addToKnownText = `update stat as s set accepted = s.accepted + given.accepted,
    delivered = s.delivered + given.delivered, failed = s.failed + given.failed, attempts = s.attempts + given.attempts,
    latency = given.latency
  from (
    select *, $1::smallint as slot
    from unnest($2::bigint[], $3::int[], $4::int[], $5::int[], $6::int[], $7::int[], $8::text[], $9::text[])
      as given (tenant_key, minute, accepted, delivered, failed, attempts, known, latency)
    offset 0) as given
  where s.tenant_key = given.tenant_key and s.minute = given.minute and s.slot = given.slot and s.latency = given.known
  returning s.tenant_key::float8 as "tenantKey"`;

/** Of other rows, histograms are added where they are locked; that takes half a millisecond for each. */
export const addText = `insert into stat as s (tenant_key, minute, slot, accepted, delivered, failed, attempts, latency)
  select d.tenant_key, d.minute, $1::smallint, d.accepted, d.delivered, d.failed, d.attempts, d.latency
  from unnest($2::bigint[], $3::int[], $4::int[], $5::int[], $6::int[], $7::int[], $8::text[])
    as d (tenant_key, minute, accepted, delivered, failed, attempts, latency)
  join tenant on tenant.key = d.tenant_key and tenant.deleted_at is null
  order by 1, 2
  on conflict (tenant_key, minute, slot) do update set accepted = s.accepted + excluded.accepted,
    delivered = s.delivered + excluded.delivered, failed = s.failed + excluded.failed,
    attempts = s.attempts + excluded.attempts,
    latency = case when excluded.latency = '[]' then s.latency else (
      select '[' || coalesce(string_agg(bucket || ',' || n, ',' order by bucket), '') || ']' from (
        select bucket, sum(n) as n from (
          ${countsIn("s.latency")} union all ${countsIn("excluded.latency")}
        ) counted group by bucket
      ) merged) end
  returning s.tenant_key::float8 as "tenantKey", minute, latency`;

/** Of every slot its own row, which whoever reads adds up. */
export const minutesText = `select minute, accepted, delivered, failed, attempts, latency from stat
  where tenant_key = $1::bigint and minute between $2::int and $3::int`;

/** One statement, so that both answers are of one moment; the oldest record is the last of an index. */
export const waitingText = `select
  (select coalesce(sum(pending), 0)::float8 from usage where tenant_key = $1::bigint) as records,
  (select event_seq::float8 from pending where tenant_key = $1::bigint order by pending.event_seq limit 1) as "oldestSeq"`;

interface CountedMinute {
  readonly tenantKey: number;
  readonly minute: number;
  accepted: number;
  delivered: number;
  failed: number;
  attempts: number;
  readonly latency: Histogram;
}

export function statVerbs({ pool, node }: Connection): StatVerbs {
  /** What comes while a statement is under way goes together in the next. */
  let next: { readonly deltas: StatDelta[]; readonly added: Promise<void> } | null = null;
  let underWay: Promise<unknown> = Promise.resolve();

  /** Of the latest minute, what the rows of this node have. */
  const known = new Map<number, KnownLatency>();
  let knownMinute = Number.NEGATIVE_INFINITY;

  async function add(deltas: readonly StatDelta[]): Promise<void> {
    const minutes = sumDeltas(deltas);
    const latest = minutes.reduce((last, { minute }) => Math.max(last, minute), knownMinute);
    if (latest > knownMinute) known.clear();
    knownMinute = latest;
    const added = await addToKnown(minutes);
    const others = minutes.filter((one) => !added.has(one));
    if (others.length > 0) await addToOthers(others);
  }

  /** @returns those of which the row was as it is known */
  async function addToKnown(minutes: readonly CountedMinute[]): Promise<ReadonlySet<CountedMinute>> {
    const totals = new Map<number, KnownLatency & { readonly of: CountedMinute; readonly before: string }>();
    for (const of of minutes) {
      const before = of.minute === knownMinute ? known.get(of.tenantKey) : undefined;
      if (!before) continue;
      // Whatever becomes of the statement, it is known again only by its answer.
      known.delete(of.tenantKey);
      const latency = before.latency.slice();
      of.latency.forEach((count, bucket) => {
        addCount(latency, bucket, count);
      });
      totals.set(of.tenantKey, { of, before: before.stored, latency, stored: writeHistogram(latency) });
    }
    if (totals.size === 0) return new Set();
    const rows = await pool.write<{ tenantKey: number }>(addToKnownText, [
      node().slot,
      ...countsOf([...totals.values()].map(({ of }) => of)),
      arrayText([...totals.values()].map(({ before }) => before)),
      arrayText([...totals.values()].map(({ stored }) => stored)),
    ]);
    const added = new Set<CountedMinute>();
    for (const { tenantKey } of rows) {
      const total = totals.get(tenantKey);
      if (!total) continue;
      known.set(tenantKey, total);
      added.add(total.of);
    }
    return added;
  }

  async function addToOthers(minutes: readonly CountedMinute[]): Promise<void> {
    const rows = await pool.write<{ tenantKey: number; minute: number; latency: string }>(addText, [
      node().slot,
      ...countsOf(minutes),
      arrayText(minutes.map(({ latency }) => writeHistogram(latency))),
    ]);
    for (const { tenantKey, minute, latency: stored } of rows) {
      if (minute !== knownMinute) continue;
      const latency: Histogram = [];
      addStored(stored, latency);
      known.set(tenantKey, { stored, latency });
    }
  }

  function beginNext() {
    const deltas: StatDelta[] = [];
    const added = underWay.then(() => {
      next = null;
      return add(deltas);
    });
    underWay = added.catch(() => {});
    return { deltas, added };
  }

  return {
    addStats(deltas) {
      next ??= beginNext();
      next.deltas.push(...deltas);
      return next.added;
    },

    stats: (tenantKey, range) =>
      chartOf(range, async ({ from, to, bucketMinutes }) => {
        const rows = await pool.read<CountedRow>(minutesText, [tenantKey, from, to]);
        return sumMinutes(rows.map(toMinuteRow), bucketMinutes);
      }),

    async waiting(tenantKey) {
      const [found] = await pool.read<{ records: number; oldestSeq: number | null }>(waitingText, [tenantKey]);
      const { records, oldestSeq } = found ?? { records: 0, oldestSeq: null };
      return { records, oldestIngestedAt: oldestSeq === null ? null : ingestedAtMs(oldestSeq) };
    },
  };
}

/** The histogram of a row. */
interface KnownLatency {
  readonly stored: string;
  readonly latency: Histogram;
}

const countsOf = (minutes: readonly CountedMinute[]): string[] =>
  (["tenantKey", "minute", "accepted", "delivered", "failed", "attempts"] as const).map((column) =>
    arrayText(minutes.map((minute) => minute[column])),
  );

interface CountedRow {
  readonly minute: number;
  readonly accepted: number;
  readonly delivered: number;
  readonly failed: number;
  readonly attempts: number;
  readonly latency: string;
}

const toMinuteRow = ({ minute, accepted, delivered, failed, attempts, latency }: CountedRow): MinuteRow => [
  minute,
  accepted,
  delivered,
  failed,
  attempts,
  latency,
];

/** Of each tenant and minute one: a statement writes no row twice. */
function sumDeltas(deltas: readonly StatDelta[]): CountedMinute[] {
  const minutes = new Map<string, CountedMinute>();
  for (const { tenantKey, minute, accepted, delivered, failed, attempts, latency } of deltas) {
    const name = `${tenantKey} ${minute}`;
    let sum = minutes.get(name);
    if (!sum) {
      sum = { tenantKey, minute, accepted: 0, delivered: 0, failed: 0, attempts: 0, latency: [] };
      minutes.set(name, sum);
    }
    sum.accepted += accepted;
    sum.delivered += delivered;
    sum.failed += failed;
    sum.attempts += attempts;
    for (const [bucket, count] of latency) addCount(sum.latency, bucket, count);
  }
  return [...minutes.values()];
}
