import { Database } from "bun:sqlite";
import { afterAll, describe, expect, test } from "bun:test";
import {
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { openDataDir } from "../../src/data-dir.ts";
import { secretFiles } from "../../src/secrets.ts";
import type { MoveMark } from "../../src/store/move-mark.ts";
import { databaseFile } from "../../src/store/sqlite/open.ts";
import { createBackedUp, markMove } from "../support/backed-up.ts";
import { rowsOf } from "../support/filled-folder.ts";

const { folder, dataDir, backups, run, backUp, remove } = await createBackedUp();
afterAll(remove);

describe("postrider restore", () => {
  test.skipIf(process.getuid?.() !== 0).each([["hold"], ["fail"]])(
    "with --pending %s leaves every file to the folder's user when root runs it",
    async (way) => {
      const restored = join(folder, `service-${way}`);
      mkdirSync(restored, { mode: 0o700 });
      chownSync(restored, 12_345, 12_345);
      const { code } = await run(["restore", await backUp(), "--data-dir", restored, "--pending", way]);
      expect(code).toBe(0);
      const owners = readdirSync(restored).map((name) => [name, statSync(join(restored, name)).uid]);
      expect(owners.length).toBe(6);
      expect(owners.filter(([, uid]) => uid !== 12_345)).toEqual([]);
    },
  );

  test("begins paused when that is asked, until postrider resume", async () => {
    const restored = join(folder, "held");
    const { out } = await run(["restore", await backUp(), "--data-dir", restored, "--pending", "hold"]);
    expect(out).toContain("wait until postrider resume");
    const heldAtStart = () => {
      const entered = openDataDir(restored);
      try {
        return entered.held;
      } finally {
        entered.release();
      }
    };
    expect(heldAtStart()).toEqual(["deliveries", "charges"]);
    const entered = openDataDir(restored);
    entered.resumed("charges");
    entered.release();
    expect(heldAtStart()).toEqual(["deliveries"]);
  });

  test("holds back what is to wait until it has resumed: before that, it goes nowhere else", async () => {
    const restored = join(folder, "held-here");
    await run(["restore", await backUp(), "--data-dir", restored, "--pending", "hold"]);
    const moving = ["move", "--to", "postgres://nobody@127.0.0.1:1/none", "--data-dir", restored];
    const { code, err } = await run(moving);
    expect(code).toBe(1);
    expect(err).toMatch(
      /still holds back deliveries and charges\. Try: .* postrider resume, .*POSTRIDER_PAUSED=deliveries,charges\.$/,
    );
    const entered = openDataDir(restored);
    entered.resumed("deliveries");
    entered.release();
    expect((await run(moving)).err).toMatch(/still holds back charges\. Try: .*POSTRIDER_PAUSED=charges\.$/);
    const again = openDataDir(restored);
    again.resumed("charges");
    again.release();
    expect((await run(moving)).err).toContain("127.0.0.1:1/none");
  });

  test("lets what was pending fail when that is asked: until a server has done so, it goes nowhere else", async () => {
    const restored = join(folder, "failing");
    const { out } = await run(["restore", await backUp(), "--data-dir", restored, "--pending", "fail", "--json"]);
    expect(JSON.parse(out)).toMatchObject({ restored: true, way: "fail" });
    const moving = ["move", "--to", "postgres://nobody@127.0.0.1:1/none", "--data-dir", restored];
    expect((await run(moving)).err).toContain("was restored with --pending fail");
    const entered = openDataDir(restored, (warning) => expect(warning).toBe(""));
    expect([entered.failsPending(), entered.held]).toEqual([true, []]);
    entered.pendingFailed();
    expect(entered.failsPending()).toBe(false);
    entered.release();
    const again = join(folder, "failing-again");
    const said = await run(["restore", backups, "--data-dir", again, "--pending", "fail"]);
    expect(said.out).toMatch(
      /It has \d+ deliveries pending\. They fail when the server starts, and can then be replayed\./,
    );
  });

  test.each<[string, { unpacked: string[]; inPlace: string[] }]>([
    ["it waits for the archive", { unpacked: [], inPlace: [] }],
    ["it unpacks the secrets", { unpacked: ["master-key", "session-secret"], inPlace: [] }],
    ["it verifies what it unpacked", { unpacked: [...secretFiles, databaseFile], inPlace: [] }],
    ["it is put in place", { unpacked: ["operator-token", databaseFile], inPlace: ["master-key", "session-secret"] }],
  ])("that is killed while %s leaves no folder on which a server starts", async (_, { unpacked, inPlace }) => {
    const restored = join(folder, `killed-${unpacked.length}-${inPlace.length}`);
    const backup = await backUp();
    await run(["restore", backup, "--data-dir", restored]);
    mkdirSync(join(restored, "restoring"));
    for (const name of readdirSync(restored).filter((name) => ![...inPlace, "lock.db", "restoring"].includes(name))) {
      if (unpacked.includes(name)) renameSync(join(restored, name), join(restored, "restoring", name));
      else rmSync(join(restored, name));
    }
    const isRefused = () => {
      expect(() => openDataDir(restored)).toThrow(/was cut off.*Try: postrider restore again/);
      expect(readdirSync(restored).sort()).toEqual(["lock.db", ...inPlace, "restoring"].sort());
    };
    isRefused();
    if (inPlace.length > 0) {
      expect((await run(["restore", backup, "--data-dir", restored])).err).toContain("is not empty");
      isRefused();
    }
    for (const name of inPlace) rmSync(join(restored, name));
    expect((await run(["restore", backup, "--data-dir", restored])).code).toBe(0);
    openDataDir(restored).release();
    expect(rowsOf(restored)).toEqual(rowsOf(dataDir));
  });

  test("that is killed once everything is in place has made a folder on which a server starts", async () => {
    const restored = join(folder, "killed-at-the-end");
    await run(["restore", await backUp(), "--data-dir", restored]);
    mkdirSync(join(restored, "restoring"));
    openDataDir(restored).release();
    expect(rowsOf(restored)).toEqual(rowsOf(dataDir));
  });

  test("refuses a folder with something in it, and one that a server uses, and leaves both alone", async () => {
    const backup = await backUp();
    const full = join(folder, "full");
    mkdirSync(full);
    writeFileSync(join(full, "precious"), "");
    expect((await run(["restore", backup, "--data-dir", full])).err).toContain("is not empty (precious)");
    expect(readdirSync(full)).toEqual(["precious"]);
    const used = openDataDir(dataDir);
    expect((await run(["restore", backup, "--data-dir", dataDir])).err).toContain("A server is using");
    used.release();
    expect((await run(["restore", backup, "--data-dir", dataDir])).err).toContain("is not empty");
  });

  // What has been changed is changed in the database of an archive whose checksums are then made anew.
  let whole: string;
  const repacked = async (name: string, change: (inside: string) => void, sums = true): Promise<string> => {
    whole ??= await backUp();
    const inside = join(folder, `inside-${name}`);
    mkdirSync(inside);
    Bun.spawnSync(["tar", "--zstd", "-xf", whole, "-C", inside]);
    change(inside);
    const names = ["manifest.json", "master-key", "session-secret", "operator-token", databaseFile];
    if (sums) writeFileSync(join(inside, "SHA256SUMS"), Bun.spawnSync(["sha256sum", ...names], { cwd: inside }).stdout);
    const archive = join(folder, `${name}.tar.zst`);
    Bun.spawnSync(["tar", "--zstd", "-cf", archive, "-C", inside, ...names, "SHA256SUMS"]);
    return archive;
  };
  const inDatabase = (sql: string) => (inside: string) => {
    const client = new Database(join(inside, databaseFile), { readwrite: true });
    client.run("pragma journal_mode = delete");
    client.run(sql);
    client.close(true);
  };

  test.each([
    ["nothing", () => {}, true, null],
    ["a byte", inDatabase("update tenant set name = 'x'"), false, "the checksums do not agree"],
    [
      "a lost record",
      inDatabase("delete from attempt where key in (select key from attempt limit 1)"),
      true,
      "table attempt has",
    ],
    ["a counter", inDatabase("update tenant_usage set delivered = delivered + 1"), true, "the counters of"],
    [
      "an orphan",
      inDatabase("insert into api_key values (99, 'k', 999, x'00', x'00', 1, null, null)"),
      true,
      "has no tenant",
    ],
    [
      "the key",
      (inside: string) => writeFileSync(join(inside, "master-key"), "1".repeat(64)),
      true,
      "the master key does not open",
    ],
    ["a newer schema", inDatabase("pragma user_version = 4000"), true, "newer version"],
  ])("finds %s that has changed", async (name, change, sums, fault) => {
    const archive = await repacked(name.replaceAll(" ", "-"), change, sums);
    const { code, out, err } = await run(["backup", "verify", archive]);
    expect(code).toBe(fault === null ? 0 : 1);
    if (fault !== null) expect(`${out}${err}`).toContain(fault);
  });

  test.each<[MoveMark["role"], string]>([
    ["left", "its data had been moved to PostgreSQL at db/postrider before it was made"],
    ["arriving", "the move from PostgreSQL at db/postrider had not ended when it was made"],
  ])("cannot be relied on when a move had %s: no server starts on it", async (role, words) => {
    const archive = await repacked(role, (inside) => markMove(inside, role));
    const verified = await run(["backup", "verify", archive]);
    expect(verified.code).toBe(1);
    expect(verified.out).toContain(words);
    const restored = await run(["restore", archive, "--data-dir", join(folder, `restored-${role}`)]);
    expect(restored.code).toBe(1);
    expect(restored.err).toContain(words);
  });

  test("puts nothing in place of a backup that cannot be relied on", async () => {
    const archive = await repacked("relied", inDatabase("delete from attempt"));
    const target = join(folder, "unrelied");
    const { code, err } = await run(["restore", archive, "--data-dir", target]);
    expect(code).toBe(1);
    expect(err).toContain("table attempt has 0 rows");
    expect(existsSync(target)).toBe(false);
  });

  test("finds a damaged page, and a name that does not belong there", async () => {
    const damage = (inside: string) => {
      const path = join(inside, databaseFile);
      const bytes = readFileSync(path);
      writeFileSync(path, bytes.fill(0x55, bytes.length - 4096 * 3));
    };
    expect((await run(["backup", "verify", await repacked("page", damage)])).out).toContain("database: ");
    const archive = join(folder, "foreign.tar.zst");
    writeFileSync(join(folder, "passwd"), "x");
    Bun.spawnSync([
      "tar",
      "--zstd",
      "-cf",
      archive,
      "-C",
      join(folder, "inside-page"),
      "--transform=s,^,../,",
      "manifest.json",
    ]);
    expect((await run(["backup", "verify", archive])).err).toContain("does not belong in one");
  });
});
