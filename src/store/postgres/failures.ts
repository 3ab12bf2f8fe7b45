import { noWebhookKey, othersKey } from "../../domain/failure-groups.ts";
import {
  type CountedGroup,
  type FailureReads,
  type FoundEvent,
  type GroupPlaces,
  hoursOf,
  reportFailures,
  seqsOf,
} from "../failure-report.ts";
import type { FailureVerbs } from "../failures.ts";
import type { Connection } from "./connection.ts";
import { arrayText, numbersOf } from "./parameters.ts";
import { webhookKeys } from "./record-walks.ts";

/** Looks up each group together with its hours. The fixed groups have no row. */
export const countedText = `
  with kind (key, webhook_key, code, status, line) as (
    select key, webhook_key, code, status, line from failure_group where tenant_key = $1::bigint
    union all select fixed, null, null, null, null from unnest('{${othersKey},${noWebhookKey}}'::bigint[]) fixed)
  select kind.key::float8 as "failureKey", counted.*, webhook.id as "webhookId", webhook.url, kind.code, kind.status, kind.line
  from kind cross join lateral (
    select sum(waiting)::float8 as waiting, sum(failed)::float8 as failed, max(last_failed_at)::float8 as "lastFailedAt"
    from failure_count c where c.tenant_key = $1::bigint and c.failure_key = kind.key
      and c.hour between $2::int and $3::int offset 0) counted
  left join webhook on webhook.tenant_key = $1::bigint and webhook.key = kind.webhook_key
  where waiting + failed > 0 and ($4::bigint[] is null or kind.webhook_key = any($4::bigint[]))`;

/** Takes one end of the index in the queue and one in the history. */
const ends = (columns: string, order: string, limit: number) =>
  ["pending", "delivery"]
    .map(
      (table) => `(select ${columns} from ${table} where tenant_key = $1::bigint and failure_key = given.key
        and event_seq between $2::bigint and $3::bigint order by ${order} limit ${limit})`,
    )
    .join(" union all ");

/** @param looked how many of the newest records of each */
export const placesText = (looked: number) => `
  select given.key::float8 as "failureKey",
    (select min(event_seq) from (${ends("event_seq", "event_seq", 1)}) first)::float8 as "firstSeq",
    newest.seqs::text as seqs, newest.types::text as types
  from unnest($4::bigint[]) as given (key) cross join lateral (
    select array_agg(event_seq order by event_seq desc) as seqs,
      array_agg(coalesce(type_hash, -1) order by event_seq desc) as types
    from (select * from (${ends("event_seq, type_hash", "event_seq desc", looked)}) newest_of_both
      order by event_seq desc limit ${looked}) taken) newest`;

interface PlacesRow {
  readonly failureKey: number;
  readonly firstSeq: number | null;
  readonly seqs: string | null;
  readonly types: string | null;
}

/** Each is looked up in the partition that it is in. */
export const eventsText = `select event.seq::float8 as seq, id_tail as "idTail", type
  from unnest($2::bigint[]) as given (seq) cross join lateral (
    select seq, id_tail, type from event where event.seq = given.seq and tenant_key = $1::bigint limit 1) event`;

export const failureVerbs = ({ pool }: Pick<Connection, "pool">): FailureVerbs => ({
  failures: ({ tenantKey, webhookId, ...range }) =>
    pool.snapshot(async (tx) => {
      const hours = hoursOf(range);
      const { fromSeq, toSeq } = seqsOf(hours);
      const ofWebhooks = webhookId === undefined ? null : arrayText(await webhookKeys(tx, tenantKey, webhookId));
      const reads: FailureReads = {
        counted: () => tx.run<CountedGroup>(countedText, [tenantKey, hours.fromHour, hours.toHour, ofWebhooks]),
        async places(failureKeys, newest) {
          const rows = await tx.run<PlacesRow>(placesText(newest), [tenantKey, fromSeq, toSeq, arrayText(failureKeys)]);
          return rows.flatMap(toPlaces);
        },
        events: (seqs) => tx.run<FoundEvent>(eventsText, [tenantKey, arrayText(seqs)]),
      };
      return reportFailures(reads, hours);
    }),
});

function toPlaces({ failureKey, firstSeq, seqs, types }: PlacesRow): GroupPlaces[] {
  if (firstSeq === null || seqs === null || types === null) return [];
  const hashes = numbersOf(types);
  const newest = numbersOf(seqs).map((eventSeq, i) => {
    const hash = hashes[i] ?? -1;
    return { eventSeq, typeHash: hash < 0 ? null : hash };
  });
  return [{ failureKey, firstSeq, newest }];
}
