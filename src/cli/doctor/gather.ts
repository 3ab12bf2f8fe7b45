import { accessSync, constants, existsSync, readFileSync, realpathSync, statSync } from "node:fs";
import { networkInterfaces } from "node:os";
import { basename, dirname, join } from "node:path";
import { Cron } from "croner";
import * as v from "valibot";
import { answerWithin } from "../../backup/answer-within.ts";
import { parseHistory } from "../../backup/history.ts";
import { locate } from "../../backup/locate.ts";
import { asFolder } from "../../backup/place.ts";
import { type Config, diskFloorOf } from "../../config.ts";
import { readBackupNotesIn } from "../../data-dir.ts";
import { createResolver } from "../../delivery/network/resolver.ts";
import { deliveryTimeoutMs } from "../../delivery/network/transport.ts";
import { createTunnels } from "../../delivery/network/tunnel.ts";
import { StartupError } from "../../domain/errors.ts";
import { isInUse } from "../../folder-lock.ts";
import { aheadOf, type Clock } from "../../lib/clock.ts";
import { codeOf, messageOf } from "../../lib/error-message.ts";
import { freeBytesOf } from "../../lib/free-bytes.ts";
import { keyFilesOf, parseMasterKey } from "../../master-key-file.ts";
import { readServerFile } from "../../server-file.ts";
import { checkStorePages, storeFiles, storeFolderOf, storeOpensWith } from "../../store/open.ts";
import { createOperatorClient, NotReached } from "../operator-client.ts";
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
import { openersOf } from "./openers.ts";
import type { DnsFacts } from "./rules.ts";

/** The fact, or why it is not known. */
export async function know<T>(read: () => T | Promise<T>): Promise<Known<T>> {
  try {
    return { value: await read() };
  } catch (error) {
    return { failure: messageOf(error) };
  }
}

/** The part of a server's status that is judged. */
const statusModel = v.object({
  version: v.string(),
  started_at: v.string(),
  now: v.string(),
  paused: v.array(v.string()),
  queue: v.nullable(v.object({ waiting: v.number(), oldest_due_seconds: v.nullable(v.number()) })),
  since_start: v.object({ events: v.number() }),
  storage: v.object({ bytes_per_event: v.nullable(v.number()) }),
});

/** @returns null when no server is running @throws StartupError when one died, or does not answer as it should */
export async function findServer(dataDir: string, clock: Clock): Promise<RunningServer | UnreachableServer | null> {
  const server = readServerFile(dataDir);
  if (server === null) return null;
  // A server that ends takes its file along.
  if (!isInUse(dataDir)) {
    throw new StartupError(
      `The server of ${dataDir} (process ${server.pid}) ended without shutting down, and none has come up since. ` +
        "Try: start it, and see in the system's log what ended it; what it accepted is stored.",
    );
  }
  try {
    return await askServer(dataDir, server, clock);
  } catch (error) {
    // It may be in another container.
    if (error instanceof NotReached) return server;
    throw error;
  }
}

async function askServer(dataDir: string, { url }: UnreachableServer, clock: Clock): Promise<RunningServer> {
  const { send } = createOperatorClient(dataDir);
  const readiness = know(() => send("GET", "/readyz"));
  const askedAt = clock.now();
  const status = v.parse(statusModel, await send("GET", "/operator/status"));
  const nowMs = Date.parse(status.now);
  const clockAheadMs = aheadOf(nowMs, askedAt, clock.now());
  const ready = await readiness;
  const oldestDue = status.queue?.oldest_due_seconds ?? null;
  return {
    url,
    version: status.version,
    clockAheadMs,
    notReady: "failure" in ready ? ready.failure : null,
    uptimeMs: nowMs - Date.parse(status.started_at),
    paused: status.paused,
    queue: status.queue && {
      waiting: status.queue.waiting,
      oldestDueMs: oldestDue === null ? null : oldestDue * 1000,
    },
    eventsSinceStart: status.since_start.events,
    bytesPerEvent: status.storage.bytes_per_event,
  };
}

/** @throws the system's error, for example when there is no such folder */
export function lookAtDisk(config: Pick<Config, "dataDir" | "databaseUrl" | "minFreeDiskBytes">): DiskFacts {
  const { dataDir, databaseUrl: url } = config;
  const folder = storeFolderOf({ dataDir, url });
  return {
    ...{ folder, freeBytes: freeBytesOf(folder), floorBytes: diskFloorOf(config) },
    holdsDatabase: url === null,
    writeFault: writeFaultOf([dataDir, folder, ...(url === null ? [storeFiles(dataDir).path] : [])]),
  };
}

/** What keeps this user from writing to the first of the paths that are there and that they cannot write to. */
function writeFaultOf(paths: readonly string[]): string | null {
  try {
    for (const path of paths.filter((each) => existsSync(each))) accessSync(path, constants.W_OK);
    return null;
  } catch (error) {
    return messageOf(error);
  }
}

/** Whether a file is where the data directory or a folder above it should be, so that there is nothing else to look at. */
export function isInPlaceOfFolder(dataDir: string): boolean {
  try {
    return statSync(dataDir, { throwIfNoEntry: false })?.isDirectory() === false;
  } catch (error) {
    return codeOf(error) === "ENOTDIR";
  }
}

