import { openDataDir } from "../../../../src/data-dir.ts";
import { systemClock } from "../../../../src/lib/clock.ts";
import { createRandom } from "../../../../src/lib/random.ts";
import { createVault } from "../../../../src/lib/vault.ts";
import { openStore } from "../../../../src/store/open.ts";
import type { PageQuery, Store } from "../../../../src/store/store.ts";
import { readAll } from "../../../support/read-all.ts";
import { createHistogram, type Histogram } from "../histogram.ts";
import { showProgress } from "../output.ts";
import { findAccount, readApiKeys } from "./accounts.ts";
import { dataIn } from "./database.ts";
import { type History, largestTenant, tenants } from "./history.ts";

/** How long one kind of read takes at the store, in ms. */
export interface ReadResult {
  name: string;
  calls: number;
  p50Ms: number;
  p99Ms: number;
  maxMs: number;
}

export interface Reads {
  /** 20 records, of accounts at random. */
  firstPage: ReadResult;
  /** 1,000 records of the largest account. */
  firstLongPage: ReadResult;
  firstFailedPage: ReadResult;
  /** 1,000 records that begin at half of all events: of ten million, page 5,000. */
  deepPage: ReadResult;
  /** 1,000 records in the middle of the largest account. */
  middlePage: ReadResult;
  oneEvent: ReadResult;
  /** The failure groups of the largest account, of the last day on which anything was attempted. */
  failures: ReadResult;
}

export const longPage = 1_000;
const shortPage = 20;
const manyCalls = 2_000;
const someCalls = 300;
const fewCalls = 40;
const dayMs = 24 * 60 * 60 * 1000;

/** Page number, from 0, of the deep page. */
export const deepPageOf = ({ events }: History): number => Math.floor(events / 2 / longPage);

/** Where a history is: in the folder; or in a database, and only the secrets there. */
export interface Place {
  folder: string;
  databaseUrl: string | undefined;
}

/** Opens the store of a folder in this process, and closes it after. */
async function withStore<T>(
  { folder, databaseUrl }: Place,
  use: (store: Store, masterKey: Uint8Array) => Promise<T>,
): Promise<T> {
  const dataDir = openDataDir(dataIn(folder));
  const { store } = await openStore({
    ...(databaseUrl === undefined ? { dataDir: dataDir.path } : { url: databaseUrl }),
    clock: systemClock,
  });
  try {
    return await use(store, dataDir.secrets.masterKey);
  } finally {
    await store.close();
    dataDir.release();
  }
}

export const apiKeysIn = (place: Place, count: number): Promise<string[]> =>
  withStore(place, (store, masterKey) => readApiKeys(store, createVault(masterKey), count));

/** Every kind of read that a client waits for, at the store, in this process, with nothing beside it. */
export const measureReads = (place: Place, history: History): Promise<Reads> =>
  withStore(place, async (store) => {
    const random = createRandom(1);
    const accounts = await Promise.all(Array.from({ length: tenants }, (_, tenant) => findAccount(store, tenant)));
    const keyOf = (tenant: number) => accounts[tenant]?.key ?? 0;
    const largestKey = keyOf(largestTenant);
    const anyTenant = () => keyOf(random.between(0, tenants - 1));
    const list = async (query: PageQuery) => {
      const { records: list, total } = await store.page(query);
      const records = await readAll(list);
      const wanted = Math.min(query.size, total - query.page * query.size);
      if (records.length !== wanted)
        throw new Error(`Page ${query.page} has ${records.length} records, not ${wanted}.`);
    };
    const largest = (page: number) => list({ tenantKey: largestKey, page, size: longPage });
    const { total } = await store.page({ tenantKey: largestKey, page: 0, size: 1 });
    const middle = Math.floor(total / 2 / longPage);
    const owners = ownersOf(history);
    // What is pending at the end of a history was never attempted: of ten million events those of its last days.
    const to = history.timeOf(history.firstPending - 1);
    const lastDay = { tenantKey: largestKey, from: to - dayMs, to };
    const { groups } = await store.failures(lastDay);
    if (groups.length === 0) throw new Error("Nothing has failed on the last day.");

    return {
      firstPage: await time("first page", manyCalls, () => list({ tenantKey: anyTenant(), page: 0, size: shortPage })),
      firstLongPage: await time("first page of 1,000", someCalls, () => largest(0)),
      firstFailedPage: await time("first page of FAILED", someCalls, () =>
        list({ tenantKey: anyTenant(), page: 0, size: shortPage, state: "FAILED" }),
      ),
      deepPage: await time("deep page", fewCalls, () => largest(deepPageOf(history))),
      middlePage: await time("middle page", fewCalls, () => largest(middle)),
      oneEvent: await time("one event", manyCalls, async () => {
        const event = random.between(0, history.events - 1);
        const list = await store.records(keyOf(owners[event] ?? 0), history.idOf(event));
        const records = list ? await readAll(list) : [];
        if (records.length !== 1) throw new Error(`Event ${event} has ${records.length} records, not one.`);
      }),
      failures: await time("failure groups of a day", someCalls, async () => {
        await store.failures(lastDay);
      }),
    };
  });

/** Whose each event is. */
function ownersOf(history: History): Uint16Array {
  const owners = new Uint16Array(history.events);
  let at = 0;
  for (const { tenant } of history.walk()) owners[at++] = tenant;
  return owners;
}

async function time(name: string, calls: number, call: () => Promise<void>): Promise<ReadResult> {
  showProgress(`reading: ${name}`);
  const histogram = createHistogram();
  for (let i = 0; i < calls; i++) {
    const startMs = performance.now();
    await call();
    histogram.record((performance.now() - startMs) * 1000);
  }
  return summed(name, histogram);
}

export const summed = (name: string, histogram: Histogram): ReadResult => ({
  name,
  calls: histogram.count(),
  p50Ms: histogram.percentileMs(50),
  p99Ms: histogram.percentileMs(99),
  maxMs: histogram.maxMs(),
});
