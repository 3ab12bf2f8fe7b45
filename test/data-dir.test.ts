import { afterAll, afterEach, describe, expect, test } from "bun:test";
import {
  copyFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type DataDir, openDataDir } from "../src/data-dir.ts";
import { StartupError } from "../src/errors.ts";
import { systemClock } from "../src/lib/clock.ts";
import { openStore } from "../src/store/open.ts";
import { databaseFile } from "../src/store/sqlite/open.ts";
import { mountSmallDisk } from "./support/small-disk.ts";

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
    ["session-secret", /session-secret is empty\. Try: restore it from a backup, or remove it/],
    ["operator-token", /operator-token is empty\. Try: restore it from a backup, or remove it/],
    ["master-key", /master-key is damaged.*Try: restore it from a backup; without it stored keys cannot be read/],
  ])("an empty %s is refused, with what to do", (name, message) => {
    const folder = newFolder();
    reopened(folder);
    writeFileSync(join(folder, name), "");
    expect(refusal(() => openDataDir(folder))).toMatch(message);
    expect(readFileSync(join(folder, name), "utf8")).toBe("");
  });
});

describe("the lock of a data directory", () => {
  test("is held by one, and named in the refusal of the next", () => {
    const folder = newFolder();
    const first = openDataDir(folder);
    first.announce({ pid: 4711, url: "http://127.0.0.1:8080" }, () => {});
    expect(refusal(() => openDataDir(folder))).toMatch(/process 4711, http:\/\/127.0.0.1:8080.*Try: stop it first/);
    first.release();
    expect(refusal(() => reopened(folder))).toBe("opened");
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
    expect(refusal(() => openDataDir(folder))).toMatch(/\(.*(full|no space).*\)\. Try: make room on its disk/i);
    for (const name of secretFiles) expect(existsSync(join(folder, name))).toBe(false);
    disk.empty();
    expect(refusal(() => reopened(folder))).toBe("opened");
  });

  test(`lets a server end in order and start again, with what was committed ${needs}`, async () => {
    const folder = join(disk.folder, "data");
    reopened(folder);
    const store = openStore({ dataDir: folder, clock: systemClock });
    await store.endSession("s1", Date.now() + 60_000);
    disk.fill();
    await store.close();
    const dataDir = openDataDir(folder);
    const warnings: string[] = [];
    dataDir.announce({ pid: 1, url: "http://127.0.0.1:1" }, (message) => warnings.push(message));
    expect(warnings).toEqual([expect.stringMatching(/server\.json cannot be written: .*no space/i)]);
    dataDir.release();
    const again = openStore({ dataDir: folder, clock: systemClock });
    expect(await again.isSessionEnded("s1")).toBe(true);
    await again.close();
  });

  test(`refuses a database that comes from a backup, without a log beside it, with what to do ${needs}`, async () => {
    const backup = newFolder();
    await openStore({ dataDir: backup, clock: systemClock }).close();
    copyFileSync(join(backup, databaseFile), join(disk.folder, databaseFile));
    disk.fill();
    expect(refusal(() => openStore({ dataDir: disk.folder, clock: systemClock }))).toMatch(
      /^The disk of .*postrider\.db is full\. Try: make room on it; nothing of what was accepted is lost\.$/,
    );
  });
});
