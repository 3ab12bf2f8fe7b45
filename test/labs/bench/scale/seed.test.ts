import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openDataDir } from "../../../../src/data-dir.ts";
import type { DueDelivery } from "../../../../src/domain/delivery.ts";
import type { Tenant } from "../../../../src/domain/tenant.ts";
import { parseEventId } from "../../../../src/lib/id.ts";
import { createVault } from "../../../../src/lib/vault.ts";
import { latencyBucket } from "../../../../src/store/latency.ts";
import { openStore } from "../../../../src/store/open.ts";
import { databaseFile } from "../../../../src/store/sqlite/open.ts";
import type { Store } from "../../../../src/store/store.ts";
import { createFakeClock, type FakeClock } from "../../../support/fake-clock.ts";
import { latestKey } from "../../../support/store-factory.ts";
import { createAccounts } from "./accounts.ts";
import { dataIn, examine } from "./database.ts";
import {
  attemptsOf,
  createHistory,
  createPayloads,
  type History,
  type PastAttempt,
  type PastEvent,
  statusOfSuccess,
} from "./history.ts";
import { seed } from "./seed.ts";

/** Over the end of a month, so that the counter of the month is not that of all. */
const endsAt = Date.UTC(2026, 2, 1, 0, 1);
const minuteMs = 60_000;

/** An account's attempt, and what it belongs to. */
interface Step {
  at: number;
  event: PastEvent;
  attempt: PastAttempt;
  delivery: DueDelivery;
}

/** Lets the store write a history: every event is accepted, and every attempt settled, when it was. */
async function live(store: Store, clock: FakeClock, accounts: Tenant[], history: History): Promise<void> {
  const payloadOf = createPayloads();
  let waiting: Step[] = [];

  async function settleUntil(now: number): Promise<void> {
    const due = waiting.filter(({ at }) => at <= now).sort((a, b) => a.at - b.at);
    waiting = waiting.filter(({ at }) => at > now);
    for (const step of due) await settle(step);
  }

  async function settle({ at, event, attempt, delivery }: Step): Promise<void> {
    clock.step(at - clock.now());
    const delivered = attempt.statusCode === statusOfSuccess;
    const next = delivered
      ? ({ kind: "delivered" } as const)
      : attempt.isLast
        ? ({ kind: "failed" } as const)
        : ({ kind: "retry", at: at + 5_000 } as const);
    await store.settle({
      delivery,
      attempt: {
        startedAt: attempt.startedAt,
        durationMs: event.durationMs,
        statusCode: attempt.statusCode,
        error: delivered ? null : `HTTP ${attempt.statusCode} from ${delivery.url}`,
        errorCode: delivered ? null : "http_status",
        responseBody: null,
        answerHead: null,
      },
      next,
    });
    const latency = new Map([[latencyBucket(event.durationMs), 1]]);
    const counts = { accepted: 0, delivered: 0, failed: 0, attempts: 1, latency };
    if (attempt.isLast) counts[delivered ? "delivered" : "failed"] = 1;
    await store.addStats([{ tenantKey: delivery.tenantKey, minute: Math.floor(at / minuteMs), ...counts }]);
  }

  let n = 0;
  for (const { ...event } of history.walk()) {
    await settleUntil(event.at);
    clock.step(event.at - clock.now());
    const tenantKey = accounts[event.tenant]?.key ?? 0;
    const apiKeyId = await latestKey(store, tenantKey);
    const accepted = await store.acceptEvents({
      tenantKey,
      apiKeyId,
      events: [{ payload: payloadOf(n), type: null }],
      roomFor: () => 1,
    });
    const [delivery] = accepted.deliveries;
    if (!delivery) throw new Error("The account has no webhook");
    const counts = { accepted: 1, delivered: 0, failed: 0, attempts: 0, latency: new Map() };
    await store.addStats([{ tenantKey, minute: Math.floor(event.at / minuteMs), ...counts }]);
    waiting.push(...attemptsOf(event).map((attempt) => ({ at: attempt.endedAt, event, attempt, delivery })));
    n += 1;
  }
  await settleUntil(Number.POSITIVE_INFINITY);
}

