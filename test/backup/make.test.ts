import { describe, expect, test } from "bun:test";
import { statSync, symlinkSync, truncateSync } from "node:fs";
import { dirname, join } from "node:path";
import { makeBackup } from "../../src/backup/make.ts";
import { systemClock as clock } from "../../src/lib/clock.ts";
import { databaseFile } from "../../src/store/sqlite/open.ts";
import { useSqlite } from "../support/sqlite-store.ts";

const sqlite = useSqlite();

describe("a backup beside a server whose disk has no room to spare", () => {
  /** @param onChunk while the database is being read */
  async function back({ onChunk, dataDir }: { onChunk(log: string): void; dataDir?: string }) {
    const { store, path } = await sqlite.store();
    await store.close();
    if (dataDir !== undefined) symlinkSync(path, join(dataDir, databaseFile));
    return makeBackup({
      dataDir: dataDir ?? dirname(path),
      place: {
        name: "nowhere",
        folder: null,
        async put(_name, source) {
          let bytes = 0;
          for await (const chunk of source) {
            bytes += chunk.length;
            onChunk(`${path}-wal`);
          }
          return bytes;
        },
        list: async () => [],
        async *read() {},
        async remove() {},
      },
      name: "backup",
      readSecrets: () => [{ name: "large", contents: Buffer.alloc(4 * 2 ** 20) }],
      secretsBetween: (before) => before,
      hasMasterKey: true,
      recipients: [],
      leaveFreeBytes: Number.MAX_SAFE_INTEGER,
      now: clock.now(),
      clock,
      signal: new AbortController().signal,
    });
  }

  test("ends when the server's log grows, and says why", async () => {
    const growing = back({ onChunk: (log) => truncateSync(log, statSync(log).size + 4096) });
    await expect(growing).rejects.toThrow(/the log of its server grows while a backup reads.*POSTRIDER_MIN_FREE_DISK/);
  });

  test("speaks of the disk with the database, not of the data directory with a link to it", async () => {
    const dataDir = sqlite.emptyDir();
    let disk = "";
    const growing = back({
      dataDir,
      onChunk(log) {
        disk = dirname(log);
        truncateSync(log, statSync(log).size + 4096);
      },
    });
    expect(await growing.catch(String)).toStartWith(`StartupError: ${disk} has `);
  });

  test("is made when no server writes", async () => {
    expect((await back({ onChunk() {} })).bytes).toBeGreaterThan(0);
  });
});
