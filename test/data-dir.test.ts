import { Database } from "bun:sqlite";
import { afterAll, afterEach, describe, expect, spyOn, test } from "bun:test";
import {
  chmodSync,
  chownSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type DataDir, enterDataDir, openDataDir } from "../src/data-dir.ts";
import { StartupError } from "../src/domain/errors.ts";
import { systemClock } from "../src/lib/clock.ts";
import { readServerFile } from "../src/server-file.ts";
import { openStore } from "../src/store/open.ts";
import { writeMoveMark } from "../src/store/sqlite/move-mark.ts";
import { databaseFile } from "../src/store/sqlite/open.ts";
import { createFakeClock, type FakeClock } from "./support/fake-clock.ts";
import { mountSmallDisk } from "./support/small-disk.ts";
import { newTenant } from "./support/store-factory.ts";

const secretFiles = ["master-key", "session-secret", "operator-token"];

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "postrider-data-dir-"));
  folders.push(folder);
  return folder;
}

function reopened(folder: string): DataDir {
  const dataDir = openDataDir(folder);
  dataDir.release();
  return dataDir;
}

const refusal = (open: () => unknown): string => {
  try {
    open();
  } catch (error) {
    if (error instanceof StartupError) return error.message;
    throw error;
  }
  return "opened";
};

describe("what a server was known as among those that share a database", () => {
  test("is what the next one here finds, and none that was started on a copy", () => {
    const folder = newFolder();
    const first = openDataDir(folder);
    expect(first.lastNode()).toBeNull();
    first.noteNode("7@1");
    first.noteNode("8@2");
    first.release();
    expect(reopened(folder).lastNode()).toBe("8@2");
    const copy = newFolder();
    for (const name of readdirSync(folder)) copyFileSync(join(folder, name), join(copy, name));
    expect(reopened(copy).lastNode()).toBeNull();
  });
});

describe("the secrets of servers that share a database", () => {
  const open = (folder: string, masterKeyFile: string | null, isShared = true) => {
    const warnings: string[] = [];
    const dataDir = openDataDir(folder, (message) => void warnings.push(message), { masterKeyFile, isShared });
    dataDir.release();
    const { masterKey, ...rest } = dataDir.secrets;
    return { ...rest, masterKey: Buffer.from(masterKey).toString("hex"), warnings };
  };
  const keyFile = (text: string) => {
    const path = join(newFolder(), "key");
    writeFileSync(path, text, { mode: 0o600 });
    return path;
  };
  const key = "0123456789abcdef".repeat(4);

  test("all follow from the same master key, and stay so", () => {
    const [one, other] = [newFolder(), newFolder()];
    const first = open(one, keyFile(`${key}\n`));
    expect(first.masterKey).toBe(key);
    expect(open(other, keyFile(key))).toEqual(first);
    expect(open(one, keyFile(key))).toEqual(first);
    expect(first.operatorToken).toMatch(/^svc_op_[0-9a-f]{48}$/);
    expect(existsSync(join(one, "master-key"))).toBe(false);
    expect(readFileSync(join(one, "operator-token"), "utf8").trim()).toBe(first.operatorToken);
    expect(new Set([first.operatorToken, first.sessionSecret, key]).size).toBe(3);
  });

  test("of another master key are others", () => {
    const [one, other] = [key, key.replaceAll("0", "f")].map((text) => open(newFolder(), keyFile(text)));
    expect(one?.sessionSecret).not.toBe(other?.sessionSecret);
    expect(one?.operatorToken).not.toBe(other?.operatorToken);
  });

  test("that have files of their own are those: a server that has moved keeps its sessions and its token", () => {
    const folder = newFolder();
    const before = reopened(folder).secrets;
    const after = open(folder, null);
    expect(after).toMatchObject({ sessionSecret: before.sessionSecret, operatorToken: before.operatorToken });
    expect(after.masterKey).toBe(Buffer.from(before.masterKey).toString("hex"));
  });

  test("a database that stays behind in the folder is told of", () => {
    const folder = newFolder();
    reopened(folder);
    writeFileSync(join(folder, databaseFile), "a database");
    expect(open(folder, null).warnings.join()).toMatch(/postrider\.db is not used.*postrider move/);
  });

  test("and one that was moved is not", () => {
    const folder = newFolder();
    reopened(folder);
    const client = new Database(join(folder, databaseFile), { create: true, strict: true });
    writeMoveMark(client, { move: "move_1", role: "left", place: "PostgreSQL db/postrider" });
    client.close();
    chmodSync(join(folder, databaseFile), 0o600);
    expect(open(folder, null).warnings).toEqual([]);
    expect(reopened(folder).movedTo()).toBe("PostgreSQL db/postrider");
    expect(reopened(newFolder()).movedTo()).toBeNull();
  });

  test.each([
    [null, /cannot be read: \/nowhere .*Try: check the path/],
    ["not a key", /does not contain 64 hexadecimal digits/],
    ["", /does not contain 64 hexadecimal digits/],
  ])("a file with %p is refused, and no key is made", (text, expected) => {
    const folder = newFolder();
    const path = text === null ? "/nowhere" : keyFile(text);
    const message = refusal(() => openDataDir(folder, undefined, { masterKeyFile: path, isShared: true }));
    expect(message).toStartWith("POSTRIDER_MASTER_KEY_FILE");
    expect(message).toMatch(expected);
    expect(existsSync(join(folder, "master-key"))).toBe(false);
  });

  test("a master key elsewhere serves a server that is alone as well", () => {
    const folder = newFolder();
    const { masterKey, operatorToken } = open(folder, keyFile(key), false);
    expect(masterKey).toBe(key);
    expect(open(newFolder(), keyFile(key), false).operatorToken).not.toBe(operatorToken);
  });
});

