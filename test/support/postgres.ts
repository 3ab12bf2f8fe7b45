import { afterEach, describe } from "bun:test";
import { newToken } from "../../src/lib/id.ts";
import { administer, hasOwnServer, hasServer, type PostgresServer, sharedServer } from "./postgres-server.ts";

/** Skipped only where there is no PostgreSQL to be had; where its package is not installed, its tests fail. */
export const describeWithPostgres = hasServer ? describe : describe.skip;
/** For tests that stop a server. */
export const describeWithOwnServer = hasOwnServer ? describe : describe.skip;

/** Databases of a test's own, which are gone after it. */
export function usePostgres() {
  const cleanUps: (() => Promise<void> | void)[] = [];
  afterEach(async () => {
    for (const cleanUp of cleanUps.splice(0)) await cleanUp();
  });
  return {
    /** An empty database. @returns its connection URL */
    async database(server?: PostgresServer): Promise<string> {
      const where = server ?? (await sharedServer());
      const name = `postrider_test_${newToken(60)}`;
      await administer(where, `create database ${name}`);
      cleanUps.push(() => administer(where, `drop database ${name} with (force)`).then(() => {}));
      return where.url(name);
    },
    /** Before the databases are removed. */
    cleanUpFirst: (cleanUp: () => Promise<void> | void) => void cleanUps.unshift(cleanUp),
  };
}
