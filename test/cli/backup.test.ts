import { Database } from "bun:sqlite";
import { afterAll, describe, expect, test } from "bun:test";
import {
  copyFileSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { basename, join } from "node:path";
import { parseHistory } from "../../src/backup/history.ts";
import { backupName } from "../../src/backup/place.ts";
import { runCommand } from "../../src/cli/run.ts";
import { noteBackupsIn, openDataDir, readBackupNotesIn } from "../../src/data-dir.ts";
import type { MoveMark } from "../../src/store/move-mark.ts";
import { databaseFile } from "../../src/store/sqlite/open.ts";
import { createBackedUp, markMove } from "../support/backed-up.ts";
import { overwritePages, pagesOf } from "../support/damaged-database.ts";
import { rowsOf } from "../support/filled-folder.ts";
import { createScriptedIo } from "../support/scripted-io.ts";
import { mountSmallDisk } from "../support/small-disk.ts";

const { folder, dataDir, backups, run, backUp, remove } = await createBackedUp();
afterAll(remove);

describe("postrider backup", () => {
  test("makes an archive that can be restored to what was there", async () => {
    const backup = await backUp();
    expect(readdirSync(backups)).toEqual([expect.stringMatching(/^postrider-\d{8}T\d{6}\.\d{3}Z\.tar\.zst$/)]);
    expect(statSync(backup).mode & 0o777).toBe(0o600);

    const verified = await run(["backup", "verify", backup]);
    expect(verified).toMatchObject({ code: 0, err: "" });
    expect(verified.out).toContain("is whole");

    const restored = join(folder, "restored");
    const { code, out } = await run(["restore", backups, "--data-dir", restored]);
    expect(out).toMatch(/It has \d+ deliveries pending\. They are made when the server starts, again if/);
    expect(code).toBe(0);
    for (const name of ["master-key", "session-secret", "operator-token"]) {
      expect(readFileSync(join(restored, name))).toEqual(readFileSync(join(dataDir, name)));
    }
    expect(readdirSync(restored).sort()).toEqual(
      ["lock.db", "master-key", "operator-token", databaseFile, "session-secret"].sort(),
    );
    expect(rowsOf(restored)).toEqual(rowsOf(dataDir));
    // Everything is as a server wants it, and nothing is held back.
    const entered = openDataDir(restored, (warning) => expect(warning).toBe(""));
    expect(entered.held).toEqual([]);
    entered.release();
  });

  test("replaces a file that is named, and is verified at once when that is asked", async () => {
    const file = join(folder, "named.tar.zst");
    await backUp(file);
    const { ino: earlier } = statSync(file);
    // One is left of a process that was killed long ago, and another one is being written.
    const stale = join(folder, ".postrider-x.unfinished-1");
    writeFileSync(stale, "");
    utimesSync(stale, 1, 1);
    writeFileSync(join(folder, ".postrider-y.unfinished-1"), "");
    const { code, out } = await run(["backup", file, "--verify"]);
    expect(out).toMatch(
      /named\.tar\.zst: [\d.]+ KiB, .* deliveries pending; it took .*\nIt was read back and verified\./,
    );
    expect(code).toBe(0);
    expect(statSync(file).ino).not.toBe(earlier);
    expect(readdirSync(folder).filter((name) => name.includes("unfinished"))).toEqual([".postrider-y.unfinished-1"]);
    const unverified = await run(["backup", file, "--verify", "--dir", "/nowhere", "--json"]);
    const error = `${file} was made, but could not be verified: No folder can be made in /nowhere`;
    expect([unverified.code, unverified.err]).toEqual([1, expect.stringContaining(error)]);
    // It is there all the same.
    expect(JSON.parse(unverified.out)).toMatchObject({
      ...{
        backup: file,
        bytes: statSync(file).size,
        verified: null,
        faults: [],
        error: expect.stringContaining(error),
      },
    });
  });

  test("takes an empty file, and an encrypted backup, for its own", async () => {
    const file = join(folder, "own.tar.zst");
    for (const content of ["", "age-encryption.org/v1\n-> X25519"]) {
      writeFileSync(file, content);
      expect(await backUp(file)).toBe(file);
      expect((await run(["backup", "verify", file])).code).toBe(0);
    }
  });

  test.each<[string, (path: string) => void]>([
    ["a database", (path) => copyFileSync(join(dataDir, databaseFile), path)],
    ["a short letter", (path) => writeFileSync(path, "x")],
    ["a pipe", (path) => Bun.spawnSync(["mkfifo", path])],
    ["a link to a backup", (path) => symlinkSync(join(folder, "linked.tar.zst"), path)],
  ])("never replaces %s", async (what, put) => {
    await backUp(join(folder, "linked.tar.zst"));
    const path = join(folder, `${what.replaceAll(" ", "-")}.db`);
    put(path);
    const { ino, mtimeMs } = lstatSync(path);
    expect(await run(["backup", path])).toEqual({
      code: 1,
      out: "",
      err: `postrider: ${path} is not a backup, and only a backup is replaced. Try: another name, or a folder.`,
    });
    expect(lstatSync(path)).toMatchObject({ ino, mtimeMs });
  });

  test("that is stopped says whether there is a backup", async () => {
    const file = join(folder, "stopped.tar.zst");
    const begin = (POSTRIDER_DATA_DIR: string) => {
      const { io, err, interrupt, when, progress } = createScriptedIo({ env: { POSTRIDER_DATA_DIR } });
      const begun = (step: string) => when(progress, (line) => line.startsWith(step));
      return { begun, interrupt, end: async () => ({ code: await runCommand(["backup", file, "--verify"], io), err }) };
    };
    // A signal is noticed after each MiB.
    const large = join(folder, "large");
    cpSync(dataDir, large, { recursive: true });
    const client = new Database(join(large, databaseFile), { readwrite: true });
    client.run("update tenant set name = hex(zeroblob(1048576))");
    client.close(true);
    const early = begin(large);
    early.interrupt();
    expect(await early.end()).toEqual({ code: 130, err: ["The backup was stopped. Nothing was kept."] });
    expect(existsSync(file)).toBe(false);

    const late = begin(dataDir);
    const ended = late.end();
    await late.begun("Verifying");
    late.interrupt();
    expect(await ended).toEqual({
      code: 130,
      err: [`${file} was made, but not verified: the verification was stopped.`],
    });
    expect((await run(["backup", "verify", file])).code).toBe(0);
  });

  test.each<[MoveMark["role"], string]>([
    [
      "left",
      "was moved to PostgreSQL at db/postrider, and what is left here is no longer kept up to date. Try: set POSTRIDER_DATABASE_URL",
    ],
    ["arriving", "has not ended. Try: run the same postrider move again"],
  ])("of a database that a move has %s is refused, as a start is", async (role, words) => {
    const moved = join(folder, `moved-${role}`);
    cpSync(dataDir, moved, { recursive: true });
    markMove(moved, role);
    const to = join(folder, `of-${role}`);
    const { code, err } = await run(["backup", to, "--data-dir", moved]);
    expect(code).toBe(1);
    expect(err).toContain(words);
    expect(existsSync(to)).toBe(false);
  });

  test.each([
    ["backup", "delivery", [["backup"], ["backup", "--verify"]]],
    ["whatever opens it", "sqlite_schema", [["backup"], ["compact"], ["rotate-key"]]],
  ])("of a damaged database is refused as a start is: %s, with a page of %s lost", async (_, table, commands) => {
    const damaged = join(folder, `damaged-${table}`);
    cpSync(dataDir, damaged, { recursive: true });
    overwritePages(damaged, pagesOf(damaged, table, "leaf").slice(-1));
    for (const command of commands) {
      const { code, err } = await run([...command, "--data-dir", damaged], { POSTRIDER_BACKUP_URL: backups });
      expect(code).toBe(1);
      expect(err).toMatch(/The database .* is damaged \(.*\)\. Try: restore it from a backup/);
    }
  });

  test("makes the folder that is named if it is not there yet, with a slash at its end or without", async () => {
    const daily = join(folder, "daily");
    expect(await backUp(daily)).toStartWith(`${daily}/postrider-`);
    expect(await backUp(daily)).toStartWith(`${daily}/postrider-`);
    expect(readdirSync(daily)).toHaveLength(2);
  });

  test("takes what the setting names for a folder, also when it is not there yet and looks like a file", async () => {
    const env = { POSTRIDER_BACKUP_URL: join(folder, "relay.example.com") };
    for (const made of [1, 2]) {
      expect((await run(["backup"], env)).out).toStartWith(`${env.POSTRIDER_BACKUP_URL}/postrider-`);
      expect(readdirSync(env.POSTRIDER_BACKUP_URL)).toHaveLength(made);
    }
    const verified = await run(["backup", "verify"], env);
    expect(verified).toMatchObject({ code: 0, err: "" });
    expect(verified.out).toStartWith(`${env.POSTRIDER_BACKUP_URL}/postrider-`);
    expect((await run(["restore"], env)).err).toContain('"postrider restore" needs FROM');
  });

  test("made where the server makes its own clears an earlier failure, also while none runs", async () => {
    const failed = { kind: "backup", name: null, at: 1, tookMs: 1, bytes: null, error: "no room" };
    noteBackupsIn(dataDir, JSON.stringify({ latest: failed, latestBackup: failed, verified: {}, made: [] }));
    const env = { POSTRIDER_BACKUP_URL: join(folder, "usual") };
    await backUp(join(folder, "elsewhere/"));
    expect(parseHistory(readBackupNotesIn(dataDir)).latest?.error).toBe("no room");
    const { backup } = JSON.parse((await run(["backup", "--verify", "--json"], env)).out);
    const name = basename(backup);
    const history = parseHistory(readBackupNotesIn(dataDir));
    // It is not the server's to remove.
    expect(history).toMatchObject({
      latest: { kind: "backup", name, error: null },
      verified: { [name]: true },
      made: [],
    });
  });

  test("goes to a folder without the keys of the bucket where the server makes its own", async () => {
    const { code, err } = await run(["backup", join(folder, "here")], { POSTRIDER_BACKUP_URL: "s3://backups/x" });
    expect({ code, err }).toEqual({ code: 0, err: "" });
  });

  test.each(["", "/", "/."])("is the server's also if its place is named in full, with %p at its end", async (end) => {
    const failed = { kind: "backup", name: null, at: 1, tookMs: 1, bytes: null, error: "no room" };
    noteBackupsIn(dataDir, JSON.stringify({ latest: failed, latestBackup: failed, verified: {}, made: [] }));
    const place = join(folder, "named in full");
    const { code, out } = await run(["backup", place + end, "--verify", "--json"], { POSTRIDER_BACKUP_URL: place });
    expect(code).toBe(0);
    const name = basename(JSON.parse(out).backup);
    expect(parseHistory(readBackupNotesIn(dataDir))).toMatchObject({ latest: { name, error: null } });
    // A file of its own there is none of those that are listed.
    await run(["backup", join(place, "own.tar.zst")], { POSTRIDER_BACKUP_URL: place });
    expect(parseHistory(readBackupNotesIn(dataDir))).toMatchObject({ latest: { name } });
  });

  test("that has only files with names of their own says what is there", async () => {
    const place = join(folder, "named");
    const file = join(place, "relay.tar.zst");
    mkdirSync(place);
    writeFileSync(join(place, "notes.txt"), "");
    expect((await run(["backup", "verify", place])).err).toContain(`There is no backup in ${place}. Try: the folder`);
    await backUp(file);
    const { code, err } = await run(["backup", "verify", place]);
    expect(code).toBe(1);
    expect(err).toContain(
      `No backup in ${place} is named by its time, but relay.tar.zst is there. Try: give its name, ${file}`,
    );
    expect(await run(["backup", "verify", file])).toMatchObject({ code: 0 });
  });

  test("whose newest is damaged, or none of ours, has the one before it named", async () => {
    const places = join(folder, "damaged");
    const before = await backUp(places);
    const newest = join(places, backupName(Date.now() + 60_000, false));
    const bytes = readFileSync(before);
    const rows: [string, Uint8Array][] = [
      ["it is damaged", Buffer.concat([bytes.subarray(0, 4), Buffer.alloc(200, 255)])],
      ["it is cut short", bytes.subarray(0, bytes.length >> 1)],
      ["postrider backup did not write it", Buffer.from("a letter, not an archive of any kind")],
    ];
    for (const [words, content] of rows) {
      writeFileSync(newest, content);
      const { code, err } = await run(["restore", places, "--data-dir", join(folder, "none")]);
      expect(code).toBe(1);
      expect(err).toContain(`${newest} is not a complete backup: ${words}. Try: the one before it, ${before}.`);
    }
  });

  test("says that a master key which is kept elsewhere is not in it", async () => {
    const env = { POSTRIDER_MASTER_KEY_FILE: join(folder, "key-elsewhere") };
    copyFileSync(join(dataDir, "master-key"), env.POSTRIDER_MASTER_KEY_FILE);
    const file = join(folder, "keyless.tar.zst");
    expect((await run(["backup", file], env)).out).toContain("The master key is not in it");
    expect((await run(["backup", "verify", file])).out).toContain("was not tried");
    expect((await run(["backup", "verify", file], env)).out).not.toContain("was not tried");
    const restored = join(folder, "keyless");
    expect((await run(["restore", file, "--data-dir", restored])).out).toContain("needs POSTRIDER_MASTER_KEY_FILE");
    expect(existsSync(join(restored, "master-key"))).toBe(false);
  });

  test("from before a rotation is whole with the key from then, which is named to restore it", async () => {
    const key = join(folder, "rotated-key");
    const env = { POSTRIDER_MASTER_KEY_FILE: key };
    copyFileSync(join(dataDir, "master-key"), key);
    const file = join(folder, "rotated.tar.zst");
    await backUp(file, env);
    writeFileSync(key, "0".repeat(64));
    const restored = ["restore", file, "--data-dir", join(folder, "rotated")];
    const words = `${file} does not open with ${key}, and its own master key was kept elsewhere. Try: POSTRIDER_MASTER_KEY_FILE`;
    const unknown = `${words} with the key that the server had when the backup was made.`;
    expect(await run(["backup", "verify", file], env)).toMatchObject({ code: 1, out: unknown });
    const verifyAsJson = async () => JSON.parse((await run(["backup", "verify", file, "--json"], env)).out);
    expect(await verifyAsJson()).toMatchObject({
      ...{ verified: false, faults: ["the master key does not open what is sealed in the database"] },
      ...{ masterKeyOpens: false, formerKeyFile: null },
    });
    writeFileSync(`${key}.before`, "1".repeat(64));
    expect(await run(["backup", "verify", file], env)).toMatchObject({ code: 1, out: unknown });
    copyFileSync(join(dataDir, "master-key"), `${key}.before`);
    const before = `${words}=${key}.before, the key from before the last rotation.`;
    expect(await run(restored, env)).toMatchObject({ code: 1, err: `postrider: ${before}` });
    expect(await verifyAsJson()).toMatchObject({
      ...{ verified: true, faults: [], masterKeyOpens: true, formerKeyFile: `${key}.before` },
    });
    const { code, out } = await run(["backup", "verify", file], env);
    expect([code, out]).toEqual([0, expect.stringContaining(`set POSTRIDER_MASTER_KEY_FILE=${key}.before.`)]);
    expect((await run(restored, { POSTRIDER_MASTER_KEY_FILE: `${key}.before` })).code).toBe(0);
  });

  test("leaves nothing on a disk that is full", async () => {
    const disk = mountSmallDisk(1);
    if (disk === null) return;
    try {
      disk.fill();
      // Some of it fits.
      truncateSync(join(disk.folder, "ballast"), 2 ** 20 - 2 * 4096);
      const { code, err } = await run(["backup", `${disk.folder}/`]);
      expect(code).toBe(1);
      expect(err).toContain("Try: free up space");
      expect(readdirSync(disk.folder)).toEqual(["ballast"]);
    } finally {
      disk.unmount();
    }
  });

  test.each([
    [["backup"], { POSTRIDER_DATABASE_URL: "postgres://a:secret@db/c" }, "Try: pg_dump"],
    [["backup", "x", "y"], {}, "A backup goes to one place. Try: postrider backup x"],
    [["backup", "verify", "x", "y"], {}, "One backup is verified at a time. Try: postrider backup verify x"],
    [["backup", "verfy", "y"], {}, 'There is no command "backup verfy". Try: postrider backup verify y'],
    [["backup", "/dev/null/there/"], {}, "cannot be written"],
    [["backup", "x.tar.zst"], { POSTRIDER_DATA_DIR: "/nowhere" }, "name the server's folder"],
    [["backup", "verify", "/nowhere.tar.zst"], {}, "cannot be read"],
    [["backup", "verify", "/usr/bin/"], {}, "There is no backup in"],
    [["restore", "/nowhere.tar.zst", "--pending", "drop"], {}, "--pending must be one of"],
  ])("%j does not work with %j", async (args, env, said) => {
    const { code, err } = await run(args, env);
    expect(code).toBeGreaterThan(0);
    expect(err).toContain(said);
    expect(err).toContain("Try: ");
    expect(err).not.toContain("secret@");
  });
});
