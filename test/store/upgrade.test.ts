import { Database } from "bun:sqlite";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { cpSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { StartupError } from "../../src/domain/errors.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { examineDatabase } from "../../src/store/sqlite/examine.ts";
import type { MigrationProgress } from "../../src/store/sqlite/migration-steps.ts";
import { migrate, migrations } from "../../src/store/sqlite/migrations.ts";
import { databaseFile, openDatabase } from "../../src/store/sqlite/open.ts";
import { type UpgradeProgress, upgradeDatabase } from "../../src/store/sqlite/upgrade.ts";
import { makeEarlierDatabase } from "../support/earlier-database.ts";
import { startServerProcess } from "../support/server-process.ts";
import { mountSmallDisk } from "../support/small-disk.ts";

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

function emptyFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "postrider-upgrade-"));
  folders.push(folder);
  return folder;
}

function look<Row>(dataDir: string, query: string): Row[] {
  const client = new Database(join(dataDir, databaseFile), { readonly: true });
  client.run("pragma busy_timeout = 5000");
  try {
    return client.query<Row, []>(query).all();
  } finally {
    client.close();
  }
}

/** Everything that SQLite knows of the form of a database, but for the places in the file. */
const schemaOf = (dataDir: string) =>
  look(dataDir, "select type, name, tbl_name, sql from sqlite_schema order by type, name");

/** Without the columns that later schemas have added. */
const columnsOf = {
  event: "seq, tenant_key, id_tail, payload",
  delivery: `key, tenant_key, event_seq, webhook_key, state, run, attempts_in_run, attempts, next_attempt_at,
    last_attempt_at, finished_at, error_reason, replay_key`,
  attempt: `key, tenant_key, event_seq, webhook_key, number, started_at, duration_ms, status_code, error, response_body,
    replay_key`,
};

const rowsOf = (dataDir: string) =>
  Object.entries(columnsOf).map(([table, columns]) => look(dataDir, `select ${columns} from ${table} order by 1`));

/** Every row of every table, with its number. */
function allOf(dataDir: string): Record<string, unknown[]> {
  const tables = look<{ name: string }>(dataDir, "select name from sqlite_schema where type = 'table' order by 1");
  return Object.fromEntries(
    tables.map(({ name }) => [name, look(dataDir, `select ${hasRowNumbers(name) ? "rowid, " : ""}* from ${name}`)]),
  );
}

const hasRowNumbers = (table: string) => table !== "sqlite_sequence";

const snapshotName = (from: number) => `${databaseFile}.pre-migration-v${from}-to-v${migrations.length}.bak`;

/** As the commands do that an earlier program names. */
function goBack(dataDir: string, snapshot: string): void {
  renameSync(join(dataDir, databaseFile), join(dataDir, `${databaseFile}.newer`));
  for (const log of ["wal", "shm"]) rmSync(join(dataDir, `${databaseFile}-${log}`), { force: true });
  renameSync(join(dataDir, snapshot), join(dataDir, databaseFile));
}

let fresh: ReturnType<typeof schemaOf> | null = null;

function freshSchema() {
  if (fresh !== null) return fresh;
  const folder = emptyFolder();
  openDatabase({ dataDir: folder }).close();
  fresh = schemaOf(folder);
  return fresh;
}

/** Upgrades an open database as far as a watcher lets it, which is told of every step. */
function upgradeUntil(client: Database, stopsAt: (steps: number) => boolean): MigrationProgress[] {
  const told: MigrationProgress[] = [];
  migrate(client, migrations, {
    progress: (progress) => void told.push(progress),
    isStopped: () => stopsAt(told.length),
    monotonicMs: () => 0,
  });
  return told;
}

const withDatabase = <T>(dataDir: string, run: (client: Database) => T): T => {
  const client = new Database(join(dataDir, databaseFile), { strict: true });
  try {
    return run(client);
  } finally {
    client.close();
  }
};

