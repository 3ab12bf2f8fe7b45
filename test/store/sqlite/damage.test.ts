import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { cpSync } from "node:fs";
import { join } from "node:path";
import type { AttemptRef } from "../../../src/store/deliveries.ts";
import {
  beforeAll,
  type SealedPlace,
  type SealedRef,
  type SealedSlice,
  type SealedValue,
} from "../../../src/store/sealed.ts";
import { databaseFile } from "../../../src/store/sqlite/open.ts";
import { openSqliteStore } from "../../../src/store/sqlite/store.ts";
import type { Store } from "../../../src/store/store.ts";
import { overwritePages, pagesOf } from "../../support/damaged-database.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { readAll } from "../../support/read-all.ts";
import { useSqlite } from "../../support/sqlite-store.ts";
import { bytes, newReplay, newTenant, newWebhooks, settlementOf, untyped } from "../../support/store-factory.ts";

const minuteMs = 60_000;

const sqlite = useSqlite();

/** A store that was filled and closed; then the middle one of the pages of a table or index was lost. */
async function damaged<Filled>(name: string, fill: (store: Store, now: number, dataDir: string) => Promise<Filled>) {
  const clock = createFakeClock();
  const dataDir = sqlite.emptyDir();
  const warnings: string[] = [];
  const open = () => openSqliteStore({ dataDir, clock, warn: (message) => void warnings.push(message) }).store;
  const first = open();
  const filled = await fill(first, clock.now(), dataDir);
  await first.close();
  const pages = pagesOf(dataDir, name, "leaf");
  expect(pages.length).toBeGreaterThan(2);
  overwritePages(dataDir, pages.slice(pages.length >> 1).slice(0, 1));
  const store = open();
  sqlite.cleanUpFirst(() => store.close());
  return { store, filled, clock, warnings, dataDir };
}

/** An account with 3,000 events, each delivered with an answer that has a body. */
async function fillHistory(store: Store, now: number) {
  const made = newTenant({ urls: ["https://a.example/hook"] });
  const { key: tenantKey } = await store.createTenant(made, now);
  for (let i = 0; i < 30; i++) {
    const events = Array.from({ length: 100 }, () => untyped(bytes(JSON.stringify({ filler: "x".repeat(300) }))));
    const given = { tenantKey, apiKeyId: made.apiKey.id, events, roomFor: () => events.length };
    const { deliveries } = await store.acceptEvents(given);
    await Promise.all(deliveries.map((delivery) => store.settle(settlementOf(delivery, "delivered", now))));
  }
  return { tenantKey };
}

const all = 3_000;
/** Events or attempts on a page. */
const mostOnPage = 100;

test("retention passes over the events of a damaged page, and over no others", async () => {
  const { store, filled, clock } = await damaged("event", fillHistory);
  for (const accounts of [
    { kind: "except", tenantKeys: [] },
    { kind: "only", tenantKeys: [filled.tenantKey] },
  ] as const) {
    const found = new Set<number>();
    clock.advance(minuteMs);
    for (let afterSeq: number | null = 0; afterSeq !== null; ) {
      const query = { afterSeq, before: clock.now(), accounts, withPayload: true, limit: 200 };
      const { events, lookedTo } = await store.oldEvents(query);
      for (const { seq } of events) found.add(seq);
      afterSeq = lookedTo;
    }
    expect(found.size).toBeLessThan(all);
    expect(found.size).toBeGreaterThanOrEqual(all - mostOnPage);
  }
});

test("answers on a damaged page of the log are passed over, and no others", async () => {
  const { store, clock } = await damaged("attempt", fillHistory);
  clock.advance(minuteMs);
  const found = new Set<number>();
  let after: AttemptRef | null = null;
  for (let isMore = true; isMore; ) {
    const look = await store.keptAnswers({ after, before: clock.now(), now: clock.now() });
    for (const { key } of look.attempts) found.add(key);
    ({ lookedTo: after, isMore } = look);
  }
  expect(found.size).toBeLessThan(all);
  expect(found.size).toBeGreaterThanOrEqual(all - mostOnPage);
});

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

test("what has outlived its use goes, except from a damaged table", async () => {
  const hourMs = 60 * minuteMs;
  const { store, clock, warnings, dataDir } = await damaged("idempotency", async (made, now) => {
    const tenant = newTenant();
    const { key: tenantKey } = await made.createTenant(tenant, now);
    const keys = Array.from({ length: 200 }, (_, i) => `${i} ${"x".repeat(200)}`);
    await Promise.all(
      keys.map((key) =>
        made.acceptEvents({
          ...{ tenantKey, apiKeyId: tenant.apiKey.id, events: [untyped(bytes("{}"))] },
          idempotency: { key, fingerprint: new Uint8Array(32) },
        }),
      ),
    );
    await made.endSession("session", now + hourMs);
  });
  clock.advance(40 * 24 * hourMs);
  const client = new Database(join(dataDir, databaseFile), { readonly: true });
  const sessions = () => client.query("select id from ended_session").values().length;
  expect(sessions()).toBe(1);
  while (await store.prune(clock.now(), 100));
  expect(sessions()).toBe(0);
  client.close();
  expect(warnings).toContainEqual(expect.stringMatching(/^The table idempotency cannot be read/));
});

