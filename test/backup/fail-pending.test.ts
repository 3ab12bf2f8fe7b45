import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { join } from "node:path";
import { failPending } from "../../src/backup/fail-pending.ts";
import { StartupError } from "../../src/domain/errors.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { silentLog } from "../../src/lib/log.ts";
import { databaseFile } from "../../src/store/sqlite/open.ts";
import { openSqliteStore } from "../../src/store/sqlite/store.ts";
import type { Store } from "../../src/store/store.ts";
import { fill, useFolders, vault } from "../support/filled-folder.ts";

const newFolder = useFolders();

/** Records by state and code, replays by phase, and the counters of accounts. */
function booksOf(dataDir: string) {
  const client = new Database(join(dataDir, databaseFile), { readonly: true });
  const read = (sql: string) => Object.fromEntries(client.query<[string, number], []>(sql).values()) as object;
  const books = {
    pending: read("select 'n', count(*) from delivery where state = 0"),
    records: read("select coalesce(error_code, 'none'), count(*) from delivery where state = 2 group by 1"),
    replays: read("select phase, count(*) from replay group by 1"),
    counted: read(
      `select tenant_key, pending - (select count(*) from delivery d where d.tenant_key = u.tenant_key and state = 0)
         + failed - (select count(*) from delivery d where d.tenant_key = u.tenant_key and state = 2) from tenant_usage u`,
    ),
  };
  client.close();
  return books;
}

test("what is pending fails, also when the server is ended in the middle and starts again", async () => {
  const dataDir = newFolder();
  await fill(dataDir);
  const lines: string[] = [];
  const log = { ...silentLog, write: (_: string, event: string) => void lines.push(event) };
  const run = async (wrap: (store: Store) => Partial<Store>, signal: AbortSignal) => {
    const opened = openSqliteStore({ dataDir, vault, clock: systemClock });
    const store = { ...opened.store, ...wrap(opened.store) };
    try {
      return await failPending({ store, clock: systemClock, log, signal, chunk: 4 });
    } finally {
      await opened.store.close();
    }
  };
  const ended = new AbortController();
  const endsAfterOne = (store: Store) => ({
    failPending: async (limit: number) => {
      const failed = await store.failPending(limit);
      ended.abort();
      return failed;
    },
  });
  expect(await run(endsAfterOne, ended.signal)).toBe(false);
  expect(lines.splice(0)).toEqual(["restore.failing_pending"]);
  expect(booksOf(dataDir)).toMatchObject({ records: { server_restored: 4 }, pending: { n: expect.any(Number) } });

  const { signal } = new AbortController();
  const fails = () => ({ failPending: () => Promise.reject(new Error("database or disk is full")) });
  await expect(run(fails, signal)).rejects.toThrow(StartupError);

  expect(await run(() => ({}), signal)).toBe(true);
  expect(lines.at(-1)).toBe("restore.pending_failed");
  const { pending, records, replays, counted } = booksOf(dataDir);
  expect(pending).toEqual({ n: 0 });
  // What waits for a webhook that was removed fails for that.
  expect(records).toMatchObject({ webhook_removed: expect.any(Number), server_restored: expect.any(Number) });
  expect(Object.keys(replays).filter((phase) => phase !== "completed")).toEqual(["cancelled"]);
  expect(new Set(Object.values(counted))).toEqual(new Set([0]));
});
