import { afterEach } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../src/lib/clock.ts";
import { databaseFile } from "../../src/store/sqlite/open.ts";
import { openSqliteStore, type SqliteOptions } from "../../src/store/sqlite/store.ts";

type CleanUp = () => Promise<void> | void;

/** Databases in separate folders, for tests that look beneath the seam. All of it is removed after each test. */
export function useSqlite() {
  const cleanUps: CleanUp[] = [];
  afterEach(async () => {
    for (const cleanUp of cleanUps.splice(0)) await cleanUp();
  });

  function emptyDir(): string {
    const dataDir = mkdtempSync(join(tmpdir(), "postrider-sqlite-"));
    cleanUps.push(() => rmSync(dataDir, { recursive: true }));
    return dataDir;
  }

  return {
    emptyDir,
    /** An open store, and its database. */
    async store({
      dataDir = mkdtempSync(join(tmpdir(), "postrider-sqlite-")),
      ...options
    }: Partial<SqliteOptions> = {}) {
      const { store } = openSqliteStore({ dataDir, clock: systemClock, ...options });
      cleanUps.push(async () => {
        await store.close();
        rmSync(dataDir, { recursive: true, force: true });
      });
      return { store, path: join(dataDir, databaseFile) };
    },
    cleanUp: (cleanUp: CleanUp) => void cleanUps.push(cleanUp),
    /** Runs before the folders are removed. */
    cleanUpFirst: (cleanUp: CleanUp) => void cleanUps.unshift(cleanUp),
  };
}
