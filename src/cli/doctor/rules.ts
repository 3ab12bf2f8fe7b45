import { isAhead } from "../../backup/place.ts";
import { isLoopbackHost } from "../../lib/cidr.ts";
import { formatDuration } from "../../lib/duration.ts";
import { formatIso } from "../../lib/iso-time.ts";
import { formatBytes } from "../bytes.ts";
import type {
  BackupFacts,
  DiskFacts,
  KeyFacts,
  Known,
  LogFacts,
  PagesFact,
  ReplicationFacts,
  RunningServer,
  StoreLook,
  UnreachableServer,
} from "./facts.ts";
import { bad, badInWords, type Found, ok, warning } from "./finding.ts";

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;

export function judgeServer(
  server: Known<RunningServer | UnreachableServer | null>,
  store: StoreLook | null,
  version: string,
  folder: string,
): Found {
  if ("failure" in server) return badInWords(server.failure);
  if (server.value === null)
    return ok(`No server is running on ${folder}; checks that need a running server were skipped.`);
  if (!isReached(server.value)) {
    const { pid, url } = server.value;
    return warning(
      `A server is using ${folder} (process ${pid}, ${url}), but does not answer here; checks that need a running server were skipped.`,
      "run this where the server runs, such as in its container",
    );
  }
  const { url, version: its, uptimeMs, notReady } = server.value;
  const words = `${url} has been running for ${formatDuration(uptimeMs)}`;
  if (notReady !== null) {
    return bad(`${words}, but does not accept events: ${notReady}`, "see the other checks and the server's log");
  }
  if (its === version) return ok(`${words}, version ${its}.`);
  return warning(`${words}, version ${its}; this program is ${version}.`, wayTo(store));
}

export const isReached = (server: RunningServer | UnreachableServer): server is RunningServer => "version" in server;

/** How a running server becomes this program: a restart hands the database over as it is (`succeedTo`). */
function wayTo(store: StoreLook | null): string {
  const { found, known } = store?.schema ?? { found: 0, known: 0 };
  if (found === known) return "run postrider restart when convenient";
  return found < known ? upgradeRemedy : "use the server's version of this program";
}

const upgradeRemedy =
  "make a backup, then stop the server and start this version (postrider restart does not upgrade a database)";

/** Growth over a shorter time says nothing. */
const telltaleMs = hourMs;
const soonMs = 7 * dayMs;

/** Without this much there is no room for a commit, even where the floor is lower. */
const fullBytes = 2 ** 20;

/**
 *   nothing can be written  bad
 *   free < floor            bad: events are refused
 *   free < 1 MiB            bad: nothing can be stored
 *   full within 7 days      warning        (at the rate since the server started, if it has run for an hour and stores here)
 *   free < 2 × floor        warning
 */
export function judgeDisk(
  { folder, freeBytes, floorBytes, holdsDatabase, writeFault }: DiskFacts,
  server: RunningServer | null,
): Found {
  if (writeFault !== null) {
    return bad(
      `Nothing can be written (${writeFault}).`,
      "check the owner and permissions of the folder and its files, and that the disk is not mounted read-only",
    );
  }
  const free = `${formatBytes(freeBytes)} free at ${folder}`;
  const remedy = `free some space${holdsDatabase ? ", set POSTRIDER_RETENTION," : ""} or move the data directory to a larger disk`;
  if (freeBytes < floorBytes) {
    return bad(`${free}, below the floor of ${formatBytes(floorBytes)}: no events are accepted.`, remedy);
  }
  if (freeBytes < fullBytes) {
    return bad(`${free}: the disk is full${holdsDatabase ? ", and nothing can be stored" : ""}.`, remedy);
  }
  const bytesPerMs =
    !holdsDatabase || server === null || server.bytesPerEvent === null || server.uptimeMs < telltaleMs
      ? 0
      : (server.eventsSinceStart * server.bytesPerEvent) / server.uptimeMs;
  const lastsMs = bytesPerMs === 0 ? Number.POSITIVE_INFINITY : (freeBytes - floorBytes) / bytesPerMs;
  const lasts =
    lastsMs === Number.POSITIVE_INFINITY
      ? ""
      : `; at the rate of events since the server started, it is full in ${formatDuration(lastsMs)}`;
  const sentence = `${free}${lasts}${floorBytes === 0 ? "" : `; the floor is ${formatBytes(floorBytes)}`}.`;
  return lastsMs < soonMs || freeBytes < 2 * floorBytes ? warning(sentence, remedy) : ok(sentence);
}

/**
 * @param exposed sentences with "Try:", the worst first; null: there is no data directory that can be read
 * @param tolerated likewise, of what a server starts with all the same
 */
