import { Database } from "bun:sqlite";
import { afterAll, describe, expect, test } from "bun:test";
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../src/lib/clock.ts";
import { migrate, migrations } from "../../src/store/sqlite/migrations.ts";
import { databaseFile, openDatabase } from "../../src/store/sqlite/open.ts";
import { type UpgradeOptions, upgradeDatabase } from "../../src/store/sqlite/upgrade.ts";
import { noteUpgrade } from "../../src/store/sqlite/written-by.ts";
import { version } from "../../src/version.ts";
import { makeEarlierDatabase } from "../support/earlier-database.ts";
import { useFolders } from "../support/filled-folder.ts";
import { mountSmallDisk } from "../support/small-disk.ts";

const newFolder = useFolders();
const today = migrations.length;
const before = today - 1;
const nameOf = (from: number, to: number = today) => `${databaseFile}.pre-migration-v${from}-to-v${to}.bak`;

function earlierFolder(schema: number, events = 20): string {
  const folder = newFolder();
  makeEarlierDatabase(folder, { schema, events });
  return folder;
}

const snapshotsIn = (folder: string) => readdirSync(folder).filter((name) => name.includes("pre-migration"));

function inDatabase<T>(folder: string, name: string, run: (client: Database) => T): T {
  const client = new Database(join(folder, name), { strict: true });
  try {
    return run(client);
  } finally {
    client.close();
  }
}

const versionOf = (folder: string, name = databaseFile) =>
  inDatabase(folder, name, (client) => client.query<{ user_version: number }, []>("pragma user_version").get())
    ?.user_version;

async function upgrade(dataDir: string, options: Partial<UpgradeOptions> = {}) {
  const told: unknown[] = [];
  const finished = await upgradeDatabase({
    dataDir,
    clock: systemClock,
    onProgress() {},
    onSnapshot: (snapshot) => void told.push(snapshot),
    onRemoved: (files) => void told.push(files),
    ...options,
  });
  return { finished, told };
}

const refusalOf = (dataDir: string, options: Partial<UpgradeOptions> = {}) =>
  upgrade(dataDir, options).then(
    () => "",
    (error: unknown) => String(error),
  );

