import { describe, expect, test } from "bun:test";
import type { BackupFacts, Known, RunningServer, StoreLook } from "../../../src/cli/doctor/facts.ts";
import { badInWords, type Found } from "../../../src/cli/doctor/finding.ts";
import * as rules from "../../../src/cli/doctor/rules.ts";

const now = Date.UTC(2026, 2, 1, 12);
const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;
const mib = 2 ** 20;
const gib = 2 ** 30;

const server = (given: Partial<RunningServer> = {}): RunningServer => ({
  ...{ url: "http://127.0.0.1:8080", version: "1.2.0", clockAheadMs: 0, uptimeMs: day, notReady: null, paused: [] },
  ...{ queue: { waiting: 0, oldestDueMs: null }, eventsSinceStart: 0, bytesPerEvent: null },
  ...given,
});

const store = (given: Partial<StoreLook> = {}): StoreLook => ({
  ...{ backend: "SQLite 3.51.3", schema: { found: 29, known: 29, isHalfway: false }, refusal: null, server: null },
  figures: { newestEventAt: now - minute, waiting: 0, oldestDueAt: null },
  ...given,
});

const looked = (given: Partial<StoreLook> = {}): Known<StoreLook | null> => ({ value: store(given) });
const noStore: Known<StoreLook | null> = { value: null };
const awayStore: Known<StoreLook | null> = { failure: "It does not answer. Try: check it." };
const moved = { refusal: "The data was moved to /b. Try: start there.", figures: null };

const older = { schema: { found: 7, known: 29, isHalfway: false } };
const newer = { schema: { found: 30, known: 29, isHalfway: false } };
const halfway = { schema: { found: 29, known: 29, isHalfway: true } };

type Row = readonly [what: string, found: () => Found, state: Found["state"], words: string];

const backups = (given: Partial<BackupFacts> = {}): BackupFacts => ({
  ...{
    place: "/backup",
    expectedSince: now - day,
    stored: { value: [{ name: "a", bytes: 1, createdAt: now - hour }] },
  },
  history: { latest: null, latestBackup: null, verified: { a: true }, made: [] },
  ...given,
});
const judgedCertificate = (validTo: number | null, publicUrl: string | null = "https://relay.example.com") =>
  rules.judgeCertificate(now, validTo, publicUrl);
const judgedServer = (given: Known<RunningServer | null>, look: StoreLook | null = store()) =>
  rules.judgeServer(given, look, "1.2.0", "/data");
const failed = { kind: "verify" as const, name: "a", at: now - hour, tookMs: 1, bytes: 1, error: "no room" };
const judgedBackups = (given: Partial<BackupFacts>, isPublic = true) =>
  rules.judgeBackups(now, backups(given), isPublic);
const disk = { folder: "/data", freeBytes: 20 * gib, floorBytes: 256 * mib, holdsDatabase: true, writeFault: null };
const diskWithoutDatabase = { ...disk, floorBytes: 0, holdsDatabase: false };
const log = { path: "/data/postrider.db", bytes: 4 * mib, openedBy: [] };
const replication = { logBytes: mib, folder: "/data/.postrider.db-litestream", hasFolder: true };
const dns = { name: "example.com", by: "1.1.1.1", answer: { failure: "name servers failed" }, hasNetwork: true };

