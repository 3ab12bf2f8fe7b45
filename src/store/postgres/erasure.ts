import { keptAfterErasure } from "../audit.ts";
import type { TenantVerbs } from "../store.ts";
import type { Connection } from "./connection.ts";
import { arrayText } from "./parameters.ts";
import type { Transaction } from "./pool.ts";
import type { WriteTransaction } from "./writes.ts";

/** Tables that belong to a tenant besides its events, children before parents. */
const tenantTables = [
  "stat",
  "webhook_stat",
  "refused_events",
  "failure_count",
  "failure_group",
  "idempotency",
  "replay_count",
  "replay",
  "replay_label",
  "inbox_delivery",
  "inbox_setting",
  "login_address",
  "password_reset",
  "webhook",
  "api_key",
  "signing_key",
  "signing_secret",
  "usage",
] as const;

const deleteSome = tenantTables.map(
  (table) => `delete from ${table} where ctid = any(array(
    select ctid from ${table} where tenant_key = $1::bigint limit $2::int)) returning 1`,
);

const ofTenant = "tenant_id = (select id from tenant where key = $1::bigint)";
const deleteAuditText = `delete from audit where key = any(array(
  select key from audit where ${ofTenant} and not ${keptAfterErasure} limit $2::int)) returning 1`;
const stripAuditText = `update audit set detail = null, address = case actor when 'operator' then address end
  where ${ofTenant}`;

/** The next records of a tenant with the number of attempts that each may have, the oldest event first. */
export const someRecordsText = `select event_seq::float8 as seq, attempts from (
    (select event_seq, attempts - attempts_forgotten as attempts from pending
      where tenant_key = $1::bigint order by event_seq limit $2::int)
    union all
    (select event_seq, attempts - attempts_forgotten as attempts from delivery
      where tenant_key = $1::bigint order by event_seq limit $2::int)
  ) of_both order by event_seq limit $2::int`;

/**
 * Deletes everything of these events. Waiting records go first: that waits for anyone settling one at this moment, and what
 * they have then written goes with the statements that begin afterwards.
 */
export const eraseEventsTexts = [
  ["pending", "event_seq"],
  ["delivery", "event_seq"],
  ["attempt", "event_seq"],
  ["event", "seq"],
].map(
  ([table, seq]) => `delete from ${table} where tenant_key = $1::bigint and ${seq} = any($2::bigint[])
    and ${seq} between $3::bigint and $4::bigint`,
);

/**
 * What a node was still accepting for an account when it was deleted is written within seconds, or never. So a minute later
 * its rows are searched for once more, by the nodes that remain then.
 */
const lookAgainAfter = "interval '1 minute'";

export function erasureVerbs({ writes }: Pick<Connection, "writes">): Pick<TenantVerbs, "eraseDeleted"> {
  return {
    eraseDeleted: (limit) =>
      writes.submit(async (tx) => {
        const deleted = await nextOf(
          tx,
          "select key::float8 as key from tenant where deleted_at is not null order by deleted_at limit 1",
        );
        if (deleted !== null) {
          if (await eraseSome(tx, deleted, limit)) await forget(tx, deleted);
          return true;
        }
        const erased = await nextOf(
          tx,
          `select tenant_key::float8 as key from erased_tenant
            where erased_at <= clock_timestamp() - ${lookAgainAfter} order by erased_at limit 1`,
        );
        if (erased === null) return false;
        if (await eraseSome(tx, erased, limit)) {
          await tx.run("delete from erased_tenant where tenant_key = $1::bigint", [erased]);
        }
        return true;
      }),
  };
}

async function nextOf({ run }: Transaction, text: string): Promise<number | null> {
  const [row] = await run<{ key: number }>(text);
  return row?.key ?? null;
}

async function forget({ run }: Transaction, tenantKey: number): Promise<void> {
  await run("insert into erased_tenant (tenant_key) values ($1::bigint) on conflict do nothing", [tenantKey]);
  await run("delete from tenant where key = $1::bigint", [tenantKey]);
}

/** @returns whether everything is gone */
async function eraseSome(tx: WriteTransaction, tenantKey: number, limit: number): Promise<boolean> {
  let left = await eraseEvents(tx, tenantKey, limit);
  for (const text of deleteSome) {
    if (left <= 0) return false;
    left -= (await tx.run(text, [tenantKey, left])).length;
  }
  if (left <= 0) return false;
  left -= (await tx.run(deleteAuditText, [tenantKey, left])).length;
  if (left <= 0) return false;
  await tx.run(stripAuditText, [tenantKey]);
  return true;
}

/**
 * Erases whole events with their records and attempts, so that what is left always begins with the first one.
 *
 * @returns how much of the limit is left; nothing while there may be more
 */
async function eraseEvents({ run }: WriteTransaction, tenantKey: number, limit: number): Promise<number> {
  const records = await run<{ seq: number; attempts: number }>(someRecordsText, [tenantKey, limit]);
  const seqs = new Set<number>();
  let rows = 0;
  for (const { seq, attempts } of records) {
    if (!seqs.has(seq) && rows >= limit) break;
    rows += 1 + attempts;
    if (!seqs.has(seq)) rows += 1;
    seqs.add(seq);
  }
  if (seqs.size === 0) return limit;
  const values = [tenantKey, arrayText([...seqs]), Math.min(...seqs), Math.max(...seqs)];
  for (const text of eraseEventsTexts) await run(text, values);
  return records.length < limit && rows < limit ? limit - rows : 0;
}