describe("an upgrade", () => {
  test.each(migrations.slice(1).map(({ name }, at) => [at + 1, name] as const))(
    "from schema %i makes the very schema of a new database, keeps every row, and can be gone back from",
    async (schema) => {
      const folder = emptyFolder();
      makeEarlierDatabase(folder, { schema, events: 100 });
      const before = rowsOf(folder);
      const all = allOf(folder);
      const earlier = schemaOf(folder);
      expect(await upgradeDatabase({ dataDir: folder, clock: systemClock, onProgress() {} })).toBe(true);
      expect(rowsOf(folder)).toEqual(before);
      openDatabase({ dataDir: folder }).close();
      expect(schemaOf(folder)).toEqual(freshSchema());
      expect(look(folder, "pragma integrity_check")).toEqual([{ integrity_check: "ok" }]);
      expect(look(folder, "pragma foreign_key_check")).toEqual([]);
      expect(look(folder, "pragma user_version")).toEqual([{ user_version: migrations.length }]);
      expect(examineDatabase(folder).faults).toEqual([]);

      // A copy: here a connection may be closed late, and takes the log of whatever has its name by then along.
      const back = emptyFolder();
      cpSync(folder, back, { recursive: true });
      goBack(back, snapshotName(schema));
      expect(schemaOf(back)).toEqual(earlier);
      expect(allOf(back)).toEqual(all);
      withDatabase(back, (client) => {
        expect(migrate(client, migrations.slice(0, schema))).toBe(true);
        client.run("pragma journal_mode = wal");
        client.run("update tenant set name = 'later'");
      });
      expect(look(back, "pragma user_version")).toEqual([{ user_version: schema }]);
      expect(look(back, "pragma auto_vacuum")).toEqual([{ auto_vacuum: 2 }]);
    },
  );

  test("that is stopped after any step is refused by an earlier program, and goes on to the same end", () => {
    const original = emptyFolder();
    makeEarlierDatabase(original, { schema: 5, events: 60 });
    const before = rowsOf(original);
    const schema = freshSchema();
    const whole = emptyFolder();
    cpSync(original, whole, { recursive: true });
    const steps = withDatabase(whole, (client) => upgradeUntil(client, () => false)).length;
    expect(steps).toBeGreaterThan(20);
    for (let stop = 2; stop < steps; stop++) {
      const folder = emptyFolder();
      cpSync(original, folder, { recursive: true });
      withDatabase(folder, (client) => {
        upgradeUntil(client, (told) => told >= stop);
        for (const known of [5, 4]) {
          expect(() => migrate(client, migrations.slice(0, known))).toThrow(/newer Postrider.*Try: run that version/);
        }
        upgradeUntil(client, () => false);
      });
      expect(rowsOf(folder)).toEqual(before);
      openDatabase({ dataDir: folder }).close();
      expect(schemaOf(folder)).toEqual(schema);
    }
  }, 120_000);

  test("says what it does, how far it is, and how long it will take", async () => {
    const folder = emptyFolder();
    makeEarlierDatabase(folder, { schema: 5, events: 5_000 });
    let now = 0;
    const told: MigrationProgress[] = [];
    withDatabase(folder, (client) =>
      migrate(client, migrations, {
        progress: (progress) => void told.push(progress),
        isStopped: () => false,
        monotonicMs: () => (now += 50),
      }),
    );
    const ofEvents = told.filter(({ what }) => what === "events");
    expect(ofEvents.at(-1)).toMatchObject({ done: 5_000, total: 5_000, secondsLeft: 0 });
    expect(told.map(({ what }) => what)).toContain("the index delivery_by_tenant");
    const left = told.flatMap(({ secondsLeft }) => (secondsLeft === null ? [] : [secondsLeft]));
    expect(left.length).toBeGreaterThan(10);
    expect(left[0]).toBeGreaterThan(0);
    expect(left.at(-1)).toBe(0);
  });

  test("that fails says that nothing is lost, and goes on when the cause is gone", () => {
    const folder = emptyFolder();
    makeEarlierDatabase(folder, { schema: 5, events: 2_000 });
    const before = rowsOf(folder);
    withDatabase(folder, (client) => {
      const { page_count: pages } = client.query<{ page_count: number }, []>("pragma page_count").get() ?? {
        page_count: 0,
      };
      client.run(`pragma max_page_count = ${pages}`);
      expect(() => migrate(client)).toThrow(/0005_lean_events: .*full.*; nothing is lost, and the next start goes on/);
      client.run("pragma max_page_count = 1000000");
      migrate(client);
    });
    expect(rowsOf(folder)).toEqual(before);
    openDatabase({ dataDir: folder }).close();
    expect(schemaOf(folder)).toEqual(freshSchema());
  });

  test.each([
    ["there is none", (_folder: string) => {}],
    ["it is of today", (folder: string) => openDatabase({ dataDir: folder }).close()],
    ["it is of a newer program", (folder: string) => newer(folder)],
  ])("leaves a database alone when %s", async (_, prepare) => {
    const folder = emptyFolder();
    prepare(folder);
    const told: UpgradeProgress[] = [];
    const before = readdirSync(folder);
    const onProgress = (progress: UpgradeProgress) => void told.push(progress);
    expect(await upgradeDatabase({ dataDir: folder, clock: systemClock, onProgress })).toBe(true);
    expect(told).toEqual([]);
    expect(readdirSync(folder)).toEqual(before);
  });

  function newer(folder: string): void {
    const client = openDatabase({ dataDir: folder });
    client.run(`pragma user_version = ${migrations.length + 1}`);
    client.close();
  }
});

