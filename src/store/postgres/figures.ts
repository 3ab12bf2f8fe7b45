import type { Pool } from "./pool.ts";

/** How many bytes the database takes. The server looks at every file to answer this. */
export async function databaseBytes({ read }: Pool): Promise<number> {
  const [row] = await read<{ bytes: number }>("select pg_database_size(current_database())::float8 as bytes");
  return row?.bytes ?? 0;
}

/**
 * Finds the open snapshots. Any session that holds one, idle or not, keeps every row changed since then from being vacuumed.
 * Sessions of other users are visible only to members of `pg_read_all_stats`.
 */
const oldestSnapshotText = `select coalesce(extract(epoch from clock_timestamp() - min(since)), 0)::float8 as seconds from (
    select xact_start as since from pg_stat_activity
    where datname = current_database() and backend_type = 'client backend'
      and (backend_xmin is not null or backend_xid is not null)
    union all
    select prepared from pg_prepared_xacts where database = current_database()) held`;

/** Age of the oldest transaction of this database that holds a snapshot. */
export async function oldestSnapshotSeconds({ read }: Pool): Promise<number> {
  const [row] = await read<{ seconds: number }>(oldestSnapshotText);
  return Math.max(0, row?.seconds ?? 0);
}