const rows: readonly Row[] = [
  ["no server", () => judgedServer({ value: null }), "ok", "No server is running on /data"],
  ["a server", () => judgedServer({ value: server() }), "ok", "running for 1 d, version 1.2.0"],
  ["another version", () => judgedServer({ value: server({ version: "1.1.0" }) }), "warning", "this program is 1.2.0"],
  [
    "a server that is not ready",
    () => judgedServer({ value: server({ notReady: "The disk is almost full." }) }),
    ...(["bad", "running for 1 d, but does not accept events: The disk is almost full."] as const),
  ],
  ["a mute server", () => judgedServer({ failure: "Mute. Try: its log." }), "bad", "Mute."],

  ["a disk with room", () => rules.judgeDisk(disk, server()), "ok", "20 GiB free at /data; the floor is 256 MiB"],
  ["a full disk", () => rules.judgeDisk({ ...disk, freeBytes: mib }, null), "bad", "no events are accepted"],
  [
    "a full disk without a floor",
    () => rules.judgeDisk({ ...disk, freeBytes: 0, floorBytes: 0 }, null),
    ...(["bad", "0 B free at /data: the disk is full, and nothing can be stored"] as const),
  ],
  [
    "a disk without a floor",
    () => rules.judgeDisk({ ...disk, freeBytes: 10 * mib, floorBytes: 0 }, null),
    ...(["ok", "10 MiB free at /data."] as const),
  ],
  [
    "a disk without the database, however fast that grows",
    () => rules.judgeDisk(diskWithoutDatabase, server({ eventsSinceStart: 8 * mib, bytesPerEvent: 1024 })),
    ...(["ok", "20 GiB free at /data."] as const),
  ],
  [
    "a full disk without the database",
    () => rules.judgeDisk({ ...diskWithoutDatabase, freeBytes: 0 }, null),
    ...(["bad", "0 B free at /data: the disk is full."] as const),
  ],
  [
    "a disk that takes nothing",
    () => rules.judgeDisk({ ...disk, writeFault: "EROFS: read-only file system, access '/data'" }, null),
    ...(["bad", "Nothing can be written (EROFS: read-only file system, access '/data')."] as const),
  ],
  ["a disk near its floor", () => rules.judgeDisk({ ...disk, freeBytes: 500 * mib }, null), "warning", "500 MiB free"],
  [
    "a disk that lasts for days",
    () => rules.judgeDisk(disk, server({ eventsSinceStart: 8 * mib, bytesPerEvent: 1024 })),
    ...(["warning", "full in 2 d 11 h"] as const),
  ],
  [
    "a disk that lasts for months",
    () => rules.judgeDisk(disk, server({ eventsSinceStart: 80_000, bytesPerEvent: 1024 })),
    ...(["ok", "full in"] as const),
  ],
  [
    "growth that is too young to tell",
    () => rules.judgeDisk(disk, server({ uptimeMs: minute, eventsSinceStart: 8 * mib, bytesPerEvent: 1024 })),
    ...(["ok", "20 GiB free at /data; the"] as const),
  ],

  ["files that cannot be seen", () => rules.judgePermissions(null, []), "warning", "Not checked"],
  ["closed files", () => rules.judgePermissions([], []), "ok", "one user alone"],
  [
    "open files",
    () => rules.judgePermissions(["A is open. Try: b.", "C. Try: d."], ["E. Try: f."]),
    "bad",
    "A is open. The same goes for 2 more.",
  ],
  [
    "an open file that stops no server",
    () => rules.judgePermissions([], ["E is open. Try: f."]),
    "warning",
    "E is open.",
  ],

  ["no database for the key to open", () => rules.judgeKey(null, noStore), "ok", "There is no database yet"],
  ["a database on which no key can be tried", () => rules.judgeKey(null, awayStore), "warning", "Not checked"],
  [
    "a key that opens",
    () => rules.judgeKey({ path: "/data/master-key", next: "/k.next", state: "opens" }, looked()),
    "ok",
    "opens what is sealed",
  ],
  [
    "another key",
    () => rules.judgeKey({ path: "/k", next: "/k.next", state: "another" }, looked()),
    "bad",
    "does not open with /k",
  ],
  [
    "no key",
    () => rules.judgeKey({ path: "/k", next: "/k.next", state: "missing" }, looked()),
    "bad",
    "There is no /k",
  ],
  [
    "a key that is none",
    () => rules.judgeKey({ path: "/k", next: "/k.next", state: "unreadable" }, looked()),
    "bad",
    "/k cannot be read, or",
  ],

  ["a clock that is right", () => rules.judgeClock(now, store(), server()), "ok", "2026-03-01T12:00:00.000Z"],
  ["a clock and nothing to compare", () => rules.judgeClock(now, null, null), "ok", "nothing stored was compared"],
  [
    "a clock behind the ids",
    () =>
      rules.judgeClock(now, store({ figures: { newestEventAt: now + 2 * hour, waiting: 0, oldestDueAt: null } }), null),
    ...(["bad", "until 2026-03-01T14:00:00.000Z"] as const),
  ],
  [
    "a clock that jumped",
    () => rules.judgeClock(now, null, server({ clockAheadMs: -day })),
    "warning",
    "the server's differ",
  ],
  [
    "a database server's clock",
    () => rules.judgeClock(now, store({ server: { clockAheadMs: minute, oldestSnapshotSeconds: 0 } }), null),
    ...(["warning", "the database server's differ by 1 min"] as const),
  ],

  ["a name that is found", () => rules.judgeDns({ ...dns, answer: { value: ["1.2.3.4"] } }, true), "ok", "found by"],
  ["a name that is not", () => rules.judgeDns(dns, true), "bad", "(name servers failed)"],
  ["a name that is not, on a laptop", () => rules.judgeDns(dns, false), "warning", "(name servers failed)"],
  ["no network", () => rules.judgeDns({ ...dns, hasNetwork: false }, true), "warning", "no network"],

  ["names that a proxy finds", () => rules.judgeDns(null, true), "ok", "The delivery proxy"],
  ["no proxy", () => rules.judgeProxy(null), "ok", "directly"],
  ["a proxy", () => rules.judgeProxy({ place: "proxy:3128", failure: null }), "ok", "through proxy:3128"],
  ["a proxy that fails", () => rules.judgeProxy({ place: "proxy:3128", failure: "it answered 407" }), "bad", "407"],

  ["no TLS", () => judgedCertificate(null, null), "ok", "no TLS of its own"],
  ["no TLS behind a proxy", () => judgedCertificate(null), "ok", "no TLS of its own"],
  ["no TLS on this machine", () => judgedCertificate(null, "http://localhost:8080"), "ok", "no TLS of its own"],
  ["no TLS at all", () => judgedCertificate(null, "http://relay.example.com"), "warning", "without TLS"],
  ["a certificate", () => judgedCertificate(now + 30 * day), "ok", "in 30 days"],
  ["a certificate that ends soon", () => judgedCertificate(now + 13 * day), "warning", "in 13 days"],
  ["an expired certificate", () => judgedCertificate(now), "bad", "expired on 2026-03-01"],

  ["no database", () => rules.judgeSchema(null, false), "ok", "first start"],
  ["this schema", () => rules.judgeSchema(store(), true), "ok", "schema 29, which this version uses"],
  ["an older schema", () => rules.judgeSchema(store(older), false), "warning", "upgrades it to 29"],
  ["a schema halfway", () => rules.judgeSchema(store(halfway), false), "bad", "upgrade to schema 29 has begun and not"],
  ["data that was moved", () => rules.judgeSchema(store(moved), false), "bad", "was moved to /b"],
  ["a newer schema", () => rules.judgeSchema(store(newer), false), "bad", "knows only 29"],

  ["whole pages", () => rules.judgePages({ kind: "whole" }), "ok", "whole"],
  ["a large database", () => rules.judgePages({ kind: "skipped", bytes: 3 * gib }), "ok", "--deep"],
  ["no end in time", () => rules.judgePages({ kind: "unfinished" }), "ok", "--deep"],
  ["damage", () => rules.judgePages({ kind: "damaged", fault: "page 7" }), "bad", "(page 7)"],
  ["a disk that fails", () => rules.judgePages({ kind: "failed", fault: "disk I/O error" }), "bad", "disk I/O error"],

  ["a short log", () => rules.judgeLog(log, looked()), "ok", "4 MiB"],
  ["a long log", () => rules.judgeLog({ ...log, bytes: 100 * mib }, looked()), "warning", "has grown to 100 MiB"],
  [
    "a long log and who has it open",
    () => rules.judgeLog({ ...log, bytes: 100 * mib, openedBy: [{ pid: 7, name: "sqlite3" }] }, looked()),
    ...(["warning", "it is open in sqlite3 (process 7)"] as const),
  ],
  [
    "an old snapshot",
    () => rules.judgeLog(null, looked({ server: { clockAheadMs: 0, oldestSnapshotSeconds: 700 } })),
    ...(["warning", "open for 11 min 40 s"] as const),
  ],

  ["no log yet", () => rules.judgeLog(null, noStore), "ok", "no database yet"],
  ["a database server that is away", () => rules.judgeLog(null, awayStore), "warning", "Not checked"],

  ["a log that Litestream copies", () => rules.judgeReplication(replication), "ok", "Litestream's to copy"],
  ["no database yet", () => rules.judgeReplication(null), "ok", "nothing to replicate"],
  [
    "no Litestream",
    () => rules.judgeReplication({ ...replication, hasFolder: false }),
    ...(["bad", "Litestream has never run here"] as const),
  ],
  [
    "a Litestream that has ended",
    () => rules.judgeReplication({ ...replication, logBytes: 300 * mib }),
    ...(["bad", "300 MiB: Litestream does not keep up"] as const),
  ],

  ["backups of PostgreSQL", () => rules.judgeBackups(now, null, true), "ok", "not checked"],
  ["no backups", () => judgedBackups({ place: null }), "warning", "POSTRIDER_BACKUP_URL is not set"],
  ["no backups, on a laptop", () => judgedBackups({ place: null }, false), "ok", "No backups are set up"],
  ["a backup", () => judgedBackups({}), "ok", "1 h old, and was verified"],
  ["a place without one", () => judgedBackups({ stored: { value: [] } }), "bad", "no backup at /backup"],
  ["a place that is away", () => judgedBackups({ stored: { failure: "Away. Try: x." } }), "bad", "Away."],
  [
    "a missed schedule",
    () => judgedBackups({ expectedSince: now - 20 * minute }),
    "bad",
    "the scheduled one of 2026-03-01T11:40:00.000Z is missing",
  ],
  [
    "one made while the clock was ahead",
    () => judgedBackups({ stored: { value: [{ name: "a", bytes: 1, createdAt: now + 2 * hour }] } }),
    ...(["bad", "Every backup at /backup has a name ahead of this machine's clock."] as const),
  ],
  [
    "an old one made by hand",
    () =>
      judgedBackups({ expectedSince: null, stored: { value: [{ name: "a", bytes: 1, createdAt: now - 8 * day }] } }),
    ...(["warning", "8 d old"] as const),
  ],
  [
    "a backup that is not whole",
    () => judgedBackups({ history: { ...backups().history, verified: { a: false } } }),
    ...(["bad", "not whole"] as const),
  ],
  [
    "a failed verification",
    () => judgedBackups({ history: { ...backups().history, latest: failed } }),
    ...(["bad", "The latest verification of a backup failed (1 h ago): no room"] as const),
  ],

  ["nothing that waits", () => rules.judgeDeliveries(now, looked(), server(), true), "ok", "0 waiting."],
  [
    "paused deliveries",
    () => rules.judgeDeliveries(now, looked(), server({ paused: ["deliveries"] }), true),
    ...(["warning", "paused"] as const),
  ],
  [
    "late deliveries",
    () => rules.judgeDeliveries(now, looked(), server({ queue: { waiting: 3, oldestDueMs: 6 * minute } }), true),
    ...(["warning", "3 waiting, the oldest due for 6 min"] as const),
  ],
  [
    "very late deliveries",
    () => rules.judgeDeliveries(now, looked(), server({ queue: { waiting: 3, oldestDueMs: 2 * hour } }), true),
    ...(["bad", "due for 2 h"] as const),
  ],
  [
    "deliveries that wait for a server",
    () =>
      rules.judgeDeliveries(
        now,
        looked({ figures: { newestEventAt: 0, waiting: 3, oldestDueAt: now - hour } }),
        null,
        false,
      ),
    ...(["warning", "and no server runs"] as const),
  ],
  [
    "deliveries of a server that does not answer here",
    () =>
      rules.judgeDeliveries(
        now,
        looked({ figures: { newestEventAt: 0, waiting: 3, oldestDueAt: now - hour } }),
        null,
        true,
      ),
    ...(["warning", "and no server could be asked"] as const),
  ],
  ["no database with deliveries", () => rules.judgeDeliveries(now, noStore, null, false), "ok", "no database yet"],
  ["deliveries out of reach", () => rules.judgeDeliveries(now, awayStore, null, true), "warning", "Not checked"],
  [
    "deliveries that were moved",
    () => rules.judgeDeliveries(now, looked(moved), null, false),
    "warning",
    "Not checked",
  ],

  ["no mail", () => rules.judgeMail(null), "ok", "Not set up"],
  ["mail without the operator's address", () => rules.judgeMail({ operators: [] }), "warning", "nobody is warned"],
  ["mail", () => rules.judgeMail({ operators: ["ops@example.com"] }), "ok", "postrider mail test"],
];