const smallDisk = mountSmallDisk(16);
afterAll(() => smallDisk?.unmount());

describe.skipIf(smallDisk === null)("an upgrade without room", () => {
  test("is refused before anything is changed (needs to be root, to mount a small disk)", async () => {
    const disk = smallDisk as NonNullable<typeof smallDisk>;
    const roomy = emptyFolder();
    makeEarlierDatabase(roomy, { schema: 5, events: 20_000 });
    cpSync(roomy, disk.folder, { recursive: true });
    const before = readFileSync(join(disk.folder, databaseFile));
    const refused = upgradeDatabase({ dataDir: disk.folder, clock: systemClock, onProgress() {} });
    const error = await refused.catch((error: unknown) => error);
    expect(error).toBeInstanceOf(StartupError);
    expect(String(error)).toMatch(
      /needs 20 MiB of free disk, 7 MiB of it for a snapshot to go back to, and there are 10 MiB; nothing was changed\. Try: make room on its disk, or run the earlier version/,
    );
    expect(readFileSync(join(disk.folder, databaseFile)).equals(before)).toBe(true);
  });
});

const isLinux = process.platform === "linux";

describe("a server on a large database of an earlier program", () => {
  const events = 200_000;
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "postrider-upgrade-"));
    makeEarlierDatabase(folder, { schema: 5, events });
  }, 120_000);
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  test.skipIf(!isLinux)("is upgraded in little memory", async () => {
    const copy = emptyFolder();
    cpSync(folder, copy, { recursive: true });
    const program = join(import.meta.dir, "../support/upgrade-program.ts");
    const child = Bun.spawn([process.execPath, program, copy], { stdout: "pipe", stderr: "inherit" });
    const { finished, grownMib } = JSON.parse(await new Response(child.stdout).text());
    expect(finished).toBe(true);
    // In one transaction it was 77, and grew with the rows.
    expect(grownMib).toBeLessThan(64);
  });

  test("is ended by SIGTERM in order and by a kill without loss, and goes on with the upgrade at the next start", async () => {
    const taken = join(folder, snapshotName(5));
    const copying = startServerProcess(folder);
    expect((await copying.logged("storage.upgrading")).message).toContain(`to ${migrations.length}: snapshot`);
    copying.kill("SIGKILL");
    await copying.exited;
    expect(readdirSync(folder)).not.toContain(snapshotName(5));
    expect(look(folder, "pragma user_version")).toEqual([{ user_version: 5 }]);

    const stopped = startServerProcess(folder);
    expect(await stopped.logged("storage.snapshot")).toMatchObject({ file: taken, bytes: statSync(taken).size });
    expect(readdirSync(folder).filter((name) => name.endsWith(".part"))).toEqual([]);
    const { ino } = statSync(taken);
    const askedAt = performance.now();
    stopped.kill("SIGTERM");
    await stopped.logged("storage.upgrade_stopped");
    expect(await stopped.exited).toBe(0);
    expect(performance.now() - askedAt).toBeLessThan(4_000);

    const killed = startServerProcess(folder);
    const { message } = await killed.logged("storage.upgrading");
    expect(message).toStartWith("Upgrading the database from schema 5 to");
    killed.kill("SIGKILL");
    await killed.exited;

    const last = startServerProcess(folder);
    await last.logged("server.started");
    last.kill("SIGTERM");
    expect(await last.exited).toBe(0);
    for (const table of ["event", "delivery", "attempt"]) {
      expect([table, look(folder, `select count(*) as n from ${table}`)]).toEqual([table, [{ n: events }]]);
    }
    expect(schemaOf(folder)).toEqual(freshSchema());
    // It is of before the first step, whatever came in between.
    expect(statSync(taken).ino).toBe(ino);
    goBack(folder, snapshotName(5));
    expect(look(folder, "pragma user_version")).toEqual([{ user_version: 5 }]);
    expect(look(folder, "select count(*) as n from event")).toEqual([{ n: events }]);
  }, 120_000);
});
