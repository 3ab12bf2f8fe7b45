import type { Clock } from "../../lib/clock.ts";
import type { Pool } from "./pool.ts";

/** How much room the database takes, as it was a little while ago: the server looks at every file to say it. */
export interface DatabaseSize {
  /** Asks anew in the background when the answer is old. 0 until there is one. Never throws. */
  bytes(): number;
  /** Resolves when nothing is being asked. */
  close(): Promise<void>;
}

const ageMs = 60_000;

export function createDatabaseSize(options: {
  pool: Pool;
  clock: Pick<Clock, "monotonicMs">;
  onFailure(error: unknown): void;
}): DatabaseSize {
  const { pool, clock, onFailure } = options;
  let latest = 0;
  let askedAt = Number.NEGATIVE_INFINITY;
  let asking: Promise<void> = Promise.resolve();

  async function ask(): Promise<void> {
    try {
      const [row] = await pool.read<{ bytes: number }>("select pg_database_size(current_database())::float8 as bytes");
      latest = row?.bytes ?? latest;
    } catch (error) {
      onFailure(error);
    }
  }

  return {
    bytes() {
      if (clock.monotonicMs() - askedAt >= ageMs) {
        askedAt = clock.monotonicMs();
        asking = ask();
      }
      return latest;
    },
    close: () => asking,
  };
}
