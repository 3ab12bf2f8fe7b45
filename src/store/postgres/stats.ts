import { type RefusalReason, sumRefused } from "../../domain/refused-events.ts";
import { ingestedAtMs } from "../../lib/id.ts";
import { accountMinutes, webhookMinutes } from "../minute-tables.ts";
import { createThinner } from "../old-minutes.ts";
import type { RefusalDelta, StatDelta, StatVerbs } from "../stats.ts";
import { chartOf, createMinuteSum, type MinuteRange, type MinuteRow, type SummedMinutes } from "../sum-minutes.ts";
import type { Connection } from "./connection.ts";
import { createMinuteRows } from "./minute-rows.ts";
import { oldMinutes } from "./old-minutes.ts";
import { arrayText } from "./parameters.ts";
import type { Transaction } from "./pool.ts";
import { webhookKeys } from "./record-walks.ts";

/**
 * Added up in one go: takes some 10 ms of the event loop. A month of minutes of three servers are 130,000 rows; sixty charts of
 * those at once, read whole, stopped the event loop for 45 s.
 */
const rowsAtOnce = 2_000;
const oldestFirst = `order by minute fetch first ${rowsAtOnce} rows with ties`;

/** Up to this many minutes, a chart is quick to read. */
const shortMinutes = 240;

/**
 * Each slot has its own row; the reader adds them up. All rows of the last minute are among them, so what is left begins with
 * the next one. A range may be of years whose minutes are beyond the column's type.
 */
export const minutesText = `select minute, accepted, delivered, failed, attempts, latency from stat
  where tenant_key = $1::bigint and minute between $2::bigint and $3::bigint ${oldestFirst}`;

/** Like `minutesText`, for webhooks: nothing is accepted for those. */
export const webhookMinutesText = `select minute, 0 as accepted, delivered, failed, attempts, latency from webhook_stat
  where tenant_key = $1::bigint and webhook_key = any($4::bigint[]) and minute between $2::bigint and $3::bigint
  ${oldestFirst}`;

/** One statement, so that both answers are as of one moment; the oldest record is at the end of an index. */
export const waitingText = `select
  (select coalesce(sum(pending), 0)::float8 from usage where tenant_key = $1::bigint) as records,
  (select event_seq::float8 from pending where tenant_key = $1::bigint order by pending.event_seq limit 1) as "oldestSeq"`;

export const addRefusedText = `insert into refused_events as r (tenant_key, month, reason, slot, events)
  select given.tenant_key, month, reason, $1::smallint, sum(events)
  from unnest($2::bigint[], $3::int[], $4::text[], $5::bigint[]) as given (tenant_key, month, reason, events)
  join tenant on tenant.key = given.tenant_key and tenant.deleted_at is null
  group by 1, 2, 3 order by 1, 2, 3
  on conflict (tenant_key, month, reason, slot) do update set events = r.events + excluded.events`;

export const refusedText = `select reason, events::float8 as events from refused_events
  where tenant_key = $1::bigint and month = $2::int`;

export function statVerbs({
  pool,
  slowReads,
  writes,
  node,
}: Pick<Connection, "pool" | "slowReads" | "writes" | "node">): StatVerbs {
  /** What arrives while a statement is running goes together into the next. */
  let next: { readonly deltas: StatDelta[]; readonly added: Promise<void> } | null = null;
  let underWay: Promise<unknown> = Promise.resolve();

  const addOfAccounts = createMinuteRows({ pool, node }, accountMinutes);
  const addOfWebhooks = createMinuteRows({ pool, node }, webhookMinutes);

  async function add(deltas: readonly StatDelta[]): Promise<void> {
    await addOfAccounts(
      deltas.flatMap(({ tenantKey, webhookKey, accepted, delivered, failed, attempts, ...rest }) =>
        webhookKey === undefined
          ? [{ keys: [tenantKey], counts: [accepted, delivered, failed, attempts], ...rest }]
          : [],
      ),
    );
    await addOfWebhooks(
      deltas.flatMap(({ tenantKey, webhookKey, delivered, failed, attempts, ...rest }) =>
        webhookKey === undefined
          ? []
          : [{ keys: [tenantKey, webhookKey], counts: [delivered, failed, attempts], ...rest }],
      ),
    );
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

    stats: (tenantKey, { webhookId, ...range }) =>
      chartOf(range, (minutes) => {
        if (minutes.to - minutes.from < shortMinutes) return sumIn({ run: pool.read }, tenantKey, webhookId, minutes);
        // One snapshot: old minutes are merged into hours meanwhile.
        return slowReads.run(tenantKey, () => pool.snapshot((tx) => sumIn(tx, tenantKey, webhookId, minutes)));
      }),

    thinStats: createThinner([accountMinutes, webhookMinutes].map((table) => oldMinutes({ pool, writes }, table))),

    async addRefused(deltas: readonly RefusalDelta[]) {
      await pool.write(addRefusedText, [
        node().slot,
        arrayText(deltas.map(({ tenantKey }) => tenantKey)),
        arrayText(deltas.map(({ month }) => month)),
        arrayText(deltas.map(({ reason }) => reason)),
        arrayText(deltas.map(({ events }) => events)),
      ]);
    },

    async refusedEvents(tenantKey, month) {
      return sumRefused(await pool.read<{ reason: RefusalReason; events: number }>(refusedText, [tenantKey, month]));
    },

    async waiting(tenantKey) {
      const [found] = await pool.read<{ records: number; oldestSeq: number | null }>(waitingText, [tenantKey]);
      const { records, oldestSeq } = found ?? { records: 0, oldestSeq: null };
      return { records, oldestIngestedAt: oldestSeq === null ? null : ingestedAtMs(oldestSeq) };
    },
  };
}

/** Adds up one slice after the other, so that everything else gets its turn in between. */
async function sumIn(
  { run }: Pick<Transaction, "run">,
  tenantKey: number,
  webhookId: string | undefined,
  { from, to, bucketMinutes }: MinuteRange,
): Promise<SummedMinutes> {
  const ofWebhooks = webhookId === undefined ? null : arrayText(await webhookKeys({ run }, tenantKey, webhookId));
  const sum = createMinuteSum(bucketMinutes);
  for (let next = from; ; ) {
    const place = [tenantKey, next, to];
    const rows = await (ofWebhooks === null
      ? run<CountedRow>(minutesText, place)
      : run<CountedRow>(webhookMinutesText, [...place, ofWebhooks]));
    sum.add(rows.map(toMinuteRow));
    const last = rows.at(-1);
    if (!last || rows.length < rowsAtOnce) return sum.sums();
    next = last.minute + 1;
  }
}

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
