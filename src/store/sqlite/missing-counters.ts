import type { Database } from "bun:sqlite";
import { noEvents, utcMonth } from "../../domain/tenant-state.ts";
import { firstSeqAt, ingestedAtMs } from "../../lib/id.ts";
import { unlessDamaged } from "./damage.ts";
import { fileLeftOver } from "./filing.ts";

/**
 * Gives each account without a row of counters one, counted from its records. In PostgreSQL an account has none before its
 * first event, and a move used to leave it at that; here the row is only ever updated, so nothing that such an account got
 * was counted. Where no row is missing, which is nearly always, this takes one walk over the accounts.
 *
 * Events of our own count towards the month here, too. They are few, and only their payloads would tell.
 */
export function addMissingCounters(client: Database): void {
  const missing = unlessDamaged(() => client.query<{ key: number }, []>(missingText).all()) ?? [];
  if (missing.length === 0) return;
  client.transaction(() => {
    fileLeftOver(client);
    for (const { key } of missing) unlessDamaged(() => recount(client, key));
  })();
}

const missingText = `select key from tenant
  where deleted_at is null and not exists (select 1 from tenant_usage where tenant_key = tenant.key)`;

function recount(client: Database, tenantKey: number): void {
  const newest = client.query<{ seq: number | null }, [number]>(
    "select max(event_seq) as seq from delivery where tenant_key = ?1 and filed = 1",
  );
  const seq = newest.get(tenantKey)?.seq ?? null;
  const latest = new Date(ingestedAtMs(seq ?? 0));
  const monthStart = firstSeqAt(Date.UTC(latest.getUTCFullYear(), latest.getUTCMonth()));
  client.query(recountText).run(tenantKey, seq === null ? noEvents.month : utcMonth(latest.getTime()), monthStart);
}

const recordsIn = (state: number) =>
  `(select count(*) from delivery where tenant_key = ?1 and filed = 1 and state = ${state})`;
const eventsFrom = (seq: string) =>
  `(select count(*) from (
     select 1 from delivery where tenant_key = ?1 and filed = 1 and event_seq >= ${seq} group by event_seq))`;

const recountText = `insert into tenant_usage (tenant_key, month, events_in_month, events, pending, delivered, failed, skipped)
  select ?1, ?2, ${eventsFrom("?3")}, ${eventsFrom("0")}, ${[0, 1, 2, 3].map(recordsIn).join(", ")}`;
