import type { Database } from "bun:sqlite";
import initial from "../../../drizzle/sqlite/migrations/0000_initial.sql" with { type: "text" };
import payments from "../../../drizzle/sqlite/migrations/0001_payments.sql" with { type: "text" };
import inbox from "../../../drizzle/sqlite/migrations/0002_inbox.sql" with { type: "text" };
import packedLatency from "../../../drizzle/sqlite/migrations/0003_packed_latency.sql" with { type: "text" };
import registeredWebhooks from "../../../drizzle/sqlite/migrations/0004_registered_webhooks.sql" with { type: "text" };
import leanEvents from "../../../drizzle/sqlite/migrations/0005_lean_events.sql" with { type: "text" };
import secrets from "../../../drizzle/sqlite/migrations/0006_secrets.sql" with { type: "text" };
import answers from "../../../drizzle/sqlite/migrations/0007_answers.sql" with { type: "text" };
import replays from "../../../drizzle/sqlite/migrations/0008_replays.sql" with { type: "text" };
import reasonCodes from "../../../drizzle/sqlite/migrations/0009_reason_codes.sql" with { type: "text" };
import eventTypes from "../../../drizzle/sqlite/migrations/0010_event_types.sql" with { type: "text" };
import failureCodes from "../../../drizzle/sqlite/migrations/0011_failure_codes.sql" with { type: "text" };
import replayFilters from "../../../drizzle/sqlite/migrations/0012_replay_filters.sql" with { type: "text" };
import cancelledRuns from "../../../drizzle/sqlite/migrations/0013_cancelled_runs.sql" with { type: "text" };
import traces from "../../../drizzle/sqlite/migrations/0014_traces.sql" with { type: "text" };
import failureGroups from "../../../drizzle/sqlite/migrations/0015_failure_groups.sql" with { type: "text" };
import eventTypePatterns from "../../../drizzle/sqlite/migrations/0016_event_type_patterns.sql" with { type: "text" };
import answerHeads from "../../../drizzle/sqlite/migrations/0017_answer_heads.sql" with { type: "text" };
import webhookThrottle from "../../../drizzle/sqlite/migrations/0018_webhook_throttle.sql" with { type: "text" };
import disabledWebhooks from "../../../drizzle/sqlite/migrations/0019_disabled_webhooks.sql" with { type: "text" };
import webhookHeaders from "../../../drizzle/sqlite/migrations/0020_webhook_headers.sql" with { type: "text" };
import ordered from "../../../drizzle/sqlite/migrations/0021_ordered.sql" with { type: "text" };
import listsOfReplays from "../../../drizzle/sqlite/migrations/0022_lists_of_replays.sql" with { type: "text" };
import ownLimits from "../../../drizzle/sqlite/migrations/0023_own_limits.sql" with { type: "text" };
import attemptDurations from "../../../drizzle/sqlite/migrations/0024_attempt_durations.sql" with { type: "text" };
import webhookStats from "../../../drizzle/sqlite/migrations/0025_webhook_stats.sql" with { type: "text" };
import audit from "../../../drizzle/sqlite/migrations/0026_audit.sql" with { type: "text" };
import keptOtherwise from "../../../drizzle/sqlite/migrations/0027_kept_otherwise.sql" with { type: "text" };
import mail from "../../../drizzle/sqlite/migrations/0028_mail.sql" with { type: "text" };
import payloadsErased from "../../../drizzle/sqlite/migrations/0029_payloads_erased.sql" with { type: "text" };
import filed from "../../../drizzle/sqlite/migrations/0030_filed.sql" with { type: "text" };
import checkedState from "../../../drizzle/sqlite/migrations/0031_checked_state.sql" with { type: "text" };
import { StartupError } from "../../domain/errors.ts";
import { messageOf } from "../../lib/error-message.ts";
import { type MigrationWatch, migrateInSteps, statementsOf, unwatched } from "./migration-steps.ts";
import { newerDatabase } from "./written-by.ts";

export interface Migration {
  readonly name: string;
  readonly sql: string;
  /**
   * Tables that may be large and whose rows or indexes it rebuilds, with the word for their rows. That is done in steps
   * (`migration-steps.ts`) and not in one transaction.
   */
  readonly moves?: Readonly<Record<string, string>>;
}

/**
 * Every migration, oldest first, as drizzle-kit generated it; the parts that carry rows over are written by hand.
 * `pragma user_version` counts those that have run.
 */
export const migrations: readonly Migration[] = [
  { name: "0000_initial", sql: initial },
  { name: "0001_payments", sql: payments },
  { name: "0002_inbox", sql: inbox },
  { name: "0003_packed_latency", sql: packedLatency },
  { name: "0004_registered_webhooks", sql: registeredWebhooks },
  {
    name: "0005_lean_events",
    sql: leanEvents,
    moves: { attempt: "attempts", delivery: "deliveries", event: "events" },
  },
  { name: "0006_secrets", sql: secrets },
  { name: "0007_answers", sql: answers },
  { name: "0008_replays", sql: replays },
  { name: "0009_reason_codes", sql: reasonCodes },
  { name: "0010_event_types", sql: eventTypes, moves: { event: "events" } },
  { name: "0011_failure_codes", sql: failureCodes },
  { name: "0012_replay_filters", sql: replayFilters },
  { name: "0013_cancelled_runs", sql: cancelledRuns },
  { name: "0014_traces", sql: traces },
  { name: "0015_failure_groups", sql: failureGroups },
  { name: "0016_event_type_patterns", sql: eventTypePatterns },
  { name: "0017_answer_heads", sql: answerHeads },
  { name: "0018_webhook_throttle", sql: webhookThrottle },
  { name: "0019_disabled_webhooks", sql: disabledWebhooks },
  { name: "0020_webhook_headers", sql: webhookHeaders },
  { name: "0021_ordered", sql: ordered },
  { name: "0022_lists_of_replays", sql: listsOfReplays },
  { name: "0023_own_limits", sql: ownLimits },
  { name: "0024_attempt_durations", sql: attemptDurations },
  { name: "0025_webhook_stats", sql: webhookStats },
  { name: "0026_audit", sql: audit },
  { name: "0027_kept_otherwise", sql: keptOtherwise },
  { name: "0028_mail", sql: mail },
  { name: "0029_payloads_erased", sql: payloadsErased },
  { name: "0030_filed", sql: filed, moves: { delivery: "deliveries" } },
  { name: "0031_checked_state", sql: checkedState },
];

