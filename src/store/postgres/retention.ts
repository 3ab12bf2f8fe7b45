import { deliveryStates } from "../../domain/delivery.ts";
import { movesOf } from "../../domain/failure-groups.ts";
import { hasEnded } from "../../domain/retention.ts";
import { forgetEvent, recordsIn } from "../../domain/tenant-state.ts";
import { firstSeqAt } from "../../lib/id.ts";
import {
  type AccountChoice,
  type AccountKept,
  attemptsInOneLook,
  copiesOf,
  eventsInOneLook,
  type InboxCopy,
  type RetentionVerbs,
} from "../retention.ts";
import { type MeasuredRecord, measuredAtOnce, measureStorage, type RowSizes } from "../storage-size.ts";
import type { Connection } from "./connection.ts";
import { eraseEventsTexts } from "./erasure.ts";
import { FailureTally } from "./failure-counts.ts";
import { count, countersOf, type HeldTenant, hold, lockTenant } from "./held-tenants.ts";
import { arrayText } from "./parameters.ts";
import { changeTenant, noteErased } from "./tenant-rows.ts";
import type { WriteTransaction } from "./writes.ts";

const inOneLook = `from event where seq > $1::bigint and seq < $2::bigint order by event.seq`;

export const oldEventsText = (kind: AccountChoice["kind"], withPayload: boolean): string =>
  `select seq::float8 as seq, tenant_key::float8 as "tenantKey" from (
    select seq, tenant_key, ${withPayload ? "octet_length(payload) > 0" : "true"} as "isThere" ${inOneLook} limit ${eventsInOneLook}) looked
  where "isThere" and tenant_key ${kind === "only" ? "= any" : "<> all"} ($3::bigint[]) order by seq limit $4::int`;

export const lookedToText = `select seq::float8 as seq ${inOneLook} limit 1 offset ${eventsInOneLook - 1}`;

/** In the order of the events, next to which attempts are stored. */
export const keptAnswersText = `select tenant_key::float8 as "tenantKey", event_seq::float8 as "eventSeq", key::float8 as key,
    webhook_key::float8 as "webhookKey", status_code between 200 and 299 and response_body is not null as "isKept"
  from attempt where event_seq >= $1::bigint and (event_seq, tenant_key, key) > ($1::bigint, $2::bigint, $3::bigint)
    and event_seq < $4::bigint
  order by attempt.event_seq, attempt.tenant_key, attempt.key limit ${attemptsInOneLook}`;

interface AnsweredRow {
  readonly tenantKey: number;
  readonly eventSeq: number;
  readonly key: number;
  readonly webhookKey: number;
  readonly isKept: boolean;
}

const forgetAnswersText = `update attempt set response_body = null, answer_head = null
  from unnest($2::bigint[], $3::bigint[]) as given (event_seq, key)
  where attempt.tenant_key = $1::bigint and attempt.event_seq = given.event_seq and attempt.key = given.key
    and attempt.event_seq between $4::bigint and $5::bigint`;

const keptOtherwiseText = `select key::float8 as "tenantKey", own_retention_days as "ownRetentionDays",
    own_payload_days as "ownPayloadDays", own_storage_bytes::float8 as "ownStorageBytes",
    storage_full_at::float8 as "storageFullAt"
  from tenant where (own_retention_days is not null or own_payload_days is not null or own_storage_bytes is not null)
    and deleted_at is null`;

/** Sizes of rows with their headers and index entries; PostgreSQL stores long values outside the row, and compresses them. */
const rowSizes: RowSizes = { event: 90, record: 210, attempt: 130 };

const measuredIn = (table: "delivery" | "pending") =>
  `(select event_seq, key from ${table} where tenant_key = $1::bigint and event_seq > $2::bigint and key % $3::bigint = 0
    order by ${table}.event_seq limit ${measuredAtOnce})`;

const ofMeasuredIn = (table: "delivery" | "pending", columns: string) =>
  `select ${columns} from ${table} where tenant_key = $1::bigint and event_seq = listed.event_seq`;

const errorColumns = "error_reason, error_code, event_seq";

