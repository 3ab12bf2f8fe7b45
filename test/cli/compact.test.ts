import { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, test } from "bun:test";
import { chownSync, mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCommand } from "../../src/cli/run.ts";
import { openDataDir } from "../../src/data-dir.ts";
import { systemClock as clock } from "../../src/lib/clock.ts";
import { writeMoveMark } from "../../src/store/sqlite/move-mark.ts";
import { databaseFile } from "../../src/store/sqlite/open.ts";
import { openSqliteStore } from "../../src/store/sqlite/store.ts";
import { createScriptedIo } from "../support/scripted-io.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "postrider-compact-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

async function compact(args: readonly string[] = [], env: Record<string, string> = {}) {
  const { io, out, err } = createScriptedIo({ env: { POSTRIDER_DATA_DIR: folder, ...env } });
  const code = await runCommand(["compact", ...args], io);
  return { code, said: [...out, ...err].join("\n") };
}

test("postrider compact says what the database had and has", async () => {
  openDataDir(folder).release();
  await openSqliteStore({ dataDir: folder, clock, secondThread: false }).store.close();
  expect(await compact()).toMatchObject({
    code: 0,
    said: expect.stringMatching(/^The database had [\d.]+ KiB and has [\d.]+ KiB; it took .+\.$/),
  });
  const { said } = await compact(["--json"]);
  expect(JSON.parse(said)).toMatchObject({ shrinksNow: false, bytesBefore: expect.any(Number) });
});

test("postrider compact does not touch what a server has open", async () => {
  const dataDir = openDataDir(folder);
  expect(await compact()).toMatchObject({ code: 1, said: expect.stringMatching(/Try: stop it first\.$/) });
  dataDir.release();
});

test("postrider compact leaves what was moved elsewhere, as a start does", async () => {
  openDataDir(folder).release();
  await openSqliteStore({ dataDir: folder, clock, secondThread: false }).store.close();
  const client = new Database(join(folder, databaseFile));
  writeMoveMark(client, { move: "m", role: "left", place: "PostgreSQL at db/postrider" });
  client.close();
  expect(await compact()).toMatchObject({
    code: 1,
    said: expect.stringMatching(/was moved to PostgreSQL .* Try: set /),
  });
});

test.skipIf(process.getuid?.() !== 0)(
  "postrider compact leaves the database to its user when root runs it",
  async () => {
    openDataDir(folder).release();
    await openSqliteStore({ dataDir: folder, clock, secondThread: false }).store.close();
    for (const name of readdirSync(folder)) chownSync(join(folder, name), 12_345, 12_345);
    chownSync(folder, 12_345, 12_345);
    expect((await compact()).code).toBe(0);
    const { uid, gid } = statSync(join(folder, databaseFile));
    expect([uid, gid]).toEqual([12_345, 12_345]);
  },
);

test("postrider compact makes nothing where no server has run", async () => {
  expect(await compact()).toMatchObject({ code: 1, said: expect.stringMatching(/No server has run on .* Try: /) });
  expect(readdirSync(folder)).toEqual([]);
});

test("postrider compact leaves PostgreSQL to itself", async () => {
  const said = expect.stringMatching(/autovacuum .* Try: VACUUM FULL/);
  expect(await compact([], { POSTRIDER_DATABASE_URL: "postgres://u:p@127.0.0.1:1/db" })).toMatchObject({
    code: 1,
    said,
  });
});