describe("the secrets of a data directory", () => {
  test("are made once, for this user alone", () => {
    const folder = newFolder();
    const made = reopened(folder);
    expect(reopened(folder).secrets).toEqual(made.secrets);
    expect(new Set(Object.values(made.secrets)).size).toBe(3);
    for (const name of secretFiles) expect([name, statSync(join(folder, name)).mode & 0o77]).toEqual([name, 0]);
  });

  test.each(secretFiles)("a start that died while it wrote %s is followed by one that writes it whole", (name) => {
    const folder = newFolder();
    writeFileSync(join(folder, `${name}.new`), "half a se");
    const { secrets } = reopened(folder);
    expect(readdirSync(folder).filter((file) => file.endsWith(".new"))).toEqual([]);
    expect(readFileSync(join(folder, name), "utf8")).not.toContain("half");
    expect(reopened(folder).secrets).toEqual(secrets);
  });

  test.each([
    ["session-secret", /session-secret is empty\. Try: restore it from a backup, or delete it/],
    ["operator-token", /operator-token is empty\. Try: restore it from a backup, or delete it/],
    ["master-key", /master-key is damaged.*Try: restore it from a backup; without it, stored keys cannot be decrypted/],
  ])("an empty %s is refused, with what to do", (name, message) => {
    const folder = newFolder();
    reopened(folder);
    writeFileSync(join(folder, name), "");
    expect(refusal(() => openDataDir(folder))).toMatch(message);
    expect(readFileSync(join(folder, name), "utf8")).toBe("");
  });
});

