import { firstSeqAt } from "../../../../src/lib/id.ts";
import { createHistogram } from "../histogram.ts";
import { showProgress } from "../output.ts";
import type { Receiver } from "../receiver.ts";
import { type Server, startProduct } from "../servers.ts";
import { type Api, createApi } from "../tenants.ts";
import { accountId, seededPassword } from "./accounts.ts";
import { sizeOf, watch } from "./database.ts";
import { type History, largestTenant } from "./history.ts";
import { countHistorical, type Load, type Window } from "./load.ts";
import { settingsOf } from "./postgres.ts";
import { deepPageOf, longPage, type Place, type ReadResult, summed } from "./reads.ts";

/** What is measured at the server runs in a folder of its own: a copy of a seeded one. */
export interface Site extends Place {
  source: boolean;
  receiver: Receiver;
  history: History;
}

export interface RestartResult {
  pending: number;
  /** From the start of the process to the first delivery that arrives, of each start, in order. */
  firstDeliveryMs: readonly number[];
  /** Deliveries a second in the time after, with nothing beside them. */
  drainRate: number;
  peakBytes: number;
}

/** After the first delivery, so that the log has something to recover when the server is killed. */
const busyMs = 2_000;
const busyPollMs = 5;
/** As long as this without a first delivery, and something is broken. */
const patienceMs = 30_000;

/** Starts a server with a backlog, kills it in the middle of that, and again. The first start follows an orderly end. */
export async function measureRestart(site: Site, restarts: number): Promise<RestartResult> {
  const { events, firstPending } = site.history;
  const pending = events - firstPending;
  // A short backlog has to last for every start.
  const share = pending / (restarts + 2);
  const firstDeliveryMs: number[] = [];
  const drained = { deliveries: 0, ms: 0 };
  let peakBytes = 0;
  for (let i = 0; i <= restarts; i++) {
    showProgress(`restart ${i} of ${restarts}`);
    const seen = countHistorical(site.receiver);
    const arrival = site.receiver.nextDelivery().then(() => performance.now());
    const server = await start(site);
    const firstMs = await Promise.race([arrival, Bun.sleep(patienceMs)]);
    if (firstMs === undefined) throw new Error(`Nothing was delivered within ${patienceMs / 1000} s of a start.`);
    firstDeliveryMs.push(firstMs - server.startedMs);
    const before = { deliveries: seen.count(), ms: performance.now() };
    while (performance.now() - before.ms < busyMs && seen.count() < share) await Bun.sleep(busyPollMs);
    drained.deliveries += seen.count() - before.deliveries;
    drained.ms += performance.now() - before.ms;
    peakBytes = Math.max(peakBytes, server.meter.peakBytes());
    await server.kill();
  }
  return { pending, firstDeliveryMs, drainRate: (drained.deliveries / drained.ms) * 1000, peakBytes };
}

export const start = ({ folder, source, databaseUrl }: Site, env: Record<string, string> = {}): Promise<Server> =>
  startProduct({ dataDir: folder, source, env: { ...settingsOf(databaseUrl), ...env } });

export const wait = (seconds: number): Promise<void> => Bun.sleep(seconds * 1000);

async function logIn(api: Api): Promise<string> {
  const login = { loginId: accountId(largestTenant), password: seededPassword };
  return (await api<{ token: string }>("POST", "/v1/tenants/auth/login", undefined, login)).token;
}

export interface ListsResult {
  list: ReadResult;
  window: Window;
}

/** One client that reads the deep page again and again over HTTP, with ingestion beside it. */
export const measurePages = (server: Server, load: Load, history: History, seconds: number): Promise<ListsResult> =>
  measureLists(server, load, { name: "deep page", query: `page=${deepPageOf(history)}&size=${longPage}`, seconds });

/** And one that searches the largest account for what is nowhere, so that each search goes to its bounds. */
export const measureSearches = (server: Server, load: Load, seconds: number): Promise<ListsResult> =>
  measureLists(server, load, { name: "search", query: `q=${absentText}`, seconds });

const absentText = "nowhere-in-any-payload";

async function measureLists(
  server: Server,
  load: Load,
  { name, query, seconds }: { name: string; query: string; seconds: number },
): Promise<ListsResult> {
  const api = createApi(server.port);
  const headers = { Authorization: `Bearer ${await logIn(api)}` };
  const url = `${api.base}/v1/events?${query}`;
  const histogram = createHistogram();

  async function read(): Promise<void> {
    const endMs = performance.now() + seconds * 1000;
    while (performance.now() < endMs) {
      const startMs = performance.now();
      const response = await fetch(url, { headers });
      // Not parsed: this process sends the load.
      await response.arrayBuffer();
      if (!response.ok) throw new Error(`GET ${url}: ${response.status}`);
      histogram.record((performance.now() - startMs) * 1000);
    }
  }
  const { window } = await load.during(name, read());
  return { list: summed(`${name} over HTTP`, histogram), window };
}

