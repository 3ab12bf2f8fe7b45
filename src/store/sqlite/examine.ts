import { Database } from "bun:sqlite";
import { join } from "node:path";
import { fileLeftOver } from "./filing.ts";
import { databaseFile, sqliteVersion } from "./open.ts";

export interface Examination {
  /** What is inconsistent, in words; empty when nothing is. */
  readonly faults: readonly string[];
  /** Its name and version. */
  readonly backend: string;
}

/** Examines the database of a data directory that no server uses, in the state in which it was left, even by a killed one. */
export function examineDatabase(dataDir: string): Examination {
  const client = new Database(join(dataDir, databaseFile), { readwrite: true });
  try {
    const pages = client.query<{ integrity_check: string }, []>("pragma integrity_check").all();
    const orphans = client.query<{ table: string; parent: string }, []>("pragma foreign_key_check").all();
    return {
      faults: [
        ...pages.filter((row) => row.integrity_check !== "ok").map((row) => `database: ${row.integrity_check}`),
        ...orphans.map(({ table, parent }) => `database: a row of ${table} has no ${parent}`),
        ...findMiscounts(client).map((fault) => `database: ${fault}`),
      ],
      backend: `SQLite ${sqliteVersion(client)}`,
    };
  } finally {
    client.close(true);
  }
}

/** Where the rows and the figures kept alongside them disagree, in words. Files first what a killed server has left unfiled. */
export function findMiscounts(client: Database): string[] {
  fileLeftOver(client);
  const lost = client.prepare<{ fault: string }, []>(torn).all();
  const counters = client.prepare<{ tenant: string }, []>(miscounted).all();
  return [
    ...lost.map(({ fault }) => fault),
    ...counters.map(({ tenant }) => `the counters of ${tenant} are not those of its rows`),
  ];
}

/** What no foreign key enforces, because it would cost an index (`schema.ts`). */
const torn = `
  select 'a delivery has no event of its tenant' as fault from delivery left join event on event.seq = delivery.event_seq
  where event.tenant_key is not delivery.tenant_key
  union all
  select 'an event has no delivery' from event where not exists (
    select 1 from delivery where delivery.tenant_key = event.tenant_key and filed = 1 and delivery.event_seq = event.seq)
  union all
  select 'an event has no tenant' from event where tenant_key not in (select key from tenant)`;

/**
 * Counters are kept alongside the rows, in the same transactions. Events are counted by grouping, for which an index has them in
 * order: `count(distinct …)` writes them all to a temporary file.
 */
const miscounted = `
  select tenant.id as tenant from tenant join tenant_usage usage on usage.tenant_key = tenant.key
  where tenant.deleted_at is null and (
    usage.events <> (select count(*) from (
      select 1 from delivery where delivery.tenant_key = tenant.key and filed = 1 group by event_seq)) or
    usage.pending <> (select count(*) from delivery where delivery.tenant_key = tenant.key and filed = 1 and state = 0) or
    usage.delivered <> (select count(*) from delivery where delivery.tenant_key = tenant.key and filed = 1 and state = 1) or
    usage.failed <> (select count(*) from delivery where delivery.tenant_key = tenant.key and filed = 1 and state = 2) or
    usage.skipped <> (select count(*) from delivery where delivery.tenant_key = tenant.key and filed = 1 and state = 3))`;