describe("a database without all of its secrets", () => {
  function started(): string {
    const folder = newFolder();
    reopened(folder);
    writeFileSync(join(folder, databaseFile), "something is stored", { mode: 0o600 });
    return folder;
  }

  test("does not start without the master key, and none is made", () => {
    const folder = started();
    rmSync(join(folder, "master-key"));
    expect(refusal(() => openDataDir(folder))).toMatch(/master-key is missing.*Try: restore it from a backup/);
    expect(existsSync(join(folder, "master-key"))).toBe(false);
    expect(refusal(() => openDataDir(folder))).toMatch(/master-key is missing/);
  });

  test.each([
    ["session-secret", /session-secret was missing and has been regenerated: every session has ended/],
    ["operator-token", /operator-token was missing and has been regenerated: everything that used the old one/],
  ])("goes on without %s, and says what that means", (name, message) => {
    const folder = started();
    const before = readFileSync(join(folder, name), "utf8");
    rmSync(join(folder, name));
    const warnings: string[] = [];
    openDataDir(folder, (warning) => warnings.push(warning)).release();
    expect(warnings).toEqual([expect.stringMatching(message)]);
    expect(readFileSync(join(folder, name), "utf8")).not.toBe(before);
  });

  test.each([
    ["too short", (key: string) => key.slice(0, 40)],
    ["too long", (key: string) => `${key.trim()}00`],
    ["with another digit", (key: string) => `x${key.slice(1)}`],
    ["of two lines", (key: string) => `${key}${key}`],
  ])("does not start with a master key that is %s", (_name, damage) => {
    const folder = started();
    const path = join(folder, "master-key");
    writeFileSync(path, damage(readFileSync(path, "utf8")));
    expect(refusal(() => openDataDir(folder))).toMatch(/master-key is damaged.*Try: restore it/);
  });

  test("a log without its database is refused, for SQLite would delete it", () => {
    const folder = started();
    renameSync(join(folder, databaseFile), join(folder, `${databaseFile}-wal`));
    expect(refusal(() => openDataDir(folder))).toMatch(/postrider\.db is missing.*Try: put the database back/);
  });

  test("so is the log of a database that is a link to nothing", () => {
    const [folder, disk] = [started(), newFolder()];
    renameSync(join(folder, databaseFile), join(disk, `${databaseFile}-wal`));
    symlinkSync(join(disk, databaseFile), join(folder, databaseFile));
    expect(refusal(() => openDataDir(folder))).toMatch(/postrider\.db is missing.*Try: put the database back/);
  });

  test("a database that was not there is named before a new one is made", () => {
    const folder = started();
    rmSync(join(folder, databaseFile));
    const warnings: string[] = [];
    openDataDir(folder, (warning) => warnings.push(warning)).release();
    expect(warnings).toEqual([expect.stringMatching(/postrider\.db was not found.*restore it from a backup/)]);
  });
});

describe.skipIf(process.platform === "win32")("what others may do in a data directory", () => {
  const own = [...secretFiles, "lock.db", "node.json", databaseFile, `${databaseFile}-wal`, `${databaseFile}-shm`];
  const modeOf = (path: string) => statSync(path).mode & 0o7777;

  test.each(own)("%s is closed to them again, with a warning", (name) => {
    const folder = newFolder();
    reopened(folder);
    if (!existsSync(join(folder, name))) writeFileSync(join(folder, name), "");
    if (name === `${databaseFile}-wal` || name === `${databaseFile}-shm`)
      writeFileSync(join(folder, databaseFile), "x", { mode: 0o600 });
    chmodSync(join(folder, name), 0o644);
    const warnings: string[] = [];
    const dataDir = openDataDir(folder, (warning) => warnings.push(warning));
    expect(modeOf(join(folder, name))).toBe(0o600);
    expect(warnings[0]).toMatch(new RegExp(`/${name} was accessible to other users \\(mode 0644\\)`));
    dataDir.release();
  });

  test("the folder is closed to them again, with a warning", () => {
    const folder = newFolder();
    reopened(folder);
    chmodSync(folder, 0o755);
    const warnings: string[] = [];
    openDataDir(folder, (warning) => warnings.push(warning)).release();
    expect(modeOf(folder)).toBe(0o700);
    expect(warnings[0]).toMatch(/was accessible to other users \(mode 0755\)/);
  });

  test.each([
    ["is for everybody", 0o1777, "server.json"],
    ["holds what is not ours", 0o755, "index.html"],
  ])("a folder that %s is refused and left as it is", (_name, mode, name) => {
    const folder = newFolder();
    writeFileSync(join(folder, name), "");
    chmodSync(folder, mode);
    expect(refusal(() => openDataDir(folder))).toMatch(
      /accessible to other users.*contains other files.*Try: set POSTRIDER_DATA_DIR/,
    );
    expect([modeOf(folder), readdirSync(folder)]).toEqual([mode, [name]]);
  });

  test.each([".", "master-key", databaseFile])("%s of another user is refused, with what to do", (name) => {
    const folder = newFolder();
    reopened(folder);
    writeFileSync(join(folder, databaseFile), "x", { mode: 0o600 });
    const owner = statSync(join(folder, name)).uid;
    using _ = spyOn(process, "getuid").mockReturnValue(owner + 1);
    expect(refusal(() => openDataDir(folder))).toMatch(
      new RegExp(`belongs to another user \\(uid ${owner}, .*Try: run the server as`),
    );
  });

  test.skipIf(process.getuid?.() !== 0)(
    "root is warned of a folder that another user owns (needs root, to give it away)",
    () => {
      const folder = newFolder();
      reopened(folder);
      chownSync(folder, 12345, 12345);
      const warnings: string[] = [];
      openDataDir(folder, (warning) => warnings.push(warning)).release();
      expect(warnings).toContainEqual(expect.stringContaining(`${folder} belongs to another user (uid 12345)`));
    },
  );

  test.each([...secretFiles, "lock.db"])("%s that is a link is refused", (name) => {
    const folder = newFolder();
    const elsewhere = join(newFolder(), "file");
    reopened(folder);
    renameSync(join(folder, name), elsewhere);
    symlinkSync(elsewhere, join(folder, name));
    expect(refusal(() => openDataDir(folder))).toMatch(/is a symbolic link.*Try: replace it with the file itself/);
  });

  test.each(["server.json", "server.json.new"])("%s is written beside a link of its name, never through it", (name) => {
    const folder = newFolder();
    mkdirSync(join(folder, "elsewhere"));
    const target = join(folder, "elsewhere", "file");
    writeFileSync(target, "theirs");
    chmodSync(target, 0o644);
    symlinkSync(target, join(folder, name));
    const dataDir = openDataDir(folder);
    dataDir.announce({ pid: 1, url: "http://127.0.0.1:1" }, (warning) => expect(warning).toBe("none"));
    expect([readFileSync(target, "utf8"), modeOf(target)]).toEqual(["theirs", 0o644]);
    expect(modeOf(join(folder, "server.json"))).toBe(0o600);
    dataDir.release();
  });
});

