import type { Database } from "bun:sqlite";
import { noWebhookKey, othersKey } from "../../domain/failure-groups.ts";
import { type CountedGroup, type FoundEvent, type GroupPlaces, type HourRange, seqsOf } from "../failure-report.ts";

interface OfTenant extends HourRange {
  tenantKey: number;
}

const countedSql = `
  with kind (key, webhook_key, code, status, line) as (
    select key, webhook_key, code, status, line from failure_group where tenant_key = ?1
    union all select value, null, null, null, null from json_each('[${othersKey},${noWebhookKey}]'))
  select kind.key as failureKey, sum(c.waiting) as waiting, sum(c.failed) as failed, max(c.last_failed_at) as lastFailedAt,
         webhook.id as webhookId, webhook.url, kind.code, kind.status, kind.line
  from kind cross join failure_count c on c.tenant_key = ?1 and c.failure_key = kind.key and c.hour between ?2 and ?3
  left join webhook on webhook.key = kind.webhook_key
  where ?4 is null or kind.webhook_key in (select value from json_each(?4))
  group by kind.key`;

const ofGroup = "tenant_key = ?1 and failure_key = ?2 and event_seq between ?3 and ?4";
const firstSql = `select event_seq as eventSeq from delivery where ${ofGroup} order by event_seq limit 1`;
const newestSql = `select event_seq as eventSeq, type_hash as typeHash from delivery
  where ${ofGroup} order by event_seq desc limit ?5`;

/** The queries behind failure reports; part of those in `queries.ts`. */
export const failureQueries = (client: Database) => ({
  /** @param webhookKeys null: failures of all webhooks, and those without one */
  failureGroups: ({ tenantKey, fromHour, toHour, webhookKeys }: OfTenant & { webhookKeys: readonly number[] | null }) =>
    client
      .query<CountedGroup, [number, number, number, string | null]>(countedSql)
      .all(tenantKey, fromHour, toHour, webhookKeys && JSON.stringify(webhookKeys)),

  failurePlaces(asked: OfTenant & { failureKeys: readonly number[]; newest: number }): GroupPlaces[] {
    const { tenantKey, failureKeys } = asked;
    const { fromSeq, toSeq } = seqsOf(asked);
    const first = client.query<{ eventSeq: number }, number[]>(firstSql);
    const newest = client.query<GroupPlaces["newest"][number], number[]>(newestSql);
    return failureKeys.flatMap((failureKey) => {
      const oldest = first.get(tenantKey, failureKey, fromSeq, toSeq);
      if (!oldest) return [];
      return {
        failureKey,
        firstSeq: oldest.eventSeq,
        newest: newest.all(tenantKey, failureKey, fromSeq, toSeq, asked.newest),
      };
    });
  },

  failedEvents: (seqs: readonly number[]) =>
    client
      .query<FoundEvent, [string]>(
        "select seq, id_tail as idTail, type from event where seq in (select value from json_each(?1))",
      )
      .all(JSON.stringify(seqs)),
});