/**
 * What `pragma user_version` says while a migration runs in steps: the upper half is the schema that it leads to, the lower
 * half the number of statements done. To every program this looks like a newer schema than its own, so earlier ones refuse it.
 */
const halfway = 2 ** 16;

/** Where a database stands: how many migrations have run, and how many statements of the next one. */
export interface Standing {
  readonly schema: number;
  readonly statements: number;
}

export function standingOf(client: Database): Standing {
  const version = client.query<{ user_version: number }, []>("pragma user_version").get()?.user_version ?? 0;
  if (version < halfway) return { schema: version, statements: 0 };
  return { schema: Math.floor(version / halfway) - 1, statements: version % halfway };
}

/** The database is not empty, and an upgrade to the current schema is needed or has begun. */
export const isEarlier = ({ schema, statements }: Standing): boolean =>
  schema < migrations.length && schema + statements > 0;

/**
 * Upgrades the schema to that of this program, forward only: each migration in its own transaction, or in steps where a lot
 * has to be carried over.
 *
 * drizzle-kit rebuilds a table by copying it and dropping the old one, and switches foreign keys off for that; inside a
 * transaction SQLite ignores the switch, and `ON DELETE CASCADE` then empties the children. So foreign keys are switched off
 * before the transaction begins, and before it commits no row may have lost its parent.
 *
 * @returns false when the watcher stopped it; the next call continues
 * @throws StartupError when the database has seen more migrations than this program knows.
 */
export function migrate(
  client: Database,
  list: readonly Migration[] = migrations,
  watch: MigrationWatch = unwatched,
): boolean {
  const { schema, statements } = standingOf(client);
  const known = statements > 0 ? schema + 1 : schema;
  if (known > list.length) {
    throw newerDatabase(client, { found: known, known: list.length });
  }
  if (schema === list.length) return true;
  client.run("pragma foreign_keys = off");
  try {
    for (const [index, migration] of list.entries()) {
      if (index < schema) continue;
      if (watch.isStopped()) return false;
      watch.progress({ what: migration.name, done: null, total: null, secondsLeft: null });
      if (!apply(client, migration, index + 1, index === schema ? statements : 0, watch)) return false;
    }
    return true;
  } finally {
    client.run("pragma foreign_keys = on");
  }
}

function apply(
  client: Database,
  migration: Migration,
  version: number,
  statementsDone: number,
  watch: MigrationWatch,
): boolean {
  const moved = Object.keys(migration.moves ?? {});
  const inSteps = statementsDone > 0 || moved.some((table) => !isEmpty(client, table));
  try {
    if (inSteps) {
      const marks = { at: (done: number) => version * halfway + done, end: version };
      return migrateInSteps({
        client,
        statements: statementsOf(migration.sql),
        statementsDone,
        marks,
        watch,
        ...migration,
      });
    }
    applyAtOnce(client, migration, version);
    return true;
  } catch (error) {
    if (client.inTransaction) client.run("rollback");
    const reason = messageOf(error);
    const state = inSteps ? "nothing is lost, and the next start goes on with it" : "it is unchanged";
    throw new StartupError(
      `The database could not be upgraded (${migration.name}: ${reason}); ${state}. ` +
        `Try: free some disk space, or ${inSteps ? "" : "run the earlier version and "}report this message.`,
    );
  }
}

function applyAtOnce(client: Database, { sql }: Migration, version: number): void {
  client.run("begin immediate");
  for (const statement of statementsOf(sql)) client.run(statement);
  const orphans = orphansOf(client, sql);
  if (orphans > 0) throw new Error(`${orphans} rows would lose the row they belong to`);
  client.run(`pragma user_version = ${version}`);
  client.run("commit");
}

/** Rows whose parent is missing, in the rebuilt tables and their children: rows of other tables have kept their parents. */
function orphansOf(client: Database, sql: string): number {
  const rebuilt = [...sql.matchAll(/\bDROP TABLE `?(\w+)/gi)].map(([, table]) => table ?? "");
  const touched = client.query<{ name: string }, [string]>(
    `select distinct t.name from sqlite_schema t left join pragma_foreign_key_list(t.name) f
      where t.type = 'table' and (t.name = ?1 collate nocase or f."table" = ?1 collate nocase)`,
  );
  const tables = new Set(rebuilt.flatMap((table) => touched.all(table).map(({ name }) => name)));
  return [...tables].reduce(
    (sum, table) => sum + client.query(`pragma foreign_key_check(\`${table}\`)`).all().length,
    0,
  );
}

const isEmpty = (client: Database, table: string) => client.query(`select 1 from \`${table}\` limit 1`).get() === null;