export function judgePermissions(exposed: readonly string[] | null, tolerated: readonly string[]): Found {
  if (exposed === null) return warning("Not checked: the data directory cannot be read.", "do what disk says");
  const [first, ...others] = [...exposed, ...tolerated];
  if (first === undefined) return ok("The data directory and what is in it belong to one user alone.");
  const found: Found = { ...badInWords(first), state: exposed.length > 0 ? "bad" : "warning" };
  return others.length === 0
    ? found
    : { ...found, message: `${found.message} The same goes for ${others.length} more.` };
}

/** What is not judged for want of a database, whose absence or fault is another check's to judge. */
function withoutDatabase(store: Known<StoreLook | null>): Found {
  if ("value" in store && store.value === null) return ok("There is no database yet.");
  return warning("Not checked: the database cannot be used at present.", onceSchemaIsRight);
}

const onceSchemaIsRight = "do what schema says, and run postrider doctor again";

/** @param facts null: there is no database that can be read, for the key to open */
export function judgeKey(facts: KeyFacts | null, store: Known<StoreLook | null>): Found {
  if (facts === null) return withoutDatabase(store);
  const { path, next, state } = facts;
  if (state === "opens") return ok("The master key opens what is sealed in the database.");
  if (state === "next") {
    return warning(
      `The database is sealed with the key in ${next}, which is not in ${path} yet.`,
      `put it into ${path}, then remove ${next}; a server that may write there does so when it starts`,
    );
  }
  if (state === "missing") {
    return bad(
      `There is no ${path}, and the server does not start without it.`,
      "restore it from a backup; if it is kept elsewhere, name it in POSTRIDER_MASTER_KEY_FILE",
    );
  }
  if (state === "unreadable") {
    return bad(
      `${path} cannot be read, or is not 64 hexadecimal digits.`,
      "run the command as the server's user; if it is damaged, restore it from a backup",
    );
  }
  return bad(
    `What is sealed in the database does not open with ${path}.`,
    "put back the key that the database was written with: another server of it has it, or the same backup, unless it was kept elsewhere",
  );
}

/** As in the server's own log: time servers correct anything less. */
const aheadMs = hourMs;
const driftMs = 5_000;

export function judgeClock(nowMs: number, store: StoreLook | null, server: RunningServer | null): Found {
  const newest = store?.figures?.newestEventAt ?? null;
  if (newest !== null && newest - nowMs >= aheadMs) {
    return bad(
      `The clock is behind the newest event: new ones carry times ahead of it until ${formatIso(newest)}.`,
      "check the machine's clock (timedatectl); if it is right now, wait",
    );
  }
  const others = [
    ["the server's", server?.clockAheadMs],
    ["the database server's", store?.server?.clockAheadMs],
  ] as const;
  for (const [whose, offMs = 0] of others) {
    if (Math.abs(offMs) < driftMs) continue;
    return warning(
      `This machine's clock and ${whose} differ by ${formatDuration(Math.abs(offMs))}.`,
      "let a time server set both machines (timedatectl set-ntp true); a clock that jumped is followed after ten minutes",
    );
  }
  const stored = store?.figures ? "and nothing stored is ahead of it" : "and nothing stored was compared with it";
  return ok(`It is ${formatIso(nowMs)}, ${stored}.`);
}

export interface DnsFacts {
  readonly name: string;
  readonly by: string;
  readonly answer: Known<readonly string[]>;
  /** The machine has an address other than loopback. */
  readonly hasNetwork: boolean;
}

/** @param facts null: a proxy resolves the names */
export function judgeDns(facts: DnsFacts | null, isPublic: boolean): Found {
  if (facts === null) return ok("The delivery proxy resolves the names.");
  const { name, by, answer, hasNetwork } = facts;
  if ("value" in answer) return ok(`${name} is found by ${by}.`);
  if (!hasNetwork) {
    return warning(
      "This machine has no network but its own: only webhooks on it can be reached.",
      "connect it, and run postrider doctor again",
    );
  }
  return (isPublic ? bad : warning)(
    `${name} is not found by ${by} (${answer.failure}): webhooks with a name cannot be reached.`,
    "check /etc/resolv.conf and the firewall (port 53), or set POSTRIDER_DNS_SERVERS",
  );
}

const renewMs = 14 * dayMs;

/** @param failure null: the proxy opened a connection to a public host */
export function judgeProxy(proxy: { place: string; failure: string | null } | null): Found {
  if (proxy === null) return ok("No delivery proxy is set; deliveries connect directly.");
  if (proxy.failure === null) {
    return ok(`Deliveries go through ${proxy.place}, which decides which addresses they may reach.`);
  }
  return bad(
    `Deliveries go through ${proxy.place}, which opens no tunnel to a public host: ${proxy.failure}.`,
    "check that it runs, that POSTRIDER_DELIVERY_PROXY has its user and password, and that it allows CONNECT",
  );
}