/** Records that wait count like those that have ended: of an account whose webhooks are all down, nothing else is there. */
export const measuredText = `
  select d.event_seq::float8 as "eventSeq", records::int as records, "eventBytes"::float8 as "eventBytes",
    coalesce(length(d.error_reason), 0) + 4 * coalesce(length(d.error_code), 0) as "recordBytes",
    attempts.n::int as attempts, attempts.bytes::float8 as "attemptBytes"
  from (select event_seq, key from (${measuredIn("delivery")} union all ${measuredIn("pending")}) of_both
        order by event_seq limit ${measuredAtOnce}) listed
  cross join lateral (${ofMeasuredIn("delivery", errorColumns)} and key = listed.key
    union all ${ofMeasuredIn("pending", errorColumns)} and key = listed.key limit 1) d
  cross join lateral (select octet_length(payload) + coalesce(length(type), 0) + coalesce(length(trace), 0)
      + coalesce(length(ordering_key), 0) as "eventBytes"
    from event where seq = listed.event_seq and tenant_key = $1::bigint limit 1) event
  cross join lateral (select (${ofMeasuredIn("delivery", "count(*)")}) + (${ofMeasuredIn("pending", "count(*)")}) as records) of_event
  cross join lateral (select count(*) as n, coalesce(sum(coalesce(octet_length(response_body), 0) + coalesce(length(error), 0)
      + coalesce(length(error_code), 0) + coalesce(length(answer_head), 0)), 0) as bytes
    from attempt where event_seq = listed.event_seq and tenant_key = $1::bigint) attempts
  order by d.event_seq`;

interface OldRecordRow {
  readonly seq: number;
  readonly state: number;
  readonly finishedAt: number | null;
  readonly failureKey: number | null;
}

const ofThese = `tenant_key = $1::bigint and event_seq = any($2::bigint[]) and event_seq between $3::bigint and $4::bigint`;

/** Waiting records first, then ended ones: as the account is locked, a record can only move from the former to the latter. */
export const oldRecordsTexts = [
  `select event_seq::float8 as seq, 0 as state, null::float8 as "finishedAt", null::float8 as "failureKey"
     from pending where ${ofThese}`,
  `select event_seq::float8 as seq, state, finished_at::float8 as "finishedAt", failure_key::float8 as "failureKey"
     from delivery where ${ofThese}`,
];

/** The account is locked, so nothing is put into its inbox meanwhile. */
async function forgetCopies({ run }: WriteTransaction, tenantKey: number, seqs: Iterable<number>): Promise<void> {
  const kept = await run<InboxCopy>(
    `select key::float8 as key, event_id as "eventId" from inbox_delivery where tenant_key = $1::bigint and not is_test`,
    [tenantKey],
  );
  const keys = copiesOf(seqs, kept);
  if (keys.length === 0) return;
  await run("delete from inbox_delivery where tenant_key = $1::bigint and key = any($2::bigint[])", [
    tenantKey,
    arrayText(keys),
  ]);
}

