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
import { keyBehindDamage, readableRows, unlessDamaged } from "./damage.ts";

interface EventRow {
  readonly seq: number;
  readonly tenantKey: number;
}

/** From a key on, not after one: SQLite looks for what follows the last key of a page on that page, which may be damaged. */
const inOneLook = "from event where seq >= ?1 and seq < ?2 order by seq";

const isThere = (withPayload: boolean) => (withPayload ? "length(payload) > 0" : "1");

/** Walks the table itself: events lie in the order of their numbers, and those that are removed together lie together. */
export function oldEvents(client: Database, query: OldEventsQuery): OldEvents {
  const toSeq = firstSeqAt(query.before);
  return unlessDamaged(() => look(client, query, toSeq)) ?? lookUpToDamage(client, query, toSeq);
}

function look(client: Database, { afterSeq, accounts, withPayload, limit }: OldEventsQuery, toSeq: number): OldEvents {
  const other = accounts.kind === "only" ? "" : "not";
  const events = client
    .query<EventRow, [number, number, string, number]>(
      `select seq, tenant_key as tenantKey from
         (select seq, tenant_key, ${isThere(withPayload)} as isThere ${inOneLook} limit ${eventsInOneLook})
       where isThere and tenant_key ${other} in (select value from json_each(?3)) limit ?4`,
    )
    .all(afterSeq + 1, toSeq, JSON.stringify(accounts.tenantKeys), limit);
  const last = events.at(-1);
  if (last && events.length === limit) return { events, lookedTo: last.seq };
  const end = client
    .query<{ seq: number }, [number, number]>(`select seq ${inOneLook} limit 1 offset ${eventsInOneLook - 1}`)
    .get(afterSeq + 1, toSeq);
  return { events, lookedTo: end?.seq ?? null };
}

/** The next look, which begins with the damage, gets behind it. */
function lookUpToDamage(
  client: Database,
  { afterSeq, accounts, withPayload, limit }: OldEventsQuery,
  toSeq: number,
): OldEvents {
  const statement = client.query<EventRow & { isThere: number }, [number, number, number]>(
    `select seq, tenant_key as tenantKey, ${isThere(withPayload)} as isThere ${inOneLook} limit ?3`,
  );
  const { rows } = readableRows(statement.iterate(afterSeq + 1, toSeq, eventsInOneLook));
  const lastLooked = rows.at(-1);
  if (!lastLooked) {
    const nextSeq = keyBehindDamage(afterSeq + 1, toSeq, (fromSeq) => statement.get(fromSeq, toSeq, 1));
    return { events: [], lookedTo: nextSeq && nextSeq - 1 };
  }
  const given = new Set(accounts.tenantKeys);
  const events = rows
    .filter((row) => row.isThere === 1 && given.has(row.tenantKey) === (accounts.kind === "only"))
    .map(({ seq, tenantKey }) => ({ seq, tenantKey }))
    .slice(0, limit);
  const last = events.length === limit ? events.at(-1) : undefined;
  return { events, lookedTo: (last ?? lastLooked).seq };
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
export function keptAnswers(client: Database, { after, before, now }: KeptAnswersQuery): KeptAnswers {
  const statement = client.query<AnsweredRow, [number, number]>(
    `select tenant_key as tenantKey, event_seq as eventSeq, key, webhook_key as webhookKey, started_at as startedAt,
       status_code between 200 and 299 and response_body is not null as isKept
     from attempt where key >= ?1 order by key limit ?2`,
  );
  const fromKey = (after?.key ?? 0) + 1;
  const { rows, isWhole } = readableRows(statement.iterate(fromKey, attemptsInOneLook));
  if (rows.length === 0 && !isWhole) {
    const nextKey = keyBehindDamage(fromKey, Number.MAX_SAFE_INTEGER, (from) => statement.get(from, 1));
    if (nextKey === null) return { attempts: [], lookedTo: after, isMore: false };
    return { attempts: [], lookedTo: { tenantKey: 0, eventSeq: 0, key: nextKey - 1 }, isMore: true };
  }
  const firstLate = rows.findIndex(({ startedAt }) => startedAt >= before && startedAt <= now);
  const looked = firstLate === -1 ? rows : rows.slice(0, firstLate);
  return {
    attempts: looked.flatMap(({ isKept, startedAt, ...attempt }) => (isKept && startedAt < before ? [attempt] : [])),
    lookedTo: looked.at(-1) ?? after,
    isMore: firstLate === -1 && (rows.length === attemptsInOneLook || !isWhole),
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