const upgrade =
  "make a backup, then stop the server and start this version (postrider restart does not upgrade a database)";

describe("doctor", () => {
  test.each(rows)("%s", (_, judge, state, words) => {
    const found = judge();
    expect([found.state, found.message]).toEqual([state, expect.stringContaining(words)]);
    // What needs doing says what, and nothing else does.
    expect(found.remedy === null).toBe(state === "ok");
  });

  const another = { value: server({ version: "1.1.0" }) };
  test.each<[string, () => Found, string]>([
    ["of this schema is restarted", () => judgedServer(another), "run postrider restart when convenient"],
    ["of an earlier schema is stopped and started", () => judgedServer(another, store(older)), upgrade],
    ["of an earlier schema, too", () => rules.judgeSchema(store(older), true), upgrade],
    [
      "that does not run is started",
      () => rules.judgeSchema(store(older), false),
      "make a backup, then start the server",
    ],
    ["of a later schema stays", () => judgedServer(another, store(newer)), "use the server's version of this program"],
  ])("a server of another version %s", (_, judge, remedy) => {
    expect(judge().remedy).toBe(remedy);
  });

  test("a sentence of the program is taken apart", () => {
    expect(badInWords("It is so. Try: mend it.")).toEqual({ state: "bad", message: "It is so.", remedy: "mend it" });
    expect(badInWords("It is so.").remedy).toContain("log");
  });
});