describe("the snapshot before an upgrade", () => {
  test("is beside the database, for this user alone, and is named", async () => {
    const folder = earlierFolder(before);
    const { told } = await upgrade(folder);
    const file = join(folder, nameOf(before));
    expect(told).toEqual([{ file, bytes: statSync(file).size }]);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(snapshotsIn(folder)).toEqual([nameOf(before)]);
  });

  test("is not made without one to make", async () => {
    const folder = newFolder();
    openDatabase({ dataDir: folder }).close();
    expect(await upgrade(folder)).toEqual({ finished: true, told: [] });
    expect(snapshotsIn(folder)).toEqual([]);
  });

  test("has what is only in the log", async () => {
    const folder = earlierFolder(before);
    const whole = newFolder();
    inDatabase(folder, databaseFile, (client) => {
      client.run("pragma wal_autocheckpoint = 0");
      client.run("update tenant set name = 'only in the log'");
      cpSync(folder, whole, { recursive: true });
    });
    expect(statSync(join(whole, `${databaseFile}-wal`)).size).toBeGreaterThan(0);
    await upgrade(whole);
    const names = inDatabase(whole, nameOf(before), (client) => client.query("select distinct name from tenant").all());
    expect(names).toEqual([{ name: "only in the log" }]);
  });

  test("is that of before the first step, also when a step ended between two schemas", async () => {
    const folder = earlierFolder(9);
    inDatabase(folder, databaseFile, (client) => {
      // As one that was killed there leaves it.
      noteUpgrade(client, { fromSchema: 9, snapshot: nameOf(9) });
      migrate(client, migrations.slice(0, 12));
    });
    writeFileSync(join(folder, nameOf(9)), "the first one");
    expect(await upgrade(folder)).toEqual({ finished: true, told: [] });
    expect(snapshotsIn(folder)).toEqual([nameOf(9)]);
    expect(readFileSync(join(folder, nameOf(9)), "utf8")).toBe("the first one");
  });

  test("is made anew by the next start when the first was killed before it was whole", async () => {
    const folder = earlierFolder(before);
    writeFileSync(join(folder, `${nameOf(before)}.part`), "half of it");
    writeFileSync(join(folder, `${nameOf(3, 5)}.part`), "of another program");
    await upgrade(folder);
    expect(snapshotsIn(folder)).toEqual([nameOf(before)]);
    expect(versionOf(folder, nameOf(before))).toBe(before);
  });

  test("replaces the earlier ones once the upgrade has ended", async () => {
    const folder = earlierFolder(before);
    const older = [nameOf(3, 4), nameOf(4, before)];
    const keys = [nameOf(3, 4), nameOf(before)].map((name) => join(folder, `${name}.master-key`));
    for (const key of keys) writeFileSync(key, "of a copy that is gone by then");
    for (const name of older) writeFileSync(join(folder, name), "");
    writeFileSync(join(folder, `${databaseFile}.bak`), "of somebody else");
    const { told } = await upgrade(folder);
    expect(told).toContainEqual(expect.arrayContaining(older.map((name) => join(folder, name))));
    expect(
      readdirSync(folder)
        .filter((name) => name.endsWith(".bak"))
        .sort(),
    ).toEqual([`${databaseFile}.bak`, nameOf(before)]);
    expect(keys.filter((key) => existsSync(key))).toEqual([]);
  });

  test("is left out with --no-snapshot, and earlier ones stay", async () => {
    const folder = earlierFolder(before);
    writeFileSync(join(folder, nameOf(3, 4)), "");
    expect(await upgrade(folder, { takesSnapshot: false })).toEqual({ finished: true, told: [] });
    expect(snapshotsIn(folder)).toEqual([nameOf(3, 4)]);
    expect(versionOf(folder)).toBe(today);
  });

  test("that cannot be written stops the upgrade before anything is changed", async () => {
    const folder = earlierFolder(before, 2_000);
    inDatabase(folder, databaseFile, (client) => client.run("pragma journal_mode = delete"));
    const bytes = readFileSync(join(folder, databaseFile));
    // A page of the history, which no start looks at.
    bytes.fill(0xff, bytes.length / 2, bytes.length / 2 + 4096);
    writeFileSync(join(folder, databaseFile), bytes);
    expect(await refusalOf(folder)).toMatch(
      /snapshot of .* cannot be written \(database disk image is malformed\); nothing was changed\. Try: .*--no-snapshot/,
    );
    expect([versionOf(folder), snapshotsIn(folder)]).toEqual([before, []]);
  });
});

const smallDisk = mountSmallDisk(24);
afterAll(() => smallDisk?.unmount());

describe.skipIf(smallDisk === null)("without room for a snapshot (needs to be root, to mount a small disk)", () => {
  test("the upgrade stops and says what else there is; --no-snapshot does without", async () => {
    const { folder } = smallDisk as NonNullable<typeof smallDisk>;
    cpSync(earlierFolder(before, 20_000), folder, { recursive: true });
    expect(await refusalOf(folder)).toMatch(
      /needs \d+ MiB .*\d+ MiB of it for a snapshot.* nothing was changed\. Try: make room.*, or make a copy of your own and start with --no-snapshot/,
    );
    expect([versionOf(folder), snapshotsIn(folder)]).toEqual([before, []]);
    await upgrade(folder, { takesSnapshot: false });
    expect(versionOf(folder)).toBe(today);
  });
});

