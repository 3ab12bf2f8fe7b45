import type { Database } from "bun:sqlite";
import initial from "../../../drizzle/sqlite/migrations/0000_initial.sql" with { type: "text" };
import payments from "../../../drizzle/sqlite/migrations/0001_payments.sql" with { type: "text" };
import inbox from "../../../drizzle/sqlite/migrations/0002_inbox.sql" with { type: "text" };
import packedLatency from "../../../drizzle/sqlite/migrations/0003_packed_latency.sql" with { type: "text" };
import registeredWebhooks from "../../../drizzle/sqlite/migrations/0004_registered_webhooks.sql" with { type: "text" };
import leanEvents from "../../../drizzle/sqlite/migrations/0005_lean_events.sql" with { type: "text" };
import secrets from "../../../drizzle/sqlite/migrations/0006_secrets.sql" with { type: "text" };
import replays from "../../../drizzle/sqlite/migrations/0007_replays.sql" with { type: "text" };
import { StartupError } from "../../errors.ts";

/** Every migration, oldest first, as drizzle-kit generated it; what carries rows over is written by hand. `pragma user_version` counts those that have run. */
export const migrations: readonly { name: string; sql: string }[] = [
  { name: "0000_initial", sql: initial },
  { name: "0001_payments", sql: payments },
  { name: "0002_inbox", sql: inbox },
  { name: "0003_packed_latency", sql: packedLatency },
  { name: "0004_registered_webhooks", sql: registeredWebhooks },
  { name: "0005_lean_events", sql: leanEvents },
  { name: "0006_secrets", sql: secrets },
  { name: "0007_replays", sql: replays },
];

/** What drizzle-kit puts between two statements. */
const breakpoint = "--> statement-breakpoint";

/**
 * Brings the schema to that of this program, each migration in a transaction of its own, forward only.
 *
 * drizzle-kit rebuilds a table by copying it and dropping the old one, and switches foreign keys off for that; inside a
 * transaction SQLite ignores the switch, and `ON DELETE CASCADE` then empties the children. So they are off before the
 * transaction begins, and `foreign_key_check` must find nothing before it commits.
 *
 * @throws StartupError when the database has seen more migrations than this program knows.
 */
export function migrate(client: Database, list = migrations): void {
  const done = userVersion(client);
  if (done > list.length) {
    throw new StartupError(
      `The database was written by a newer Postrider (schema ${done}, this program knows ${list.length}). ` +
        "Try: run that version or a later one, or point POSTRIDER_DATA_DIR at a backup made before the upgrade.",
    );
  }
  if (done === list.length) return;
  client.run("pragma foreign_keys = off");
  try {
    for (const [index, migration] of list.entries()) {
      if (index >= done) apply(client, migration, index + 1);
    }
  } finally {
    client.run("pragma foreign_keys = on");
  }
}

function apply(client: Database, migration: { name: string; sql: string }, version: number): void {
  client.run("begin immediate");
  try {
    for (const statement of migration.sql.split(breakpoint)) {
      if (statement.trim() !== "") client.run(statement);
    }
    const orphans = client.query("pragma foreign_key_check").all();
    if (orphans.length > 0) throw new Error(`${orphans.length} rows would lose the row they belong to`);
    client.run(`pragma user_version = ${version}`);
    client.run("commit");
  } catch (error) {
    if (client.inTransaction) client.run("rollback");
    const reason = error instanceof Error ? error.message : String(error);
    throw new StartupError(
      `The database could not be upgraded (${migration.name}: ${reason}); it is unchanged. ` +
        "Try: free some disk space, or run the earlier version and report this message.",
    );
  }
}

function userVersion(client: Database): number {
  return client.query<{ user_version: number }, []>("pragma user_version").get()?.user_version ?? 0;
}
