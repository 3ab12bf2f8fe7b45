import initial from "../../../drizzle/postgres/migrations/0000_initial.sql" with { type: "text" };
import eventTypes from "../../../drizzle/postgres/migrations/0001_event_types.sql" with { type: "text" };
import failureCodes from "../../../drizzle/postgres/migrations/0002_failure_codes.sql" with { type: "text" };
import replayFilters from "../../../drizzle/postgres/migrations/0003_replay_filters.sql" with { type: "text" };
import cancelledRuns from "../../../drizzle/postgres/migrations/0004_cancelled_runs.sql" with { type: "text" };
import traces from "../../../drizzle/postgres/migrations/0005_traces.sql" with { type: "text" };
import failureGroups from "../../../drizzle/postgres/migrations/0006_failure_groups.sql" with { type: "text" };
import eventTypePatterns from "../../../drizzle/postgres/migrations/0007_event_type_patterns.sql" with { type: "text" };
import answerHeads from "../../../drizzle/postgres/migrations/0008_answer_heads.sql" with { type: "text" };
import webhookThrottle from "../../../drizzle/postgres/migrations/0009_webhook_throttle.sql" with { type: "text" };
import disabledWebhooks from "../../../drizzle/postgres/migrations/0010_disabled_webhooks.sql" with { type: "text" };
import webhookHeaders from "../../../drizzle/postgres/migrations/0011_webhook_headers.sql" with { type: "text" };
import ordered from "../../../drizzle/postgres/migrations/0012_ordered.sql" with { type: "text" };
import listsOfReplays from "../../../drizzle/postgres/migrations/0013_lists_of_replays.sql" with { type: "text" };
import ownLimits from "../../../drizzle/postgres/migrations/0014_own_limits.sql" with { type: "text" };
import attemptDurations from "../../../drizzle/postgres/migrations/0015_attempt_durations.sql" with { type: "text" };
import webhookStats from "../../../drizzle/postgres/migrations/0016_webhook_stats.sql" with { type: "text" };
import audit from "../../../drizzle/postgres/migrations/0017_audit.sql" with { type: "text" };
import keptOtherwise from "../../../drizzle/postgres/migrations/0018_kept_otherwise.sql" with { type: "text" };
import mail from "../../../drizzle/postgres/migrations/0019_mail.sql" with { type: "text" };
import payloadsErased from "../../../drizzle/postgres/migrations/0020_payloads_erased.sql" with { type: "text" };
import nodeKeys from "../../../drizzle/postgres/migrations/0021_node_keys.sql" with { type: "text" };
import { StartupError } from "../../domain/errors.ts";
import type { Clock } from "../../lib/clock.ts";
import { messageOf } from "../../lib/error-message.ts";
import { sqlStateOf } from "./faults.ts";
import { createPool, type Pool } from "./pool.ts";

export interface Migration {
  readonly name: string;
  readonly sql: string;
}

/** Every migration, oldest first, as drizzle-kit generated it, with what it has no words for added by hand. */
export const migrations: readonly Migration[] = [
  { name: "0000_initial", sql: initial },
  { name: "0001_event_types", sql: eventTypes },
  { name: "0002_failure_codes", sql: failureCodes },
  { name: "0003_replay_filters", sql: replayFilters },
  { name: "0004_cancelled_runs", sql: cancelledRuns },
  { name: "0005_traces", sql: traces },
  { name: "0006_failure_groups", sql: failureGroups },
  { name: "0007_event_type_patterns", sql: eventTypePatterns },
  { name: "0008_answer_heads", sql: answerHeads },
  { name: "0009_webhook_throttle", sql: webhookThrottle },
  { name: "0010_disabled_webhooks", sql: disabledWebhooks },
  { name: "0011_webhook_headers", sql: webhookHeaders },
  { name: "0012_ordered", sql: ordered },
  { name: "0013_lists_of_replays", sql: listsOfReplays },
  { name: "0014_own_limits", sql: ownLimits },
  { name: "0015_attempt_durations", sql: attemptDurations },
  { name: "0016_webhook_stats", sql: webhookStats },
  { name: "0017_audit", sql: audit },
  { name: "0018_kept_otherwise", sql: keptOtherwise },
  { name: "0019_mail", sql: mail },
  { name: "0020_payloads_erased", sql: payloadsErased },
  { name: "0021_node_keys", sql: nodeKeys },
];

/** The statements of a migration as drizzle-kit marks them. */
const statementsOf = (sql: string): string[] =>
  sql
    .split("--> statement-breakpoint")
    .map((statement) => statement.trim())
    .filter((statement) => statement !== "");

/** What two nodes that make the same table at once hear: "already exists", of the table, of its type, or in the catalogue. */
const madeByAnother: ReadonlySet<string | undefined> = new Set(["42P07", "42710", "23505"]);

export interface MigrateOptions {
  url: string;
  clock: Pick<Clock, "after">;
  list?: readonly Migration[];
}

/**
 * Brings the schema to that of this program, forward only, each migration in a transaction of its own. Nodes that start at
 * once take turns by the lock of the table that counts them; whoever comes second finds nothing to do.
 *
 * A migration only adds: nodes of the release before run beside this one until they are replaced.
 *
 * @throws StartupError when the database has seen more migrations than this program knows, or one fails
 */
export async function migrate({ url, clock, list = migrations }: MigrateOptions): Promise<void> {
  // As long as it takes: an index of many rows, or another node that makes it.
  const pool = createPool({ url, clock, size: 1, statementTimeoutMs: 0 });
  try {
    await makeTable(pool);
    while (await migrateOnce(pool, list));
  } finally {
    await pool.close();
  }
}

/**
 * Whether a database that others use needs no migration, and is of no newer program either. Nothing is changed.
 * @throws as a read of the pool does
 */
export async function isOfThisSchema({ url, clock }: Pick<MigrateOptions, "url" | "clock">): Promise<boolean> {
  const pool = createPool({ url, clock, size: 1 });
  try {
    const [row] = await pool.read<{ version: number }>("select count(*)::int as version from migration");
    return row?.version === migrations.length;
  } finally {
    await pool.close();
  }
}

async function makeTable(pool: Pool): Promise<void> {
  try {
    await pool.write(
      `create table if not exists migration
        (version int primary key, name text not null, applied_at timestamptz not null default clock_timestamp())`,
    );
  } catch (error) {
    if (!madeByAnother.has(sqlStateOf(error))) throw error;
  }
}

/** @returns whether there was one to run */
function migrateOnce(pool: Pool, list: readonly Migration[]): Promise<boolean> {
  return pool.transact(async (tx) => {
    await tx.run("lock table migration in access exclusive mode");
    const [row] = await tx.run<{ version: number }>("select count(*)::int as version from migration");
    const done = row?.version ?? 0;
    if (done > list.length) throw newerSchema(done, list.length);
    const next = list[done];
    if (next === undefined) return false;
    try {
      for (const statement of statementsOf(next.sql)) await tx.run(statement);
    } catch (error) {
      if (sqlStateOf(error) === undefined) throw error;
      throw new StartupError(
        `The database could not be upgraded (${next.name}: ${messageOf(error)}); ` +
          "it is unchanged. Try: run the earlier version, and report this message.",
      );
    }
    await tx.run("insert into migration (version, name) values ($1, $2)", [done + 1, next.name]);
    return true;
  });
}

const newerSchema = (found: number, known: number) =>
  new StartupError(
    `The database was written by a newer Postrider (schema ${found}, this program knows ${known}). ` +
      "Try: run that version or a later one.",
  );
