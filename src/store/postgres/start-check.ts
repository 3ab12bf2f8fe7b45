import { StartupError, shuttingDown } from "../../domain/errors.ts";
import type { Clock } from "../../lib/clock.ts";
import { faultOf, isTlsBroken, sqlStateOf } from "./faults.ts";
import { createPool, statementTimeoutMs } from "./pool.ts";
import { whilePassing } from "./until-answered.ts";
import { addressOf, connectionNotTaken, databaseSetting, isStarting, unusable } from "./unusable.ts";

/** What a server reports about itself and about the connection to it. */
export interface ServerFacts {
  /** As `server_version_num`: 170010 is 17.10. */
  readonly version: number;
  readonly inRecovery: boolean;
  readonly readOnly: boolean;
  readonly fsync: boolean;
  /** With anything but `off`, a commit is on this server's disk when it is answered. */
  readonly synchronousCommit: string;
  readonly encoding: string;
  /** How it sends bytes as text; the client only reads `hex`. */
  readonly byteaOutput: string;
  /** Whether settings made on a connection persist while others are in a transaction. */
  readonly settingsLast: boolean;
  /** Whether the deadline that the client requests when it connects is in force. */
  readonly deadlineHolds: boolean;
  /** Names as they are written in SQL. */
  readonly database: string;
  readonly user: string;
  /** Where new tables go; null: nowhere. */
  readonly schema: string | null;
  readonly mayCreateTables: boolean;
  /** Another user, whose rights this one does not have, and to whom the tables of a Postrider belong. */
  readonly otherOwner: string | null;
}

const oldestVersion = 150_000;

/** What makes such a server unreliable for the program, and what to do; null: nothing. */
export function problemOf(
  facts: ServerFacts,
  durability: "required" | "waived" = "required",
  setting: string = databaseSetting,
): string | null {
  const isDurable = durability === "waived" || facts.fsync;
  if (facts.version < oldestVersion) {
    const major = Math.floor(facts.version / 10_000);
    return `is PostgreSQL ${major}, and 15 is the oldest that holds what is needed. Try: upgrade it.`;
  }
  if (facts.inRecovery) return `is a standby, which is read-only. Try: name the primary in ${setting}.`;
  if (facts.readOnly) {
    return "is read-only. Try: set default_transaction_read_only = off for this database and user.";
  }
  if (!isDurable) {
    return "has fsync = off, so a crash loses what was acknowledged. Try: set fsync = on in postgresql.conf.";
  }
  if (durability === "required" && facts.synchronousCommit === "off") {
    return "has synchronous_commit = off, so a crash loses what was acknowledged. Try: set it to on for this database.";
  }
  if (facts.encoding !== "UTF8") {
    return `is encoded in ${facts.encoding}, and has to be in UTF8. Try: create database postrider encoding 'UTF8' template template0.`;
  }
  if (facts.byteaOutput !== "hex") {
    return `has bytea_output = ${facts.byteaOutput}, which cannot be read. Try: set bytea_output = hex for this database and user.`;
  }
  const { database, user, schema, mayCreateTables, otherOwner } = facts;
  if (schema === null) {
    const remedy = `alter database ${database} reset search_path, or create that schema, in psql as its administrator`;
    return `has no place for tables: the search_path of the user ${user} names no schema that they may use. Try: ${remedy}.`;
  }
  if (!mayCreateTables) {
    const remedy =
      schema === "public"
        ? `alter database ${database} owner to ${user}`
        : `grant create on schema ${schema} to ${user}`;
    return `does not let the user ${user} create tables. Try: ${remedy}, in psql as its administrator.`;
  }
  if (otherOwner !== null) {
    return `has tables of the user ${otherOwner}, and ${user} may not use them. Try: connect as ${otherOwner}.`;
  }
  if (!facts.settingsLast) {
    return "is behind a pooler that shares connections by transaction. Try: connect directly, or pool by session.";
  }
  if (!facts.deadlineHolds) {
    return "does not take statement_timeout from a connection. Try: connect directly, or let the pooler pass it on.";
  }
  return null;
}

export interface StartCheckOptions {
  url: string;
  clock: Clock;
  /** `waived`: fsync and synchronous_commit may be off. Only tests do without what these promise. @default "required" */
  durability?: "required" | "waived";
  /** The name of the setting that the URL came from, for whoever has to correct it. @default "POSTRIDER_DATABASE_URL" */
  setting?: string;
  /** Called with what the server answers while it is not ready yet. */
  onFailure?(error: unknown): void;
  /** Ends the wait for a server that is not ready yet. */
  signal?: AbortSignal;
}

/**
 * @throws StartupError when the server cannot be reached or is not reliable, with what to do; `shutting_down` when the signal
 * came first
 */
export async function checkServer(options: StartCheckOptions): Promise<void> {
  const { url, clock, durability, setting = databaseSetting, onFailure = () => {}, signal } = options;
  const server = addressOf(url, setting);
  let facts: ServerFacts;
  try {
    facts = await whilePassing({ clock, onFailure, ...(signal && { signal }) }, isPassing, () =>
      factsOf({ url, clock }),
    );
  } catch (error) {
    throw signal?.aborted ? shuttingDown() : await unusable(error, url, setting);
  }
  const problem = problemOf(facts, durability, setting);
  if (problem !== null) throw new StartupError(`The database at ${server} ${problem}`);
}

/**
 * Uses two connections, so that a pooler that shares connections by transaction gives itself away.
 *
 * @throws the driver's own error, which says more about a connection than the pool's
 */
async function factsOf({ url, clock }: { url: string; clock: Pick<Clock, "after"> }): Promise<ServerFacts> {
  let cause: unknown;
  const onFailure = (error: unknown) => {
    cause ??= error;
  };
  const one = createPool({ url, clock, onFailure, size: 1 });
  const other = createPool({ url, clock, onFailure, size: 1 });
  try {
    const [facts] = await one.read<Omit<ServerFacts, "settingsLast">>(
      `select current_setting('server_version_num')::int as "version",
              pg_is_in_recovery() as "inRecovery",
              current_setting('transaction_read_only')::bool as "readOnly",
              current_setting('fsync')::bool as "fsync",
              current_setting('synchronous_commit') as "synchronousCommit",
              current_setting('server_encoding') as "encoding",
              current_setting('bytea_output') as "byteaOutput",
              extract(epoch from current_setting('statement_timeout')::interval)::float8 * 1000 = $1::float8
                as "deadlineHolds",
              quote_ident(current_database()) as "database",
              quote_ident(current_user) as "user",
              quote_ident(current_schema()) as "schema",
              coalesce(has_schema_privilege(current_schema(), 'create'), false) as "mayCreateTables",
              (select relowner::regrole::text from pg_class
                where oid = to_regclass('migration') and not pg_has_role(relowner, 'usage')) as "otherOwner",
              set_config('postrider.start_check', 'set', false)`,
      [statementTimeoutMs],
    );
    const settingsLast = await other.transact(async (tx) => {
      await tx.run("select 1");
      const [row] = await one.read<{ found: string | null }>(
        "select current_setting('postrider.start_check', true) as found",
      );
      return row?.found === "set";
    });
    if (!facts) throw new Error("The database answered without a row");
    return { ...facts, settingsLast };
  } catch (error) {
    throw cause ?? error;
  } finally {
    await Promise.all([one.close(), other.close()]);
  }
}

const isPassing = (error: unknown) =>
  isStarting(error) || (faultOf(error) === "lost" && sqlStateOf(error) !== connectionNotTaken && !isTlsBroken(error));