/** @param validTo null: the server speaks plain HTTP @param publicUrl null: it is for this machine alone */
export function judgeCertificate(nowMs: number, validTo: number | null, publicUrl: string | null): Found {
  if (validTo === null) {
    // A loopback name is for this machine as well, whatever the listener.
    if (publicUrl?.startsWith("http:") && !isLoopbackHost(new URL(publicUrl).hostname)) {
      return warning(
        `Clients are sent to ${publicUrl}, without TLS: passwords and API keys can be read on the way.`,
        "set POSTRIDER_TLS_CERT and POSTRIDER_TLS_KEY, or put a proxy with TLS in front, and make POSTRIDER_PUBLIC_URL https",
      );
    }
    return ok("The server has no TLS of its own; the certificate of a proxy is not checked.");
  }
  const remedy = "renew it; the server picks up the new files automatically";
  const leftMs = validTo - nowMs;
  if (leftMs <= 0) return bad(`The certificate expired on ${formatIso(validTo)}.`, remedy);
  const days = `${Math.floor(leftMs / dayMs)} days`;
  if (leftMs < renewMs) return warning(`The certificate expires in ${days}.`, remedy);
  return ok(`The certificate fits its key and expires in ${days}.`);
}

/** @param mayRun a server may be using the data, whether it could be asked or not */
export function judgeSchema(store: StoreLook | null, mayRun: boolean): Found {
  if (store === null) return ok("There is no database yet; the first start makes it.");
  const { backend } = store;
  const { found, known, isHalfway } = store.schema;
  if (store.refusal !== null) return badInWords(store.refusal);
  if (found > known) {
    return bad(
      `${backend}: schema ${found}, but this version knows only ${known}.`,
      "run the version that wrote it, or a later one",
    );
  }
  if (isHalfway) {
    return bad(
      `${backend}: an upgrade to schema ${known} has begun and not ended; no server can run until it has.`,
      "start the server, which continues it; if its log says storage.upgrading, wait",
    );
  }
  if (found === known) return ok(`${backend}: schema ${found}, which this version uses.`);
  return warning(
    `${backend}: schema ${found}; starting this version upgrades it to ${known}.`,
    mayRun ? upgradeRemedy : "make a backup, then start the server",
  );
}

/** @param pages null: there is nothing to check */
export function judgePages(pages: PagesFact | null): Found {
  switch (pages?.kind) {
    case undefined:
      return ok("No database file is kept here.");
    case "whole":
      return ok("Every page of the database is whole (quick_check).");
    case "skipped":
      return ok(`Not checked: ${formatBytes(pages.bytes)} would take long. postrider doctor --deep checks them.`);
    case "unfinished":
      return ok("No damage was found in the time allowed. postrider doctor --deep checks every page.");
    case "damaged":
      return bad(
        `The database is damaged (${pages.fault}).`,
        "stop the server and restore a backup: postrider backup verify says which one is whole",
      );
    case "failed":
      return bad(`The database cannot be checked (${pages.fault}).`, "check its disk and permissions");
  }
}

/** The size SQLite's log is truncated to when nothing holds it. */
const usualLogBytes = 64 * 2 ** 20;
const oldSnapshotSeconds = 600;

/** @param log null: SQLite is not used */
export function judgeLog(log: LogFacts | null, store: Known<StoreLook | null>): Found {
  const snapshot = "value" in store ? store.value?.server?.oldestSnapshotSeconds : undefined;
  if (snapshot !== undefined) {
    if (snapshot < oldSnapshotSeconds) return ok("No long transaction holds back the database's vacuum.");
    return warning(
      `A transaction has been open for ${formatDuration(snapshot * 1000)}, and holds back the database's vacuum.`,
      "in psql: select pid, usename, application_name, xact_start, query from pg_stat_activity where xact_start is not null " +
        "order by xact_start; then pg_terminate_backend(pid)",
    );
  }
  if (log === null) return withoutDatabase(store);
  if (log.bytes <= usualLogBytes) return ok(`The write-ahead log takes ${formatBytes(log.bytes)}.`);
  const openers = log.openedBy.map(({ pid, name }) => `${name} (process ${pid})`).join(", ");
  return warning(
    `The write-ahead log has grown to ${formatBytes(log.bytes)}: another program is holding a long-running read on the database` +
      `${openers === "" ? "" : `; it is open in ${openers}`}.`,
    openers === "" ? `lsof ${log.path} shows who has it open; end what is not the server` : "end that program",
  );
}

/** Litestream copies the log at 4 MiB, and forces it at some 500 MB. */
const uncopiedBytes = 256 * 2 ** 20;

