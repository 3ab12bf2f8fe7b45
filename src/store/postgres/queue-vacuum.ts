import type { Clock } from "../../lib/clock.ts";
import type { Pool } from "./pool.ts";

/**
 * Vacuums the queue: autovacuum comes once a minute, and at full load the queue is slowed down by the dead rows it has to walk
 * past until then. Of a long queue this takes minutes, and nothing waits for it: not the janitor's other work, and not a stop.
 */
export interface QueueVacuum {
  /** Begins if it is time, and enough rows are dead. @throws as a read of the pool does */
  look(): Promise<void>;
  /** Breaks off what is in progress. */
  close(): Promise<void>;
}

export interface QueueVacuumOptions {
  pool: Pick<Pool, "read">;
  /** A connection on which a statement may take minutes; it is closed afterwards. */
  openPool(): Pick<Pool, "read" | "close">;
  /** The clock for pauses. */
  clock: Pick<Clock, "monotonicMs">;
  onFailure(error: unknown): void;
}

const everyMs = 10_000;
const leastDeadRows = 1_000;

/** Skipped while autovacuum is at it. */
const vacuumText = "vacuum (index_cleanup on, truncate off, skip_locked) pending";

const deadRowsText = `select n_dead_tup::float8 as dead from pg_stat_user_tables where relid = 'pending'::regclass`;

export function createQueueVacuum({ pool, openPool, clock, onFailure }: QueueVacuumOptions): QueueVacuum {
  let lookedAt = Number.NEGATIVE_INFINITY;
  let underWay: { readonly patient: Pick<Pool, "close">; readonly ended: Promise<void> } | null = null;
  let isClosed = false;

  async function vacuum(patient: Pick<Pool, "read" | "close">): Promise<void> {
    try {
      await patient.read(vacuumText);
    } catch (error) {
      if (!isClosed) onFailure(error);
    }
    await patient.close();
    underWay = null;
  }

  return {
    async look() {
      const now = clock.monotonicMs();
      if (underWay !== null || now - lookedAt < everyMs) return;
      lookedAt = now;
      const [found] = await pool.read<{ dead: number }>(deadRowsText);
      if (isClosed || (found?.dead ?? 0) < leastDeadRows) return;
      const patient = openPool();
      underWay = { patient, ended: vacuum(patient) };
    },
    async close() {
      isClosed = true;
      await underWay?.patient.close();
      await underWay?.ended;
    },
  };
}