test("a start passes over old records on a damaged page, and files what is behind them", async () => {
  const clock = createFakeClock();
  const dataDir = sqlite.emptyDir();
  const first = openSqliteStore({ dataDir, clock }).store;
  const { tenantKey } = await fillHistory(first, clock.now());
  const other = newTenant({ urls: ["https://b.example/hook"] });
  const { key } = await first.createTenant(other, clock.now());
  await first.acceptEvents({ tenantKey: key, apiKeyId: other.apiKey.id, events: [untyped(bytes("{}"))] });
  const left = sqlite.emptyDir();
  cpSync(dataDir, left, { recursive: true });
  await first.close();
  const pages = pagesOf(left, "delivery", "leaf");
  overwritePages(left, [...pages.slice(2, 4), ...pages.slice(6, 7)]);
  const warnings: string[] = [];
  const { store } = openSqliteStore({ dataDir: left, clock, warn: (message) => void warnings.push(message) });
  sqlite.cleanUpFirst(() => store.close());
  expect(warnings).toEqual([expect.stringMatching(/^A part of the table delivery cannot be read/)]);
  const listed = async (of: number) =>
    (await readAll((await store.page({ tenantKey: of, page: 0, size: 10 })).records)).length;
  expect(await listed(key)).toBe(1);
  expect(await listed(tenantKey)).toBe(10);
});

test("a damaged record that waits for a cancelled replay holds up neither the others nor other replays", async () => {
  const { store, filled, clock, warnings } = await damaged("delivery", async (made, now) => {
    const limits = { unfinished: 11, perDay: null };
    const begin = async (tenantKey: number) => {
      const { id } = await made.startReplay(tenantKey, newReplay("all"), now, limits);
      while (await made.queueReplayBatch(1_000, now));
      await made.cancelReplay(tenantKey, id, now);
      return { tenantKey, id };
    };
    const one = await fillHistory(made, now);
    const other = await fillHistory(made, now);
    // Those of the other one are on the pages behind.
    return [await begin(one.tenantKey), await begin(other.tenantKey)];
  });
  const returned = async () => {
    for (;;) if ((await store.returnCancelled(100, clock.now())) === null) break;
    return Promise.all(filled.map(async ({ tenantKey, id }) => (await store.findReplay(tenantKey, id))?.returned ?? 0));
  };
  const counts = (await returned()).sort((a, b) => a - b);
  expect(counts[0]).toBeLessThan(all);
  expect(counts[0]).toBeGreaterThanOrEqual(all - mostOnPage);
  expect(counts[1]).toBe(all);
  expect(warnings).toContainEqual(expect.stringMatching(/^The delivery with the key \d+ cannot be read/));
  expect((await returned()).sort((a, b) => a - b)).toEqual(counts);
});

describe("what is sealed with the master key", () => {
  async function sealedIn(store: Store, place: SealedPlace) {
    const values: SealedValue[] = [];
    let damagedRows = 0;
    for (let at: SealedRef | null = beforeAll; at !== null; ) {
      const slice: SealedSlice = await store.sealedValues(place, at, 100);
      values.push(...slice.values);
      damagedRows += slice.damaged;
      at = slice.next;
    }
    return { values, damagedRows };
  }

  /** So many keys that a start does not read them all. */
  const keys = 21_000;
  const fillKeys = async (store: Store, now: number, dataDir: string) => {
    const { key } = await store.createTenant(newTenant(), now);
    const client = new Database(join(dataDir, databaseFile));
    client.run(
      `with recursive n(i) as (select 2 union all select i + 1 from n where i < ${keys})
       insert into api_key (key, id, tenant_key, hash, sealed, created_at, expires_at)
       select i, 'key_' || i, ${key}, randomblob(32), randomblob(75), 1, null from n`,
    );
    client.close();
  };

  test("is read up to a damaged page and from behind it, and what is on it is counted", async () => {
    const { store, warnings } = await damaged("api_key", fillKeys);
    const { values, damagedRows } = await sealedIn(store, "api_key");
    expect(damagedRows).toBeGreaterThan(0);
    expect(damagedRows).toBeLessThanOrEqual(mostOnPage);
    expect(new Set(values.map(({ key }) => key)).size).toBe(keys - damagedRows);
    expect(warnings).toEqual([expect.stringMatching(/^A part of the table api_key cannot be read/)]);
  });

  const accounts = 600;
  const fillAccounts = async (store: Store, now: number, dataDir: string) => {
    const client = new Database(join(dataDir, databaseFile));
    client.run("insert into sqlite_sequence (name, seq) values ('tenant', 30000)");
    client.close();
    const webhooks = newWebhooks({ url: "https://a.example/hook", sealedHeaders: bytes("old") });
    const made = Array.from({ length: accounts }, () => store.createTenant(newTenant({ webhooks }), now));
    return Promise.all(made);
  };

  test("is passed over row by row where the account is on a damaged page", async () => {
    const { store } = await damaged("tenant", fillAccounts);
    const { values, damagedRows } = await sealedIn(store, "webhook");
    expect(damagedRows).toBeGreaterThan(0);
    expect(damagedRows).toBeLessThanOrEqual(mostOnPage);
    expect(values).toHaveLength(accounts - damagedRows);
  });

  test("is replaced, apart from that of accounts of which something is on a damaged page", async () => {
    const { store, warnings } = await damaged("tenant_usage", fillAccounts);
    const { values } = await sealedIn(store, "webhook");
    expect(values).toHaveLength(accounts);
    const changes = values.map((value) => ({ ...value, was: value.sealed, sealed: bytes("new") }));
    const { replaced, damaged: left } = await store.reseal("webhook", changes);
    expect(left).toBeGreaterThan(0);
    expect(replaced).toBe(accounts - left);
    const after = (await sealedIn(store, "webhook")).values;
    expect(after.filter(({ sealed }) => Buffer.from(sealed).toString() === "new")).toHaveLength(replaced);
    expect(warnings).toContainEqual(expect.stringMatching(/^Something that the row \d+ of the table webhook needs/));
  });
});