const folders: string[] = [];
function emptyFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "postrider-scale-"));
  folders.push(folder);
  return folder;
}
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true });
});

describe("a seeded database", () => {
  const history = createHistory(800, endsAt);
  let seeded = "";
  let lived = "";

  beforeAll(async () => {
    seeded = emptyFolder();
    await seed(dataIn(seeded), history);
    lived = emptyFolder();
    const folder = openDataDir(dataIn(lived));
    const clock = createFakeClock(history.startsAt);
    const { store } = await openStore({ dataDir: folder.path, clock, pauses: false, secondThread: false });
    const accounts = await createAccounts(store, createVault(folder.secrets.masterKey), history.startsAt);
    await live(store, clock, accounts, history);
    await store.close();
    folder.release();
  });

  function rowsOf(folder: string, sql: string): unknown[] {
    const client = new Database(join(dataIn(folder), databaseFile), { readonly: true });
    const rows = client.query(sql).values();
    client.close();
    return rows;
  }

  // Keys of attempts are given as they are settled, which the seed does event by event; the tail of an id is random.
  test.each([
    ["event", "select seq, tenant_key, payload from event order by seq"],
    ["delivery", "select * from delivery order by key"],
    [
      "attempt",
      `select tenant_key, event_seq, webhook_key, number, started_at, duration_ms, status_code, error, response_body,
         replay_key from attempt order by event_seq, number`,
    ],
    ["stat", "select * from stat order by tenant_key, minute"],
    ["tenant_usage", "select * from tenant_usage order by tenant_key"],
    ["failure_group", "select * from failure_group order by tenant_key, key"],
    ["failure_count", "select * from failure_count order by tenant_key, failure_key, hour"],
  ])("has the rows of %s that the store writes", (_, sql) => {
    const rows = rowsOf(seeded, sql);
    expect(rows).not.toEqual([]);
    expect(rows).toEqual(rowsOf(lived, sql));
  });

  test("has records in every state, and counts the month apart", () => {
    const [states, months] = [
      "select distinct state from delivery order by state",
      "select count(*) from tenant_usage where events_in_month between 1 and events - 1",
    ].map((sql) => rowsOf(seeded, sql));
    expect(states).toEqual([[0], [1], [2]]);
    expect(months).not.toEqual([[0]]);
  });

  test("has an index entry for every row, and the schema of the store", () => {
    expect(rowsOf(seeded, "pragma integrity_check")).toEqual([["ok"]]);
    const schema = "select name, sql from sqlite_schema order by name";
    expect(rowsOf(seeded, schema)).toEqual(rowsOf(lived, schema));
  });

  test("goes on behind its last event", () => {
    const lastSeq = "select last_event_seq from lane";
    expect(rowsOf(seeded, lastSeq)).toEqual(rowsOf(seeded, "select max(seq) from event"));
  });

  test("has the ids that the history says", () => {
    const [[seq, tail]] = rowsOf(seeded, "select seq, id_tail from event order by seq limit 1 offset 77") as [
      [number, Uint8Array],
    ];
    expect(parseEventId(history.idOf(77))).toEqual({ seq, tail: new Uint8Array(tail) });
  });

  test.each([
    [
      "a counter that is off",
      "update tenant_usage set failed = failed + 1 where tenant_key = 1000",
      "counters of a tenant",
    ],
    ["an attempt of no event", "update attempt set event_seq = 7 where key = 3", "lost the one it belongs to"],
    ["an attempt that nobody made", "delete from attempt where key = 3", "counted its attempts"],
    ["a minute too few", "delete from stat where rowid = 5", "minutes of a tenant"],
  ])("is found out by the examination: %s", (_, damage, rule) => {
    const folder = emptyFolder();
    cpSync(seeded, folder, { recursive: true });
    const client = new Database(join(dataIn(folder), databaseFile));
    client.run(damage);
    client.close();
    expect(() => examine(folder)).toThrow(rule);
  });

  test("passes the examination", () => {
    expect(() => examine(seeded)).not.toThrow();
    expect(() => examine(lived)).not.toThrow();
  });
});
