import { expect, test } from "bun:test";
import { openSqliteStore } from "../../../src/store/sqlite/store.ts";
import type { Store } from "../../../src/store/store.ts";
import { overwritePages, pagesOf } from "../../support/damaged-database.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { useSqlite } from "../../support/sqlite-store.ts";
import { newTenant } from "../../support/store-factory.ts";

const minuteMs = 60_000;

const sqlite = useSqlite();

/** A store that was filled and closed; then the middle one of the pages of a table or index was lost. */
async function damaged<Filled>(name: string, fill: (store: Store, now: number) => Promise<Filled>) {
  const clock = createFakeClock();
  const dataDir = sqlite.emptyDir();
  const warnings: string[] = [];
  const open = () => openSqliteStore({ dataDir, clock, warn: (message) => void warnings.push(message) }).store;
  const first = open();
  const filled = await fill(first, clock.now());
  await first.close();
  const pages = pagesOf(dataDir, name, "leaf");
  expect(pages.length).toBeGreaterThan(2);
  overwritePages(dataDir, pages.slice(pages.length >> 1).slice(0, 1));
  const store = open();
  sqlite.cleanUpFirst(() => store.close());
  return { store, filled, clock, warnings };
}

test("statistics on a damaged page are lost, and those of others are written", async () => {
  const delta = { accepted: 1, delivered: 0, failed: 0, attempts: 0, latency: new Map<number, number>() };
  const { store, filled, warnings } = await damaged("sqlite_autoindex_stat_1", async (made, now) => {
    const minute = Math.floor(now / minuteMs);
    const tenantKeys: number[] = [];
    for (let i = 0; i < 20; i++) tenantKeys.push((await made.createTenant(newTenant(), now)).key);
    for (const tenantKey of tenantKeys) {
      await made.addStats(Array.from({ length: 400 }, (_, i) => ({ ...delta, tenantKey, minute: minute - i })));
    }
    return { tenantKeys, minute: minute + 1 };
  });
  const { tenantKeys, minute } = filled;
  await store.addStats(tenantKeys.map((tenantKey) => ({ ...delta, tenantKey, minute })));
  const range = { from: minute * minuteMs, to: minute * minuteMs, bucketMs: minuteMs };
  const charts = await Promise.allSettled(tenantKeys.map((tenantKey) => store.stats(tenantKey, range)));
  const written = charts.filter((chart) => chart.status === "fulfilled" && chart.value.total.accepted === 1);
  expect(written.length).toBeGreaterThanOrEqual(tenantKeys.length - 2);
  expect(written.length).toBeLessThan(tenantKeys.length);
  expect(warnings).toContainEqual(expect.stringMatching(/^A part of the statistics of the account with the key \d+ /));
});