/** IANA reserves this name for such purposes, and it resolves. */
const publicName = "example.com";

export async function lookUp(dnsServers: readonly string[], clock: Clock): Promise<DnsFacts> {
  const resolver = createResolver({ clock, dnsServers });
  try {
    return {
      name: publicName,
      by: dnsServers.length === 0 ? "the system's name servers" : dnsServers.join(", "),
      answer: await know(() => resolver.resolve(publicName)),
      hasNetwork: Object.values(networkInterfaces()).some((addresses) => addresses?.some(({ internal }) => !internal)),
    };
  } finally {
    resolver.close();
  }
}

/** @returns null without a proxy */
export async function tryProxy(
  proxyUrl: string | null,
  clock: Clock,
): Promise<{ place: string; failure: string | null } | null> {
  if (proxyUrl === null) return null;
  const tunnels = createTunnels({ proxyUrl, clock, timeoutMs: deliveryTimeoutMs });
  const failure = await new Promise<string | null>((resolve) =>
    tunnels.open({ host: publicName, port: 443 }, (error, way) => {
      way?.destroy();
      resolve(error === null ? null : messageOf(error));
    }),
  );
  return { place: new URL(proxyUrl).host, failure };
}

/** Checking more takes longer than a user will wait, and for that long a running server's log cannot restart. */
const largestQuickCheckBytes = 2 * 2 ** 30;
const quickCheckMs = 20_000;

/** @returns null when there is no database file */
export async function lookThroughPages(dataDir: string, isDeep: boolean, clock: Clock): Promise<PagesFact | null> {
  const { databaseBytes: bytes } = storeFiles(dataDir);
  if (bytes === 0) return null;
  if (!isDeep && bytes > largestQuickCheckBytes) return { kind: "skipped", bytes };
  return checkStorePages({ dataDir, withinMs: isDeep ? null : quickCheckMs, clock });
}

/** @returns null when there is no database yet, or no readable one: other checks find that */
export async function lookAtMasterKey(
  { dataDir, databaseUrl: url, masterKeyFile }: Pick<Config, "dataDir" | "databaseUrl" | "masterKeyFile">,
  store: Known<StoreLook | null>,
  clock: Clock,
): Promise<KeyFacts | null> {
  const isThere = url === null ? storeFiles(dataDir).databaseBytes > 0 : "value" in store && store.value !== null;
  if (!isThere) return null;
  const { current: path, next } = keyFilesOf(dataDir, masterKeyFile);
  // After an interrupted rotation, the next key may already be the database's.
  const files = [path, next];
  if (!files.some((file) => existsSync(file))) return { path, next, state: "missing" };
  const [key, nextKey] = files.map(masterKeyIn);
  if (!key && !nextKey) return { path, next, state: "unreadable" };
  const opens = async (one: Uint8Array | null | undefined) =>
    one ? await storeOpensWith({ dataDir, url, clock }, one) : false;
  try {
    if (await opens(key)) return { path, next, state: "opens" };
    return { path, next, state: (await opens(nextKey)) ? "next" : "another" };
  } catch {
    return null;
  }
}

function masterKeyIn(path: string): Uint8Array | null {
  try {
    return parseMasterKey(readFileSync(path, "utf8").trim());
  } catch {
    return null;
  }
}

/** @returns null when there is no database file */
export function lookAtLog(dataDir: string): LogFacts | null {
  const { databaseBytes, logBytes, path } = storeFiles(dataDir);
  if (databaseBytes === 0) return null;
  const known = [process.pid, readServerFile(dataDir)?.pid ?? process.pid];
  return { path, bytes: logBytes, openedBy: openersOf(path, known) };
}

/** @returns null when there is no database file */
export function lookAtReplication(dataDir: string): ReplicationFacts | null {
  const { databaseBytes, logBytes, path } = storeFiles(dataDir);
  if (databaseBytes === 0) return null;
  const real = realpathSync(path);
  const folder = join(dirname(real), `.${basename(real)}-litestream`);
  return { logBytes, folder, hasFolder: existsSync(folder) };
}

export async function lookAtBackups(config: Config, clock: Clock): Promise<BackupFacts> {
  const { dataDir, backupUrl: url, backupCron, s3 } = config;
  const history = parseHistory(readBackupNotesIn(dataDir));
  const list = async () => {
    if (url === null) return [];
    const { place } = locate(asFolder(url), { s3, staging: dataDir, leaveFreeBytes: 0 });
    return answerWithin(url, () => place.list(clock.now()), { clock });
  };
  return {
    place: url,
    expectedSince: backupCron === null ? null : expectedRun(backupCron, clock.now()),
    stored: await know(list),
    history,
  };
}

/** The largest backup has been made and verified by then; until then, the latest may still be under way. */
const backupPatienceMs = 24 * 60 * 60_000;

/** Where backups are rare, the latest counts a day after it was due: the last but one may be months old. */
function expectedRun(cron: string, nowMs: number): number | null {
  const [latest, lastButOne] = new Cron(cron, { paused: true }).previousRuns(2, new Date(nowMs));
  const isOverdue = latest !== undefined && nowMs - latest.getTime() > backupPatienceMs;
  return (isOverdue ? latest : lastButOne)?.getTime() ?? null;
}
