import { afterEach, describe } from "bun:test";
import { createHash } from "node:crypto";
import { systemClock } from "../../src/lib/clock.ts";
import { newToken } from "../../src/lib/id.ts";
import { migrate, migrations } from "../../src/store/postgres/migrations.ts";
import { createPool, type Pool, type PoolOptions } from "../../src/store/postgres/pool.ts";
import { administer, hasOwnServer, hasServer, sharedServer } from "./postgres-server.ts";

/** Skipped only where there is no PostgreSQL to be had; where its package is not installed, its tests fail. */
export const describeWithPostgres = hasServer ? describe : describe.skip;
/** For tests that stop a server. */
export const describeWithOwnServer = hasOwnServer ? describe : describe.skip;

let template: Promise<string> | null = null;

/**
 * A database with the schema of today, to be copied in 20 ms. It is named for what is in it, as on a given server it stays;
 * until it is whole it has another name, so that another process does not copy half of it.
 */
async function makeTemplate(): Promise<string> {
  const server = await sharedServer();
  const digest = createHash("sha256").update(migrations.map(({ sql }) => sql).join("\n"));
  const name = `postrider_template_${digest.digest("hex").slice(0, 16)}`;
  const find = `select 1 from pg_database where datname = '${name}'`;
  if ((await administer(server, find)).length > 0) return name;
  const unfinished = `postrider_unfinished_${newToken(60)}`;
  await administer(server, `create database ${unfinished}`);
  await migrate({ url: server.url(unfinished), clock: systemClock });
  await administer(server, `alter database ${unfinished} rename to ${name}`).catch(async (error: unknown) => {
    await administer(server, `drop database ${unfinished}`);
    if ((await administer(server, find)).length === 0) throw error;
  });
  return name;
}

export interface TestDatabase {
  /** Its connection URL. */
  readonly url: string;
  remove(): Promise<void>;
}

/** @param template what it is a copy of; without one it is empty */
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

/** One with the schema of today. */
export async function createMigratedDatabase(): Promise<TestDatabase> {
  template ??= makeTemplate();
  return createDatabase(await template);
}

/** One with all that another has, to which nobody is connected. */
export const copyDatabase = ({ url }: TestDatabase): Promise<TestDatabase> =>
  createDatabase(new URL(url).pathname.slice(1));

/** Databases of a test's own, which are gone after it. */
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
    /** One with the schema of today. @returns its connection URL */
    migrated: () => use(createMigratedDatabase()),
    /** Connections to one of them, which end with the test. */
    pool(url: string, options: Partial<PoolOptions> = {}): Pool {
      const pool = createPool({ url, size: 2, clock: systemClock, ...options });
      cleanUps.unshift(() => pool.close());
      return pool;
    },
    /** Before the databases are removed. */
    cleanUpFirst: (cleanUp: () => Promise<void> | void) => void cleanUps.unshift(cleanUp),
  };
}
