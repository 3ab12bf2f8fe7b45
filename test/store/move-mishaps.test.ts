import { Database } from "bun:sqlite";
import { afterEach, expect, setDefaultTimeout, test } from "bun:test";
import { chownSync, cpSync, existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../src/lib/clock.ts";
import { type MoveOptions, moveToPostgres, moveToSqlite } from "../../src/store/move/move.ts";
import { migrations as postgresMigrations } from "../../src/store/postgres/migrations.ts";
import { openPostgresStore } from "../../src/store/postgres/store.ts";
import { migrations } from "../../src/store/sqlite/migrations.ts";
import { databaseFile } from "../../src/store/sqlite/open.ts";
import { openSqliteStore } from "../../src/store/sqlite/store.ts";
import { makeEarlierDatabase } from "../support/earlier-database.ts";
import { fill, masterKey, rowsOf, useFolders, vault } from "../support/filled-folder.ts";
import { describeWithOwnServer, describeWithPostgres, usePostgres } from "../support/postgres.ts";
import { administer, type OwnServer, startFastServer } from "../support/postgres-server.ts";
import { mountSmallDisk, type SmallDisk } from "../support/small-disk.ts";

/** What may happen to a move: it says what to do, nothing is lost, and the next one ends with the same books. */

setDefaultTimeout(120_000);

const newFolder = useFolders();
const options = (dataDir: string, url: string, others: Partial<MoveOptions> = {}): MoveOptions => ({
  ...{ dataDir, url, masterKey, clock: systemClock, durability: "waived" },
  ...others,
});

/** More than a batch. */
const events = 11_000;

function newLargeFolder(schema = migrations.length): string {
  const folder = newFolder();
  makeEarlierDatabase(folder, { schema, events, payloadBytes: 600 });
  return folder;
}

/** Calls it once so many batches are written. */
function afterBatches(count: number, act: () => void): Partial<MoveOptions> {
  let batches = 0;
  return {
    onProgress({ step }) {
      if (step === "copying") batches += 1;
      if (batches === count) act();
    },
  };
}

const stopAfter = (count: number): Partial<MoveOptions> => {
  const stopped = new AbortController();
  return { ...afterBatches(count, () => stopped.abort()), signal: stopped.signal };
};

/** Stops it once all is copied, so that only the marks are missing. */
const failAtTheEnd: Partial<MoveOptions> = {
  onProgress({ step }) {
    if (step === "checking") throw new Error("stopped");
  },
};

function change(dataDir: string, text: string): void {
  const client = new Database(join(dataDir, databaseFile), { readwrite: true, strict: true });
  client.run(text);
  client.close();
}

const smallTables = 23;

/** Only root on Linux may mount one. */
function isMountable(): boolean {
  const disk = mountSmallDisk(1);
  disk?.unmount();
  return disk !== null;
}
const testWithDisk = isMountable() ? test : test.skip;

describeWithPostgres("a move", () => {
  const postgres = usePostgres();
  const openThere = (url: string) => openPostgresStore({ url, clock: systemClock, vault, durability: "waived" });

  /** In a process of its own, which kills itself. */
  async function kill(direction: "moveToPostgres" | "moveToSqlite", dataDir: string, url: string, count: number) {
    const child = Bun.spawn([process.execPath, join(import.meta.dir, "../support/killed-move.ts")], {
      env: { ...process.env, KILLED_MOVE: JSON.stringify({ direction, dataDir, url, count }) },
      stdout: "inherit",
      stderr: "inherit",
    });
    await child.exited;
    expect(child.signalCode).toBe("SIGKILL");
  }

  test("that is killed goes on, and has the same books in the end, in both directions", async () => {
    const dataDir = newLargeFolder();
    const before = rowsOf(dataDir);
    const url = await postgres.database();
    await kill("moveToPostgres", dataDir, url, smallTables + 2);
    expect((await moveToPostgres(options(dataDir, url)))?.events).toBe(events);
    const second = newFolder();
    await kill("moveToSqlite", second, url, smallTables + 2);
    await moveToSqlite(options(second, url));
    const after = rowsOf(second);
    // Checksums are new: this source had none.
    expect({ ...after, event: after.event?.length }).toEqual({ ...before, event: events });
  });

  test("that is killed between its two marks goes on, in both directions", async () => {
    const dataDir = newFolder();
    await fill(dataDir);
    const before = rowsOf(dataDir);
    const url = await postgres.database();
    await expect(moveToPostgres(options(dataDir, url, failAtTheEnd))).rejects.toThrow("stopped");
    change(dataDir, "update move_mark set role = 'left'");
    await moveToPostgres(options(dataDir, url));
    await expect(moveToPostgres(options(dataDir, url))).rejects.toThrow(/moved to PostgreSQL .* already. Try: /);
    const second = newFolder();
    await expect(moveToSqlite(options(second, url, failAtTheEnd))).rejects.toThrow("stopped");
    await postgres.pool(url).write("update move_mark set role = 'left'");
    await moveToSqlite(options(second, url));
    await expect(moveToSqlite(options(second, url))).rejects.toThrow(/was moved to .* already. Try: /);
    expect(rowsOf(second)).toEqual(before);
  });

  test("is one at a time: of two to the same place, one ends and says so", async () => {
    const dataDir = newLargeFolder();
    const url = await postgres.database();
    expect(await moveToPostgres(options(dataDir, url, stopAfter(smallTables)))).toBeNull();
    const copy = newFolder();
    cpSync(dataDir, copy, { recursive: true });
    const outcomes = await Promise.allSettled([dataDir, copy].map((from) => moveToPostgres(options(from, url))));
    const refused = outcomes.filter((outcome) => outcome.status === "rejected");
    expect(refused.map(({ reason }) => String(reason))).toEqual([
      expect.stringMatching(/Another postrider move writes to this database. Try: /),
    ]);
    const [row] = await postgres.pool(url).read<{ n: number }>("select count(*)::int as n from event");
    expect(row?.n).toBe(events);
  });

  test("from another folder to the same place is refused, and disturbs nothing", async () => {
    const [first, second] = [newFolder(), newFolder()];
    await fill(first);
    await fill(second);
    const url = await postgres.database();
    const outcomes = await Promise.allSettled([first, second].map((from) => moveToPostgres(options(from, url))));
    expect(outcomes.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
    const [refused] = outcomes.filter((outcome) => outcome.status === "rejected");
    expect(String(refused?.reason)).toMatch(/Try: /);
  });

  test("from a database that another one leaves for another folder is refused at its end", async () => {
    const dataDir = newFolder();
    await fill(dataDir);
    const url = await postgres.database();
    await moveToPostgres(options(dataDir, url));
    const [one, other] = [newFolder(), newFolder()];
    await expect(moveToSqlite(options(one, url, failAtTheEnd))).rejects.toThrow("stopped");
    await expect(moveToSqlite(options(other, url, failAtTheEnd))).rejects.toThrow("stopped");
    await expect(moveToSqlite(options(one, url))).rejects.toThrow(/not of this move. Try: name an empty place/);
  });

  test("back is given up by a server that starts on the database", async () => {
    const dataDir = newFolder();
    await fill(dataDir);
    const url = await postgres.database();
    await moveToPostgres(options(dataDir, url));
    const second = newFolder();
    await expect(moveToSqlite(options(second, url, failAtTheEnd))).rejects.toThrow("stopped");
    await (await openThere(url)).store.close();
    await expect(moveToSqlite(options(second, url))).rejects.toThrow(/not of this move. Try: name an empty place/);
    expect((await moveToSqlite(options(newFolder(), url)))?.miscounted).toEqual([]);
  });

  test("brings an earlier schema to today's first", async () => {
    const dataDir = newLargeFolder(5);
    const url = await postgres.database();
    expect((await moveToPostgres(options(dataDir, url)))?.events).toBe(events);
  });

  test("leaves a newer schema alone, on either side", async () => {
    const dataDir = newFolder();
    await fill(dataDir);
    const url = await postgres.database();
    change(dataDir, `pragma user_version = ${migrations.length + 1}`);
    await expect(moveToPostgres(options(dataDir, url))).rejects.toThrow(/written by a newer Postrider .*Try: /);
    change(dataDir, `pragma user_version = ${migrations.length}`);
    const pool = postgres.pool(url);
    await moveToPostgres(options(dataDir, url));
    await pool.write("insert into migration (version, name) values ($1::int, 'later')", [
      postgresMigrations.length + 1,
    ]);
    const second = newFolder();
    await expect(moveToSqlite(options(second, url))).rejects.toThrow(/written by a newer Postrider .*Try: /);
    expect(readdirSync(second)).toEqual([]);
  });

  test("that an earlier program began is not gone on with", async () => {
    const dataDir = newFolder();
    await fill(dataDir);
    const url = await postgres.database();
    await expect(moveToPostgres(options(dataDir, url, failAtTheEnd))).rejects.toThrow("stopped");
    const pool = postgres.pool(url);
    const [last] = await pool.write<{ version: number; name: string }>(
      "delete from migration where version = (select max(version) from migration) returning version, name",
    );
    await expect(moveToPostgres(options(dataDir, url))).rejects.toThrow(/begun by an earlier Postrider. Try: end it/);
    await pool.write("insert into migration (version, name) values ($1::int, $2::text)", [
      last?.version ?? 0,
      last?.name ?? "",
    ]);
    await moveToPostgres(options(dataDir, url));
    const second = newFolder();
    await expect(moveToSqlite(options(second, url, failAtTheEnd))).rejects.toThrow("stopped");
    change(second, `pragma user_version = ${migrations.length - 1}`);
    await expect(moveToSqlite(options(second, url))).rejects.toThrow(/begun by an earlier Postrider. Try: end it/);
  });

  test("with another master key changes nothing, in both directions", async () => {
    const dataDir = newFolder();
    await fill(dataDir);
    const url = await postgres.database();
    const wrong = { masterKey: new Uint8Array(32).fill(8) };
    await expect(moveToPostgres(options(dataDir, url, wrong))).rejects.toThrow(/master key.*Try: /);
    const [row] = await postgres
      .pool(url)
      .read<{ n: number }>(
        "select count(*)::int as n from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace",
      );
    expect(row?.n).toBe(0);
    await moveToPostgres(options(dataDir, url));
    const second = newFolder();
    await expect(moveToSqlite(options(second, url, wrong))).rejects.toThrow(/master key.*Try: /);
    expect(readdirSync(second)).toEqual([]);
    await moveToSqlite(options(second, url));
  });

  test.each<[string, (folder: string, moved: string) => unknown]>([
    ["of this release", fill],
    ["of an earlier one", (folder) => makeEarlierDatabase(folder, { schema: 5, events: 3 })],
    ["that was moved away", (folder, moved) => cpSync(moved, folder, { recursive: true })],
  ])("to a folder with a database %s is refused, and nothing in it changes", async (_, make) => {
    const dataDir = newFolder();
    await fill(dataDir);
    const url = await postgres.database();
    await moveToPostgres(options(dataDir, url, { movingSecrets: { session: "00ff" } }));
    const second = newFolder();
    await make(second, dataDir);
    const read = () => readdirSync(second).map((name) => [name, Bun.hash(readFileSync(join(second, name)))]);
    const before = read();
    await expect(moveToSqlite(options(second, url))).rejects.toThrow(/not of this move. Try: name an empty place/);
    expect(read()).toEqual(before);
  });

  test("to a folder where a server has begun with nothing takes it over, with the secrets", async () => {
    const dataDir = newFolder();
    await fill(dataDir);
    const before = rowsOf(dataDir);
    const url = await postgres.database();
    const movingSecrets = { session: "00ff" };
    await moveToPostgres(options(dataDir, url, { movingSecrets }));
    const second = newFolder();
    await openSqliteStore({ dataDir: second, clock: systemClock, vault }).store.close();
    await expect(moveToSqlite(options(second, url, failAtTheEnd))).rejects.toThrow("stopped");
    await moveToSqlite(options(second, url));
    expect(rowsOf(second)).toEqual(before);
    const { store, keptSecrets } = openSqliteStore({ dataDir: second, clock: systemClock, vault });
    await store.close();
    expect(keptSecrets).toEqual(movingSecrets);
  });
});

describeWithOwnServer("a move whose database", () => {
  let server: OwnServer | null = null;
  let disk: SmallDisk | null = null;
  afterEach(async () => {
    await server?.remove();
    disk?.unmount();
    server = disk = null;
  });

  test("crashes goes on when it runs again, in both directions", async () => {
    const own = await startFastServer();
    server = own;
    const dataDir = newLargeFolder();
    const url = own.url("postgres");
    let stopping: Promise<void> | null = null;
    const crash = (count: number) =>
      afterBatches(count, () => {
        stopping ??= own.stop("immediate");
      });
    const goesOn = /Nothing is lost: the source is unchanged, and the next postrider move goes on .* Try: /;
    await expect(moveToPostgres(options(dataDir, url, crash(smallTables + 2)))).rejects.toThrow(goesOn);
    await stopping;
    await expect(moveToPostgres(options(dataDir, url))).rejects.toThrow(/The database at .* Try: /);
    await own.start();
    await moveToPostgres(options(dataDir, url));
    const second = newFolder();
    stopping = null;
    await expect(moveToSqlite(options(second, url, crash(smallTables + 1)))).rejects.toThrow(goesOn);
    await stopping;
    await own.start();
    expect((await moveToSqlite(options(second, url)))?.events).toBe(events);
  });

  testWithDisk("has a full disk goes on when there is room", async () => {
    const own = await startFastServer();
    server = own;
    const small = mountSmallDisk(48);
    disk = small;
    if (!small) throw new Error("Nothing can be mounted here");
    const place = join(small.folder, "space");
    mkdirSync(place);
    chownSync(place, 65_534, 65_534);
    await administer(own, `create tablespace small location '${place}'`);
    await administer(own, "create database moved tablespace small");
    const dataDir = newLargeFolder();
    const url = own.url("moved");
    let isFull = false;
    const fill = afterBatches(smallTables + 1, () => {
      if (!isFull) small.fill();
      isFull = true;
    });
    await expect(moveToPostgres(options(dataDir, url, fill))).rejects.toThrow(
      /The database server's disk is full; .*Nothing is lost: .*Try: see that the database runs and has room/,
    );
    small.grow(200);
    small.empty();
    expect((await moveToPostgres(options(dataDir, url)))?.events).toBe(events);
    await administer(own, "drop database moved");
  });
});

describeWithPostgres("a move to a folder", () => {
  const postgres = usePostgres();

  testWithDisk("whose disk is full goes on when there is room", async () => {
    const dataDir = newLargeFolder();
    const url = await postgres.database();
    await moveToPostgres(options(dataDir, url));
    const small = mountSmallDisk(8);
    if (!small) throw new Error("Nothing can be mounted here");
    const there = join(small.folder, "data");
    mkdirSync(there);
    try {
      await expect(moveToSqlite(options(there, url))).rejects.toThrow(
        /The disk of the data directory is full. Nothing is lost: .*Try: free some space/,
      );
      expect(existsSync(join(there, databaseFile))).toBe(true);
      small.grow(200);
      expect((await moveToSqlite(options(there, url)))?.events).toBe(events);
    } finally {
      small.unmount();
    }
  });
});
