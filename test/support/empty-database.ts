import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../src/lib/clock.ts";
import { databaseFile } from "../../src/store/sqlite/open.ts";
import { openSqliteStore } from "../../src/store/sqlite/store.ts";

let bytes: Promise<Buffer> | null = null;

/**
 * Puts an empty database with the newest schema into a folder: running all migrations takes three times as long as
 * opening it. Tests of the migrations start without one.
 */
export async function putEmptyDatabase(folder: string): Promise<void> {
  bytes ??= makeOne();
  writeFileSync(join(folder, databaseFile), await bytes);
}

/** Once closed, all of it is in the one file. */
async function makeOne(): Promise<Buffer> {
  const dataDir = mkdtempSync(join(tmpdir(), "postrider-empty-"));
  await openSqliteStore({ dataDir, clock: systemClock }).store.close();
  const file = readFileSync(join(dataDir, databaseFile));
  rmSync(dataDir, { recursive: true });
  return file;
}