describe("the lock of a data directory", () => {
  test("is held by one, and named in the refusal of the next", () => {
    const folder = newFolder();
    const first = openDataDir(folder);
    first.announce({ pid: 4711, url: "http://127.0.0.1:8080" }, () => {});
    expect(refusal(() => openDataDir(folder))).toMatch(/process 4711, http:\/\/127.0.0.1:8080.*Try: stop it first\.$/);
    first.release();
    expect(refusal(() => reopened(folder))).toBe("opened");
  });
});

describe("entering a data directory that another server holds", () => {
  const enter = (folder: string, clock: FakeClock, signal = new AbortController().signal) => {
    const waitedFor: number[] = [];
    const entered = enterDataDir(folder, {
      clock,
      signal,
      warn: () => {},
      onWaiting: ({ pid }) => void waitedFor.push(pid),
    });
    return { waitedFor, entered, outcome: entered.then((dataDir) => dataDir ?? "ended", String) };
  };
  const held = (stopping: boolean) => {
    const folder = newFolder();
    const dataDir = openDataDir(folder);
    dataDir.announce({ pid: 4711, url: "http://127.0.0.1:8080", stopping }, () => {});
    return { folder, dataDir };
  };

  /** In small steps, so that whoever waits looks as often as it would. */
  const pass = async (clock: FakeClock, ms: number) => {
    for (let passed = 0; passed < ms; passed += 100) {
      clock.advance(100);
      await new Promise((resolve) => setImmediate(resolve));
    }
  };

  test("waits for one that is ending, and enters when it has left", async () => {
    const { folder, dataDir } = held(true);
    const clock = createFakeClock();
    const { entered, waitedFor } = enter(folder, clock);
    await pass(clock, 9_000);
    dataDir.release();
    await pass(clock, 100);
    (await entered)?.release();
    expect(waitedFor).toEqual([4711]);
  });

  test("gives up on one that is ending after 15 s", async () => {
    const { folder, dataDir } = held(true);
    const clock = createFakeClock();
    const { outcome } = enter(folder, clock);
    await pass(clock, 14_900);
    expect(await Promise.race([outcome, "waits"])).toBe("waits");
    await pass(clock, 100);
    expect(await outcome).toMatch(
      /process 4711, .* and is shutting down\. Try: wait until it has stopped, or give this one its own/,
    );
    dataDir.release();
  });

  test("gives up on one that goes on after a second, in which it may say that it is ending", async () => {
    const { folder, dataDir } = held(false);
    const clock = createFakeClock();
    const { outcome, waitedFor } = enter(folder, clock);
    await pass(clock, 900);
    expect(await Promise.race([outcome, "waits"])).toBe("waits");
    await pass(clock, 100);
    expect(await outcome).toMatch(/process 4711, .*Try: stop it first, or give this one its own/);
    const other = enter(folder, clock);
    await pass(clock, 500);
    dataDir.announce({ pid: 4711, url: "http://127.0.0.1:8080", stopping: true }, () => {});
    await pass(clock, 5_000);
    dataDir.release();
    await pass(clock, 100);
    (await other.entered)?.release();
    expect([waitedFor, other.waitedFor]).toEqual([[], [4711]]);
  });

  test("ends at once by a signal", async () => {
    const { folder, dataDir } = held(true);
    const ended = new AbortController();
    const { outcome } = enter(folder, createFakeClock(), ended.signal);
    ended.abort();
    expect(await outcome).toBe("ended");
    dataDir.release();
  });

  test("is not held up by what a server that was killed has said", async () => {
    const { folder, dataDir } = held(true);
    const left = readFileSync(join(folder, "server.json"));
    dataDir.release();
    writeFileSync(join(folder, "server.json"), left);
    const { entered, waitedFor } = enter(folder, createFakeClock());
    (await entered)?.release();
    expect([waitedFor, readServerFile(folder)]).toEqual([[], null]);
  });
});