export interface ReplayResult {
  selected: number;
  /** Records of it that were delivered in the time: all, unless it was watched for less. */
  delivered: number;
  window: Window;
}

interface ReplayBody {
  status: string;
  selected: number;
  delivered: number;
}

const pollMs = 500;
/** A little more than the large account's share, so that a replay of a million is one of at least a million. */
const selectedShare = 0.51;

/** The replay of a tenth of all events: of the large account's, the oldest. It ends when the last one was delivered. */
export async function measureReplay(
  server: Server,
  load: Load,
  history: History,
  atMostSeconds: number,
): Promise<ReplayResult> {
  const api = createApi(server.port);
  const token = await logIn(api);
  const last = Math.floor(history.events / 10 / selectedShare);
  const body = {
    replayGroupId: "scale",
    startTime: new Date(history.startsAt).toISOString(),
    endTime: new Date(history.timeOf(last)).toISOString(),
  };

  async function replay(): Promise<ReplayBody> {
    await api("POST", "/v1/events/replays/timeline", token, body);
    const endMs = performance.now() + atMostSeconds * 1000;
    for (;;) {
      await Bun.sleep(pollMs);
      const { replays } = await api<{ replays: ReplayBody[] }>("GET", "/v1/events/replays", token);
      const [newest] = replays;
      if (newest && (newest.status === "completed" || performance.now() > endMs)) return newest;
    }
  }
  const { result, window } = await load.during("replay", replay());
  const { status, selected, delivered } = result;
  if (status === "completed" && delivered !== selected) {
    throw new Error(`The replay ended incomplete: ${JSON.stringify(result)}`);
  }
  return { selected, delivered, window };
}

export interface EraseResult {
  /** Events of the account, the one with the most. */
  events: number;
  /** Of those, the ones that were gone in the time: all, unless it was watched for less. */
  erased: number;
  /** Until its last row was gone; after that the file gives its space back. */
  erasedSeconds: number;
  window: Window;
}

const erasePollMs = 250;

/** The deletion of the large account, to its last row and to the last free page of the file. */
export async function measureErase(
  server: Server,
  load: Load,
  folder: string,
  atMostSeconds: number,
): Promise<EraseResult> {
  const api = createApi(server.port);
  const token = await logIn(api);
  const { total } = await api<{ total: number }>("GET", "/v1/events?size=1", token);
  const watched = watch(folder);

  async function erase(): Promise<number> {
    const startMs = performance.now();
    await api("DELETE", "/v1/tenants", token);
    const untilNone = async (left: () => number) => {
      while (left() > 0 && performance.now() < startMs + atMostSeconds * 1000) await Bun.sleep(erasePollMs);
    };
    await untilNone(watched.deletedTenants);
    const erasedSeconds = (performance.now() - startMs) / 1000;
    await untilNone(watched.freePages);
    return erasedSeconds;
  }
  try {
    const { result: erasedSeconds, window } = await load.during("deletion", erase());
    return { events: total, erased: total - watched.eventsOfDeleted(), erasedSeconds, window };
  } finally {
    watched.close();
  }
}

export interface RetentionResult {
  /** That were there before. */
  events: number;
  /** That went in the time. */
  gone: number;
  /** Until the last one of those that were to go had gone; after that the file gives its space back. */
  goneSeconds: number;
  bytesBefore: number;
  bytesAfter: number;
  window: Window;
}

const hourMs = 3_600_000;

/** So that all that is not pending is too old; of a short history less than that. */
export const keptMsOf = (history: History): number =>
  Math.max(hourMs, Date.now() - history.timeOf(history.firstPending));

/** The retention of a server that was just started, to the last event that is to go and the last free page of the file. */
export async function measureRetention(
  load: Load,
  folder: string,
  { history, keptMs, atMostSeconds }: { history: History; keptMs: number; atMostSeconds: number },
): Promise<RetentionResult> {
  const watched = watch(folder);
  const bytesBefore = sizeOf(folder);
  // What is pending never goes, however old it is by now.
  const oldest = firstSeqAt(Math.min(Date.now() - keptMs, history.timeOf(history.firstPending)));
  const eventsBefore = watched.events();

  async function letGo(): Promise<number> {
    const startMs = performance.now();
    const until = async (isDone: () => boolean) => {
      while (!isDone() && performance.now() < startMs + atMostSeconds * 1000) {
        showProgress(`retention: ${Math.round((performance.now() - startMs) / 1000)} s`);
        await Bun.sleep(erasePollMs);
      }
    };
    await until(() => watched.firstSeq() >= oldest);
    const goneSeconds = (performance.now() - startMs) / 1000;
    await until(() => watched.freePages() === 0);
    return goneSeconds;
  }
  try {
    const { result: goneSeconds, window } = await load.during("retention", letGo());
    const gone = eventsBefore + window.accepted - watched.events();
    return { events: eventsBefore, gone, goneSeconds, bytesBefore, bytesAfter: sizeOf(folder), window };
  } finally {
    watched.close();
  }
}
