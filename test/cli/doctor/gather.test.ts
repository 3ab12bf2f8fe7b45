import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { backupName } from "../../../src/backup/place.ts";
import { lookAtBackups, lookAtDisk } from "../../../src/cli/doctor/gather.ts";
import { judgeBackups } from "../../../src/cli/doctor/rules.ts";
import { loadConfig } from "../../../src/config.ts";
import { databaseFile } from "../../../src/store/sqlite/open.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { mountSmallDisk } from "../../support/small-disk.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "postrider-doctor-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** In the machine's time zone, as schedules are. */
const friday = (hour: number, minute = 0) => new Date(2026, 10, 27, hour, minute).getTime();
const saturday = (hour: number) => friday(24 + hour);
/** From the first of a month of 2027. */
const month = (n: number, hour = 3) => new Date(2027, n - 1, 1, hour).getTime();
const monday = (hour: number, minute = 0) => friday(72 + hour, minute);

test.each<[string, string, number, number, string]>([
  ["each hour of a weekday, over the weekend", "0 * * * 1-5", friday(23), saturday(20), "ok"],
  ["each hour of a weekday, while Monday's first one is made", "0 * * * 1-5", friday(23), monday(0, 5), "ok"],
  ["each hour of a weekday, when Monday's are missing", "0 * * * 1-5", friday(23), monday(2), "bad"],
  ["each hour of a weekday, when Friday's last two are missing", "0 * * * 1-5", friday(21), saturday(20), "bad"],
  ["each night", "0 3 * * *", friday(3), saturday(3), "ok"],
  ["each night, when two are missing", "0 3 * * *", friday(3), monday(2), "bad"],
  ["each weeknight, on the day after one is missing", "0 3 * * 1-5", friday(-21), saturday(4), "bad"],
  ["each month, before the next one", "0 3 1 * *", month(1), month(2), "ok"],
  ["each month, while the next one is made", "0 3 1 * *", month(1), month(2, 10), "ok"],
  ["each month, when the next one is missing", "0 3 1 * *", month(1), month(2, 30), "bad"],
  ["each month, when the latest was made by hand after it was due", "0 3 1 * *", month(2, 20), month(2, 400), "ok"],
  ["each quarter, before the next one", "0 3 1 */3 *", month(1), month(4), "ok"],
  ["each year, before the next one", "0 3 1 1 *", month(1), month(12, 700), "ok"],
  ["each year, when the next one is missing", "0 3 1 1 *", month(1), month(13, 30), "bad"],
])("backups %s (%s)", async (_, cron, newestAt, nowMs, state) => {
  writeFileSync(join(folder, backupName(newestAt, false)), "");
  const env = { POSTRIDER_DATA_DIR: folder, POSTRIDER_BACKUP_URL: folder, POSTRIDER_BACKUP_CRON: cron };
  const facts = await lookAtBackups(loadConfig(env, new Map()), createFakeClock(nowMs));
  expect(judgeBackups(nowMs, facts, true).state).toBe(state as "ok");
});

test("a folder for backups that is not there yet holds none, whatever it is called and lies beside it", async () => {
  writeFileSync(join(folder, backupName(friday(3), false)), "");
  const env = { POSTRIDER_DATA_DIR: folder, POSTRIDER_BACKUP_URL: join(folder, "relay.example.com") };
  const { stored } = await lookAtBackups(loadConfig(env, new Map()), createFakeClock(friday(4)));
  expect(stored).toEqual({ value: [] });
});

test.each([
  ["of the database that the data directory has a link to", null, "disk"],
  ["of the data directory, if the database is elsewhere", "postgres://db/postrider", ""],
])("the disk is that %s", (_, databaseUrl, where) => {
  const disk = join(folder, "disk");
  mkdirSync(disk);
  symlinkSync(join(disk, databaseFile), join(folder, databaseFile));
  expect(lookAtDisk({ dataDir: folder, databaseUrl, minFreeDiskBytes: 1 }).folder).toBe(join(folder, where));
});

test("the disk takes nothing where it is mounted read-only", () => {
  const small = mountSmallDisk(4);
  if (small === null) return;
  try {
    const look = () => lookAtDisk({ dataDir: small.folder, databaseUrl: null, minFreeDiskBytes: 1 }).writeFault;
    expect(look()).toBeNull();
    small.makeReadOnly();
    expect(look()).toMatch(/^EROFS/);
  } finally {
    small.unmount();
  }
});
