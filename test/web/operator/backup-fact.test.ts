import { expect, test } from "bun:test";
import type { BackupOutcome, Backups } from "../../../web/operator/api/types.ts";
import { backupFactOf, polledBackupFactOf } from "../../../web/operator/screens/backup-fact.ts";

const night = "2026-03-01T03:00:00.000Z";
const nextNight = "2026-03-02T03:00:00.000Z";
const noon = "2026-03-02T12:00:00.000Z";
const backup = (name: string, created_at: string, verified: boolean | null = true) => ({
  ...{ name, bytes: 9, created_at, verified },
});
const outcome = (kind: "backup" | "verify", at: string, name: string | null, error: string | null = null) => ({
  ...{ kind, at, name, error, took_ms: 1, bytes: null },
});
const told = (latest: BackupOutcome, latest_backup = latest): Partial<Backups> => ({ latest, latest_backup });
const made = outcome("backup", nextNight, "new");

const backups: Backups = {
  ...{ place: "/backups", schedule: null, keep: 7, next_at: null, under_way: null },
  ...{ latest: made, latest_backup: made, backups: [backup("new", nextNight), backup("old", night)] },
};

test.each<[string, Partial<Backups>, ReturnType<typeof backupFactOf>]>([
  ["there is no place for them", { place: null }, { text: "Not set up" }],
  ["one is being made", { under_way: "backup" }, { text: "Being made now" }],
  ["one is being verified", { under_way: "verify" }, { text: "Being verified now" }],
  ["there is none", { latest: null, latest_backup: null, backups: [] }, { text: "None yet" }],
  ["the newest was made and verified", {}, { text: "Made and verified", at: nextNight }],
  ["another program made it", { backups: [backup("new", nextNight, null)] }, { text: "Made", at: nextNight }],
  [
    "the newest was verified once more",
    told(outcome("verify", noon, "new"), made),
    { text: "Made", at: nextNight, verifiedAt: noon },
  ],
  [
    "an older one was verified once more",
    told(outcome("verify", noon, "old"), made),
    { text: "Made and verified", at: nextNight },
  ],
  [
    "the newest does not restore, and an older one was verified since",
    { ...told(outcome("verify", noon, "old"), made), backups: [backup("new", nextNight, false)] },
    { text: "Does not restore: made", at: nextNight, isBad: true },
  ],
  [
    "the latest backup failed",
    told(outcome("backup", nextNight, null, "no room")),
    { text: "Failed", at: nextNight, isBad: true },
  ],
  [
    "the latest backup failed, and an older one was verified since",
    told(outcome("verify", noon, "old"), outcome("backup", nextNight, null, "no room")),
    { text: "Failed", at: nextNight, isBad: true },
  ],
  [
    "the latest backup was broken off, and verified since",
    told(outcome("verify", noon, "new"), outcome("backup", nextNight, "new", "The server was stopped.")),
    { text: "Made", at: nextNight, verifiedAt: noon },
  ],
  [
    "the latest verification failed",
    told(outcome("verify", noon, "new", "a page"), made),
    { text: "Verification failed", at: noon, isBad: true },
  ],
])("what the overview says of backups when %s", (_, given, fact) => {
  expect(backupFactOf({ ...backups, ...given })).toEqual(fact);
});

test("the overview says of backups that their place cannot be reached, whatever it knew before", () => {
  const error = { message: "The folder is away." };
  const unreached = { text: "The folder is away.", isBad: true as const };
  expect(polledBackupFactOf({ data: undefined, error })).toEqual(unreached);
  expect(polledBackupFactOf({ data: backups, error })).toEqual(unreached);
  expect(polledBackupFactOf({ data: backups, error: null })).toEqual(backupFactOf(backups));
  expect(polledBackupFactOf({ data: undefined, error: null })).toBeNull();
});
