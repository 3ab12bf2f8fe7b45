import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { backupName } from "../../../src/backup/place.ts";
import { lookAtBackups } from "../../../src/cli/doctor/gather.ts";
import { judgeBackups } from "../../../src/cli/doctor/rules.ts";
import { loadConfig } from "../../../src/config.ts";
import { createFakeClock } from "../../support/fake-clock.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "postrider-doctor-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** In the machine's time zone, as schedules are. */
const friday = (hour: number, minute = 0) => new Date(2026, 10, 27, hour, minute).getTime();
const saturday = (hour: number) => friday(24 + hour);
const monday = (hour: number, minute = 0) => friday(72 + hour, minute);

test.each<[string, string, number, number, string]>([
  ["each hour of a weekday, over the weekend", "0 * * * 1-5", friday(23), saturday(20), "ok"],
  ["each hour of a weekday, while Monday's first one is made", "0 * * * 1-5", friday(23), monday(0, 5), "ok"],
  ["each hour of a weekday, when Monday's are missing", "0 * * * 1-5", friday(23), monday(2), "bad"],
  ["each hour of a weekday, when Friday's last two are missing", "0 * * * 1-5", friday(21), saturday(20), "bad"],
  ["each night", "0 3 * * *", friday(3), saturday(3), "ok"],
  ["each night, when two are missing", "0 3 * * *", friday(3), monday(2), "bad"],
])("backups %s (%s)", async (_, cron, newestAt, nowMs, state) => {
  writeFileSync(join(folder, backupName(newestAt, false)), "");
  const env = { POSTRIDER_DATA_DIR: folder, POSTRIDER_BACKUP_URL: folder, POSTRIDER_BACKUP_CRON: cron };
  const facts = await lookAtBackups(loadConfig(env, new Map()), createFakeClock(nowMs));
  expect(judgeBackups(nowMs, facts, true).state).toBe(state as "ok");
});