describe("an earlier program on a database that was upgraded", () => {
  /** What the program of the schema before says. */
  function saidBy(folder: string, known = before): string {
    return inDatabase(folder, databaseFile, (client) => {
      try {
        migrate(client, migrations.slice(0, known));
        return "";
      } catch (error) {
        return String(error);
      }
    });
  }

  /** A copy: here a connection may be closed late, and takes the log of whatever has its name by then along. */
  async function upgradedFolder(): Promise<string> {
    const upgraded = earlierFolder(before);
    await upgrade(upgraded);
    const folder = newFolder();
    cpSync(upgraded, folder, { recursive: true });
    return folder;
  }

  test("names both versions and the snapshot, and its commands go back", async () => {
    const folder = await upgradedFolder();
    const said = saidBy(folder);
    expect(said).toContain(
      `written by a newer Postrider (${version}, schema ${today}); this is ${version}, which knows`,
    );
    expect(said).toContain(
      `which knows schema ${before}. Try: run ${version} or a later one; or go back to the snapshot`,
    );
    const [, commands = ""] = /without what came since: (.*)\.$/.exec(said) ?? [];
    expect(commands).toContain(nameOf(before));
    expect(Bun.spawnSync(["sh", "-c", commands]).exitCode).toBe(0);
    expect(versionOf(folder)).toBe(before);
    expect(saidBy(folder)).toBe("");
    expect(versionOf(folder, `${databaseFile}.v${today}`)).toBe(today);
    expect(snapshotsIn(folder)).toEqual([]);
  });

  test.each([
    ["beside its key", false],
    ["as a link to another disk", true],
  ])("whose master key has been replaced since goes back to both: %s", async (_, isLink) => {
    const folder = await upgradedFolder();
    const home = isLink ? join(newFolder(), "Bob's data") : folder;
    if (isLink) {
      mkdirSync(home);
      symlinkSync(join(folder, databaseFile), join(home, databaseFile));
    }
    const key = join(home, "master-key");
    writeFileSync(key, "the new key");
    writeFileSync(join(folder, `${nameOf(before)}.master-key`), "the former key");
    const [, commands = ""] = /without what came since: (.*)\.$/.exec(saidBy(home)) ?? [];
    expect(Bun.spawnSync(["sh", "-c", commands]).exitCode).toBe(0);
    expect(versionOf(home)).toBe(before);
    expect([key, `${key}.v${today}`].map((file) => readFileSync(file, "utf8"))).toEqual([
      "the former key",
      "the new key",
    ]);
    expect(snapshotsIn(folder)).toEqual([]);
  });

  test("that is older than the snapshot says which schema it needs", async () => {
    const folder = earlierFolder(before);
    await upgrade(folder);
    expect(saidBy(folder, before - 2)).toContain(
      `before the upgrade, with a version that knows schema ${before}, without`,
    );
  });

  test("names a backup when the snapshot is gone, or there was none", async () => {
    const folder = earlierFolder(before);
    await upgrade(folder);
    rmSync(join(folder, nameOf(before)));
    expect(saidBy(folder)).toMatch(/; or point POSTRIDER_DATA_DIR at a backup made before the upgrade\.$/);
  });

  test("names it in a folder that has to be quoted, and where the database is a link to another disk", async () => {
    const disk = join(newFolder(), "Bob's disk");
    const first = join(newFolder(), "Bob's first disk");
    const link = newFolder();
    cpSync(earlierFolder(before), first, { recursive: true });
    symlinkSync(join(first, databaseFile), join(link, databaseFile));
    await upgrade(link);
    cpSync(first, disk, { recursive: true });
    rmSync(join(link, databaseFile));
    symlinkSync(join(disk, databaseFile), join(link, databaseFile));
    expect(existsSync(join(disk, nameOf(before)))).toBe(true);
    const [, commands = ""] = /without what came since: (.*)\.$/.exec(saidBy(link)) ?? [];
    expect(Bun.spawnSync(["sh", "-c", commands]).exitCode).toBe(0);
    expect(versionOf(link)).toBe(before);
  });
});
