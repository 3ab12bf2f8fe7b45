import { afterEach, describe } from "bun:test";
import { createHash } from "node:crypto";
import { systemClock } from "../../src/lib/clock.ts";
import { newToken } from "../../src/lib/id.ts";
import { migrate, migrations } from "../../src/store/postgres/migrations.ts";
import { makePartitions, partitionAt } from "../../src/store/postgres/partitions.ts";
import { createPool, type Pool, type PoolOptions } from "../../src/store/postgres/pool.ts";
import { administer, hasOwnServer, hasServer, sharedServer } from "./postgres-server.ts";

/** Skipped only where no PostgreSQL is available; where its package is merely not installed, the tests fail. */
export const describeWithPostgres = hasServer ? describe : describe.skip;
/** For tests that stop a server. */
export const describeWithOwnServer = hasOwnServer ? describe : describe.skip;

/** Each is made once, by its name. */
const templates = new Map<string, Promise<string>>();

/**
 * A database to be copied in 20 ms. It is named after its contents, because it stays on a given server; until it is complete it
 * has another name, so that another process does not copy half of it.
 */
async function makeTemplate(name: string, fill: (url: string) => Promise<void>): Promise<string> {
  const server = await sharedServer();
  const find = `select 1 from pg_database where datname = '${name}'`;
  if ((await administer(server, find)).length > 0) return name;
  const unfinished = `postrider_unfinished_${newToken(60)}`;
  await administer(server, `create database ${unfinished}`);
  await fill(server.url(unfinished));
  await administer(server, `alter database ${unfinished} rename to ${name}`).catch(async (error: unknown) => {
    await administer(server, `drop database ${unfinished}`);
    if ((await administer(server, find)).length === 0) throw error;
  });
  return name;
}

function templateNamed(name: string, fill: (url: string) => Promise<void>): Promise<string> {
  const template = templates.get(name) ?? makeTemplate(name, fill);
  templates.set(name, template);
  return template;
}

function schemaDigest(): string {
  const digest = createHash("sha256").update(migrations.map(({ sql }) => sql).join("\n"));
  return digest.digest("hex").slice(0, 16);
}

const migrateAt = (url: string) => migrate({ url, clock: systemClock });

export interface TestDatabase {
  /** Its connection URL. */
  readonly url: string;
  remove(): Promise<void>;
}

/** @param template the database to copy; without one it is empty */
async function createDatabase(template?: string): Promise<TestDatabase> {
  const server = await sharedServer();
  const name = `postrider_test_${newToken(60)}`;
  const copied = template === undefined ? "" : ` template ${template} strategy file_copy`;
  await administer(server, `create database ${name}${copied}`);
  return {
    url: server.url(name),
    remove: async () => void (await administer(server, `drop database ${name} with (force)`)),
  };
}

/** A database with the current schema. */
export async function createMigratedDatabase(): Promise<TestDatabase> {
  return createDatabase(await templateNamed(`postrider_template_${schemaDigest()}`, migrateAt));
}

/**
 * A database that a node of that time has started on before: it has the months that the first start would otherwise make, which
 * take a third of the time of a small test.
 */
export async function createStartedDatabase(atMs: number): Promise<TestDatabase> {
  const { name: month } = partitionAt("month", atMs);
  const template = templateNamed(`postrider_template_${schemaDigest()}_${month}`, async (url) => {
    await migrateAt(url);
    const pool = createPool({ url, size: 1, clock: systemClock });
    await makePartitions(pool, "month", atMs);
    await pool.close();
  });
  return createDatabase(await template);
}

/** A copy of another database, to which nobody may be connected. */
export const copyDatabase = ({ url }: TestDatabase): Promise<TestDatabase> =>
  createDatabase(new URL(url).pathname.slice(1));

/** Databases for a single test, removed after it. */
export function usePostgres() {
  const cleanUps: (() => Promise<void> | void)[] = [];
  afterEach(async () => {
    for (const cleanUp of cleanUps.splice(0)) await cleanUp();
  });

  async function use(created: Promise<TestDatabase>): Promise<string> {
    const { url, remove } = await created;
    cleanUps.push(remove);
    return url;
  }

  return {
    /** An empty database. @returns its connection URL */
    database: () => use(createDatabase()),
    /** A database with the current schema. @returns its connection URL */
    migrated: () => use(createMigratedDatabase()),
    /** Connections to one of them, closed at the end of the test. */
    pool(url: string, options: Partial<PoolOptions> = {}): Pool {
      const pool = createPool({ url, size: 2, clock: systemClock, ...options });
      cleanUps.unshift(() => pool.close());
      return pool;
    },
    /** Runs before the databases are removed. */
    cleanUpFirst: (cleanUp: () => Promise<void> | void) => void cleanUps.unshift(cleanUp),
  };
}
