import type { Clock } from "../../lib/clock.ts";
import type { DatabaseTime } from "../../lib/database-clock.ts";
import type { Pool } from "./pool.ts";

/** The database's time. @throws as a read of the pool does */
export async function askTime(pool: Pool, clock: Pick<Clock, "monotonicMs">): Promise<DatabaseTime> {
  const sentAt = clock.monotonicMs();
  const [row] = await pool.read<{ now: number }>(
    "select (extract(epoch from clock_timestamp()) * 1000)::float8 as now",
  );
  if (!row) throw new Error("The database did not say what time it is");
  return { now: row.now, sentAt, heardAt: clock.monotonicMs() };
}
