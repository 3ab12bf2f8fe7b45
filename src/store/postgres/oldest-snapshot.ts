import type { Pool } from "./pool.ts";

/**
 * Whoever holds one, idle or not, keeps every row that was changed since from being vacuumed. Sessions of other users are only
 * seen by members of `pg_read_all_stats`.
 */
const text = `select coalesce(extract(epoch from clock_timestamp() - min(since)), 0)::float8 as seconds from (
    select xact_start as since from pg_stat_activity
    where datname = current_database() and backend_type = 'client backend'
      and (backend_xmin is not null or backend_xid is not null)
    union all
    select prepared from pg_prepared_xacts where database = current_database()) held`;

/** Age of the oldest transaction of this database that sees it as it was. */
export async function oldestSnapshotSeconds(pool: Pool): Promise<number> {
  const [row] = await pool.read<{ seconds: number }>(text);
  return Math.max(0, row?.seconds ?? 0);
}
