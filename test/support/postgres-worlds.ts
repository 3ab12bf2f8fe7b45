import { systemClock } from "../../src/lib/clock.ts";
import { createPool, type Pool } from "../../src/store/postgres/pool.ts";
import { openPostgresStore } from "../../src/store/postgres/store.ts";
import { createFakeClock } from "./fake-clock.ts";
import { createStartedDatabase } from "./postgres.ts";
import { createWorld, type World } from "./store-factory.ts";

export interface PostgresWorlds {
  /** Each world is a separate node. */
  readonly worlds: readonly World[];
  /** For what none of the nodes reports. */
  readonly pool: Pool;
  end(): Promise<void>;
}

/**
 * Several nodes on one database, each with its own clock, all starting at the same time. A tenant is known to all of
 * them.
 */
export async function createPostgresWorlds(count: number): Promise<PostgresWorlds> {
  const { url, remove } = await createStartedDatabase(createFakeClock().now());
  const pool = createPool({ url, size: 2, clock: systemClock });
  const worlds: World[] = [];
  for (let i = 0; i < count; i++) {
    const world = await createWorld({
      name: "PostgreSQL",
      async open(options) {
        const open = () => openPostgresStore({ url, durability: "waived", ...options });
        return {
          ...(await open()),
          reopen: open,
          count: async () => ({}),
          edit: async () => {},
          remove: async () => {},
        };
      },
    });
    worlds.push(world);
  }
  return {
    worlds,
    pool,
    async end() {
      for (const world of worlds) await world.end();
      await pool.close();
      await remove();
    },
  };
}