/** @param databaseBytes as of a minute ago: nothing here is removed by size */
export function retentionVerbs(
  { pool, writes, node }: Pick<Connection, "pool" | "writes" | "node">,
  databaseBytes: () => number,
): RetentionVerbs {
  type Ended = ReadonlyMap<number, OldRecord[]>;

  /** Works on those events that have ended, in one transaction. */
  const ofEnded = (
    tenantKey: number,
    seqs: readonly number[],
    endedBy: number,
    work: (tx: WriteTransaction, held: HeldTenant, ended: Ended) => Promise<number>,
  ) =>
    writes.submit(async (tx) => {
      const held = seqs.length === 0 ? null : await hold(tx, tenantKey);
      if (!held || held.gone) return 0;
      const ended = await endedOf(tx, tenantKey, seqs, endedBy);
      return ended.size === 0 ? 0 : work(tx, held, ended);
    });

  return {
    async oldEvents({ afterSeq, before, accounts, withPayload, limit }) {
      const range = [afterSeq, firstSeqAt(before)];
      const events = await pool.read<{ tenantKey: number; seq: number }>(oldEventsText(accounts.kind, withPayload), [
        ...range,
        ...[arrayText(accounts.tenantKeys), limit],
      ]);
      const last = events.at(-1);
      if (last && events.length === limit) return { events, lookedTo: last.seq };
      const [end] = await pool.read<{ seq: number }>(lookedToText, range);
      return { events, lookedTo: end?.seq ?? null };
    },

    forgetEvents: (tenantKey, seqs, endedBy) =>
      ofEnded(tenantKey, seqs, endedBy, async (tx, held, ended) => {
        for (const text of eraseEventsTexts) await tx.run(text, placesOf(tenantKey, [...ended.keys()]));
        await forgetCopies(tx, tenantKey, ended.keys());
        const before = held.counters;
        const tally = new FailureTally();
        for (const [seq, records] of ended) {
          held.counters = forgetEvent(held.counters, records);
          tally.add(
            seq,
            records.flatMap((record) => movesOf(record, null)),
          );
        }
        const { events, delivered, failed, skipped } = held.counters;
        await count(tx, node(), tenantKey, {
          events: events - before.events,
          delivered: delivered - before.delivered,
          failed: failed - before.failed,
          skipped: skipped - before.skipped,
        });
        await tally.write(tx, node(), tenantKey);
        return ended.size;
      }),

    erasePayloads: (tenantKey, seqs, endedBy) =>
      ofEnded(tenantKey, seqs, endedBy, async (tx, _held, ended) => {
        const erased = await tx.run<{ seq: number }>(
          `update event set payload = ''::bytea where tenant_key = $1::bigint and seq = any($2::bigint[])
            and seq between $3::bigint and $4::bigint and octet_length(payload) > 0 returning seq::float8 as seq`,
          placesOf(tenantKey, [...ended.keys()]),
        );
        if (erased.length === 0) return 0;
        const seqs = erased.map(({ seq }) => seq);
        await noteErased(tx, tenantKey, Math.max(...seqs));
        await forgetCopies(tx, tenantKey, seqs);
        return seqs.length;
      }),

    async keptAnswers({ after, before }) {
      const rows = await pool.read<AnsweredRow>(keptAnswersText, [
        ...[after?.eventSeq ?? 0, after?.tenantKey ?? 0, after?.key ?? 0],
        firstSeqAt(before),
      ]);
      return {
        attempts: rows.flatMap(({ isKept, ...attempt }) => (isKept ? [attempt] : [])),
        lookedTo: rows.at(-1) ?? after,
        isMore: rows.length === attemptsInOneLook,
      };
    },

    forgetAnswers: (tenantKey, attempts) =>
      writes.submit(async (tx) => {
        if (attempts.length === 0 || !(await lockTenant(tx, tenantKey))) return;
        const seqs = attempts.map(({ eventSeq }) => eventSeq);
        await tx.run(forgetAnswersText, [
          ...[tenantKey, arrayText(seqs), arrayText(attempts.map(({ key }) => key))],
          ...[Math.min(...seqs), Math.max(...seqs)],
        ]);
      }),

    accountsKeptOtherwise: () => pool.read<AccountKept>(keptOtherwiseText),

    async storageOf(tenantKey) {
      const records = recordsIn(await countersOf({ run: pool.read }, tenantKey));
      return measureStorage(records, rowSizes, (afterSeq, step) =>
        pool.read<MeasuredRecord>(measuredText, [tenantKey, afterSeq, step]),
      );
    },

    noteStorageFull: (tenantKey, since) =>
      writes.submit(async (tx) => {
        const tenant = await lockTenant(tx, tenantKey);
        if (!tenant || (tenant.storageFullAt === null) === (since === null)) return;
        await changeTenant(tx, { tenant }, { storageFullAt: since });
      }),

    async storedEvents() {
      const [row] = await pool.read<{ n: number }>("select coalesce(sum(events), 0)::float8 as n from usage");
      return row?.n ?? 0;
    },

    usedBytes: async () => databaseBytes(),
  };
}

const placesOf = (tenantKey: number, seqs: readonly number[]) => [
  ...[tenantKey, arrayText(seqs)],
  ...[Math.min(...seqs), Math.max(...seqs)],
];

const toRecord = ({ state, ...record }: OldRecordRow) => ({ ...record, state: deliveryStates[state] ?? "PENDING" });
type OldRecord = ReturnType<typeof toRecord>;

async function endedOf(
  { run }: WriteTransaction,
  tenantKey: number,
  seqs: readonly number[],
  endedBy: number,
): Promise<Map<number, OldRecord[]>> {
  const there = await run<{ seq: number }>(
    `select seq::float8 as seq from event where tenant_key = $1::bigint and seq = any($2::bigint[])
      and seq between $3::bigint and $4::bigint order by seq`,
    placesOf(tenantKey, seqs),
  );
  const recordsOf = new Map<number, OldRecord[]>(there.map(({ seq }) => [seq, []]));
  if (there.length === 0) return recordsOf;
  for (const text of oldRecordsTexts) {
    for (const row of await run<OldRecordRow>(text, placesOf(tenantKey, [...recordsOf.keys()]))) {
      recordsOf.get(row.seq)?.push(toRecord(row));
    }
  }
  return new Map([...recordsOf].filter(([, records]) => hasEnded(records, endedBy)));
}