/** @param replication null: there is no database file yet */
export function judgeReplication(replication: ReplicationFacts | null): Found {
  if (replication === null) return ok("There is nothing to replicate yet.");
  const { logBytes, folder, hasFolder } = replication;
  const words = `The write-ahead log takes ${formatBytes(logBytes)}`;
  const remedy = "litestream replicate on this database; or start the server without POSTRIDER_CHECKPOINTS=external";
  if (!hasFolder) return bad(`${words}, and nobody copies it: Litestream has never run here (no ${folder}).`, remedy);
  if (logBytes > uncopiedBytes) return bad(`${words}: Litestream does not keep up, or does not run.`, remedy);
  return ok(`${words}, which is Litestream's to copy.`);
}

const staleMs = 7 * dayMs;

/** @param backups null: the data is in PostgreSQL */
export function judgeBackups(nowMs: number, backups: BackupFacts | null, isPublic: boolean): Found {
  if (backups === null) return ok("The data is in PostgreSQL, whose backups are not checked.");
  const { place, expectedSince, stored, history } = backups;
  if (place === null) {
    if (!isPublic) return ok("No backups are set up.");
    return warning(
      "POSTRIDER_BACKUP_URL is not set, so backups cannot be checked.",
      "POSTRIDER_BACKUP_URL=s3://bucket/prefix and POSTRIDER_BACKUP_CRON='0 3 * * *'",
    );
  }
  if ("failure" in stored) return badInWords(stored.failure);
  const { latest } = history;
  if (latest?.error) {
    const what = latest.kind === "backup" ? "backup" : "verification of a backup";
    return bad(
      `The latest ${what} failed (${formatDuration(nowMs - latest.at)} ago): ${latest.error}`,
      "postrider backup --verify, once that is fixed",
    );
  }
  const [newest] = stored.value;
  if (newest === undefined) return bad(`There is no backup at ${place}.`, "postrider backup --verify");
  if (isAhead(newest.createdAt, nowMs)) {
    return bad(
      `Every backup at ${place} has a name ahead of this machine's clock.`,
      "set the clock, if it is behind; if it was ahead when they were made, postrider backup --verify",
    );
  }
  const ageMs = nowMs - newest.createdAt;
  const isWhole = history.verified[newest.name];
  const words = `The newest backup at ${place} is ${formatDuration(ageMs)} old`;
  if (isWhole === false) return bad(`${words}, and is not whole.`, "postrider backup --verify");
  if (expectedSince !== null && newest.createdAt < expectedSince) {
    return bad(
      `${words}, and the scheduled one of ${formatIso(expectedSince)} is missing.`,
      "look for backup.failed in the log; if the server was down then, postrider backup --verify",
    );
  }
  if (expectedSince === null && ageMs > staleMs)
    return warning(`${words}.`, "postrider backup, or POSTRIDER_BACKUP_CRON to have them made");
  return ok(`${words}${isWhole ? ", and was verified" : ""}.`);
}

const lateMs = 5 * minuteMs;
const veryLateMs = hourMs;

/**
 * A delivery that is due is sent immediately unless it is held back; one waiting for its retry is not due.
 *
 *   paused                  warning
 *   due for 5 min, 1 h      warning, bad
 *
 * @param mayRun a server may be using the data, whether it could be asked or not
 */
export function judgeDeliveries(
  nowMs: number,
  store: Known<StoreLook | null>,
  server: RunningServer | null,
  mayRun: boolean,
): Found {
  const stored = "value" in store ? (store.value?.figures ?? null) : null;
  const waiting = server?.queue?.waiting ?? stored?.waiting ?? null;
  if (waiting === null) return withoutDatabase(store);
  const oldestDueAt = stored?.oldestDueAt ?? null;
  const dueMs = server?.queue ? (server.queue.oldestDueMs ?? 0) : oldestDueAt === null ? 0 : nowMs - oldestDueAt;
  const since = `${waiting} waiting${dueMs > 0 ? `, the oldest due for ${formatDuration(dueMs)}` : ""}`;
  if (server?.paused.includes("deliveries")) {
    return warning(`Deliveries are paused, with ${since}.`, "postrider resume, when they may go out");
  }
  if (dueMs < lateMs) return ok(`${since}.`);
  if (!mayRun) return warning(`${since}, and no server runs.`, "start it");
  if (server === null) return warning(`${since}, and no server could be asked.`, "do what server says");
  const remedy = "look at the operator's page for failing webhooks, and into the log";
  return dueMs < veryLateMs ? warning(`${since}.`, remedy) : bad(`${since}.`, remedy);
}

export function judgeMail(mail: { operators: readonly string[] } | null): Found {
  if (mail === null) return ok("Not set up: passwords cannot be reset by mail, and nobody is warned.");
  if (mail.operators.length === 0) {
    return warning("Accounts get mail, but nobody is warned of problems.", "POSTRIDER_OPERATOR_MAIL=ops@example.com");
  }
  return ok("Set up; postrider mail test ADDRESS tries it.");
}