const smallDisk = mountSmallDisk(4);
afterAll(() => smallDisk?.unmount());
const needs = "(needs to be root, to mount a small disk)";

describe.skipIf(smallDisk === null)("a full disk", () => {
  const disk = smallDisk as NonNullable<typeof smallDisk>;
  afterEach(() => {
    disk.empty();
    for (const name of readdirSync(disk.folder)) rmSync(join(disk.folder, name), { recursive: true });
  });

  test(`refuses a first start with what to do, and leaves no half secret ${needs}`, () => {
    const folder = join(disk.folder, "data");
    disk.fill();
    expect(refusal(() => openDataDir(folder))).toMatch(/\(.*(full|no space).*\)\. Try: free up space on its disk/i);
    for (const name of secretFiles) expect(existsSync(join(folder, name))).toBe(false);
    disk.empty();
    expect(refusal(() => reopened(folder))).toBe("opened");
  });

  test(`lets a server end in order and start again, with what was committed ${needs}`, async () => {
    const folder = join(disk.folder, "data");
    reopened(folder);
    const { store } = await openStore({ dataDir: folder, clock: systemClock });
    const tenant = await store.createTenant(newTenant(), Date.now());
    await store.endSession("s1", Date.now() + 60_000);
    disk.fill();
    await store.close();
    const dataDir = openDataDir(folder);
    const warnings: string[] = [];
    dataDir.announce({ pid: 1, url: "http://127.0.0.1:1" }, (message) => warnings.push(message));
    expect(warnings).toEqual([expect.stringMatching(/server\.json cannot be written: .*no space/i)]);
    dataDir.release();
    const { store: again } = await openStore({ dataDir: folder, clock: systemClock });
    expect([await again.findSession(tenant.id, "s1"), await again.findSession(tenant.id, "s2")]).toEqual([
      null,
      tenant,
    ]);
    await again.close();
  });

  test(`refuses a database that comes from a backup, without a log beside it, with what to do ${needs}`, async () => {
    const backup = newFolder();
    const { store } = await openStore({ dataDir: backup, clock: systemClock });
    await store.close();
    copyFileSync(join(backup, databaseFile), join(disk.folder, databaseFile));
    disk.fill();
    const refused = await openStore({ dataDir: disk.folder, clock: systemClock }).catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(StartupError);
    expect((refused as StartupError).message).toMatch(
      /^The disk of .*postrider\.db is full\. Try: free some space; no accepted event is lost\.$/,
    );
  });
});
