import type { Database } from "bun:sqlite";
import { firstSeqAt } from "../../lib/id.ts";
import {
  attemptsInOneLook,
  eventsInOneLook,
  type KeptAnswers,
  type KeptAnswersQuery,
  type OldEvents,
  type OldEventsQuery,
} from "../retention.ts";
import { type MeasuredRecord, measuredAtOnce } from "../storage-size.ts";
import { unlessDamaged } from "./damage.ts";

const inOneLook = "from event where seq > ?1 and seq < ?2 order by seq";

/** Walks the table itself: events lie in the order of their numbers, and those that are removed together lie together. */
export function oldEvents(
  client: Database,
  { afterSeq, before, accounts, withPayload, limit }: OldEventsQuery,
): OldEvents {
  const toSeq = firstSeqAt(before);
  const other = accounts.kind === "only" ? "" : "not";
  const events = unlessDamaged(() =>
    client
      .query<{ seq: number; tenantKey: number }, [number, number, string, number]>(
        `select seq, tenant_key as tenantKey from
           (select seq, tenant_key, ${withPayload ? "length(payload) > 0" : "1"} as isThere ${inOneLook} limit ${eventsInOneLook})
         where isThere and tenant_key ${other} in (select value from json_each(?3)) limit ?4`,
      )
      .all(afterSeq, toSeq, JSON.stringify(accounts.tenantKeys), limit),
  );
  const last = events?.at(-1);
  if (events && last && events.length === limit) return { events, lookedTo: last.seq };
  const end = unlessDamaged(() =>
    client
      .query<{ seq: number }, [number, number]>(`select seq ${inOneLook} limit 1 offset ${eventsInOneLook - 1}`)
      .get(afterSeq, toSeq),
  );
  return { events: events ?? [], lookedTo: end?.seq ?? null };
}

interface AnsweredRow {
  readonly tenantKey: number;
  readonly eventSeq: number;
  readonly key: number;
  readonly webhookKey: number;
  readonly startedAt: number;
  readonly isKept: number;
}

/** Walks the table: its keys are in the order of the log. */
export function keptAnswers(client: Database, { after, before }: KeptAnswersQuery): KeptAnswers {
  const rows =
    unlessDamaged(() =>
      client
        .query<AnsweredRow, [number]>(
          `select tenant_key as tenantKey, event_seq as eventSeq, key, webhook_key as webhookKey, started_at as startedAt,
             status_code between 200 and 299 and response_body is not null as isKept
           from attempt where key > ?1 order by key limit ${attemptsInOneLook}`,
        )
        .all(after?.key ?? 0),
    ) ?? [];
  const firstLate = rows.findIndex(({ startedAt }) => startedAt >= before);
  const looked = firstLate === -1 ? rows : rows.slice(0, firstLate);
  return {
    attempts: looked.flatMap(({ isKept, startedAt: _, ...attempt }) => (isKept ? [attempt] : [])),
    lookedTo: looked.at(-1) ?? after,
    isMore: looked.length === attemptsInOneLook,
  };
}

/** Every n-th record of an account, along the index of its list. */
export function measuredRecords(
  client: Database,
  { tenantKey, afterSeq, step }: { tenantKey: number; afterSeq: number; step: number },
): MeasuredRecord[] {
  return (
    unlessDamaged(() =>
      client
        .query<MeasuredRecord, [number, number, number]>(
          `select d.event_seq as eventSeq,
             (select count(*) from delivery other where other.tenant_key = ?1 and other.filed = 1 and other.event_seq = d.event_seq) as records,
             length(event.payload) + coalesce(length(event.type), 0) + coalesce(length(event.trace), 0)
               + coalesce(length(event.ordering_key), 0) as eventBytes,
             coalesce(length(d.error_reason), 0) + 4 * coalesce(length(d.error_code), 0) as recordBytes,
             (select count(*) from attempt where event_seq = d.event_seq) as attempts,
             (select coalesce(sum(coalesce(length(response_body), 0) + coalesce(length(error), 0)
                + coalesce(length(error_code), 0) + coalesce(length(answer_head), 0)), 0)
              from attempt where event_seq = d.event_seq) as attemptBytes
           from (select event_seq, key from delivery
                 where tenant_key = ?1 and filed = 1 and event_seq > ?2 and key % ?3 = 0 order by event_seq limit ${measuredAtOnce}) listed
             join delivery d on d.key = listed.key join event on event.seq = d.event_seq
           order by d.event_seq`,
        )
        .all(tenantKey, afterSeq, step),
    ) ?? []
  );
}
