import { afterEach, describe, expect, test } from "bun:test";
import { unavailable } from "../../src/domain/errors.ts";
import { endedForMs } from "../../src/domain/retention.ts";
import { firstSeqAt } from "../../src/lib/id.ts";
import { silentLog } from "../../src/lib/log.ts";
import type { Loop } from "../../src/lib/loop.ts";
import { createRetention, type RetentionSettings } from "../../src/maintenance/retention.ts";
import type { AccountKept, OldEventsQuery, RetentionVerbs } from "../../src/store/retention.ts";
import { createFakeClock } from "../support/fake-clock.ts";

const dayMs = 24 * endedForMs;
const forEver: RetentionSettings = { retentionMs: null, retentionPayloadsMs: null, retentionMaxBytes: null };

const running: Loop[] = [];
afterEach(async () => {
  for (const retention of running.splice(0)) await retention.stop();
});

const noneOfItsOwn = { ownRetentionDays: null, ownPayloadDays: null, ownStorageBytes: null, storageFullAt: null };

interface Kept {
  readonly tenantKey: number;
  readonly seq: number;
  waits?: boolean;
  erased?: boolean;
}

/** Over a store with these events, of which each takes a byte. */
function setUp(settings: Partial<RetentionSettings>, ages: readonly number[]) {
  const clock = createFakeClock();
  clock.advance(100 * dayMs);
  let events: Kept[] = ages.map((age, i) => ({ tenantKey: 1 + (i % 2), seq: firstSeqAt(clock.now() - age) + i }));
  const queries: OldEventsQuery[] = [];
  let lookMs = 0;
  let faults = 0;
  let freed = 0;
  let accounts: readonly AccountKept[] = [];
  const full = new Map<number, boolean>();
  const damaged = new Set<number | "list">();
  const refuseDamaged = (what: number | "list") => {
    if (damaged.has(what)) throw unavailable("This cannot be read.", "storage_damaged");
  };
  const ended = (tenantKey: number, seqs: readonly number[]) =>
    events.filter((event) => event.tenantKey === tenantKey && seqs.includes(event.seq) && !event.waits);
  const store: RetentionVerbs = {
    async oldEvents(query) {
      queries.push(query);
      clock.advance(lookMs);
      if (faults-- > 0) throw unavailable("The disk is stuck.", "storage_unavailable");
      const { afterSeq, before, withPayload, limit, accounts: chosen } = query;
      const isChosen = (tenantKey: number) => chosen.tenantKeys.includes(tenantKey) === (chosen.kind === "only");
      const old = events.filter(
        ({ seq, erased, tenantKey }) =>
          seq > afterSeq && seq < firstSeqAt(before) && !(withPayload && erased) && isChosen(tenantKey),
      );
      const found = old.slice(0, Math.min(limit, 3));
      return { events: found, lookedTo: old.length > found.length ? (found.at(-1)?.seq ?? null) : null };
    },
    async forgetEvents(tenantKey, seqs) {
      refuseDamaged(tenantKey);
      const gone = ended(tenantKey, seqs);
      events = events.filter((event) => !gone.includes(event));
      return gone.length;
    },
    async erasePayloads(tenantKey, seqs) {
      const gone = ended(tenantKey, seqs);
      for (const event of gone) event.erased = true;
      return gone.length;
    },
    keptAnswers: async ({ after }) => ({ attempts: [], lookedTo: after, isMore: false }),
    forgetAnswers: async () => {},
    async accountsKeptOtherwise() {
      refuseDamaged("list");
      return accounts;
    },
    async storageOf(tenantKey) {
      refuseDamaged(tenantKey);
      return events.filter((event) => event.tenantKey === tenantKey).length;
    },
    async noteStorageFull(tenantKey, since) {
      full.set(tenantKey, since !== null);
      accounts = accounts.map((one) => (one.tenantKey === tenantKey ? { ...one, storageFullAt: since } : one));
    },
    storedEvents: async () => events.length,
    usedBytes: async () => events.length,
  };
  const retention = createRetention({
    store,
    settings: { ...forEver, ...settings },
    clock,
    log: silentLog,
    mayRun: () => true,
    passOn() {},
    onFreed() {
      freed += 1;
    },
  });
  running.push(retention);
  return {
    clock,
    queries,
    retention,
    events: () => events,
    full,
    damage: (what: number | "list") => void damaged.add(what),
    setOwn(...own: (Partial<AccountKept> & { tenantKey: number })[]) {
      accounts = own.map((one) => ({ ...noneOfItsOwn, ...one }));
    },
    freed: () => freed,
    /** From now on each look takes a second, and so a step three. */
    slowDown() {
      lookMs = 1_000;
    },
    /** Lets time pass without waiting for the end of a walk. */
    async run(ms: number) {
      for (let passed = 0; passed < ms; passed += 500) {
        await new Promise<void>((resolve) => setImmediate(resolve));
        clock.advance(500);
      }
    },
    fail() {
      faults = 1;
    },
    async pass(ms: number) {
      clock.advance(ms);
      await retention.whenIdle();
    },
    async begin() {
      retention.start();
      await retention.whenIdle();
    },
  };
}

const days = (...ages: number[]) => ages.map((age) => age * dayMs);

describe("retention", () => {
  test("keeps everything, and looks at nothing, unless it is told otherwise", async () => {
    const { begin, events, queries } = setUp({}, days(90, 60));
    await begin();
    expect([events().length, queries.length]).toEqual([2, 0]);
  });

  test("lets events go that are older, of every account, and gives their room back", async () => {
    const { begin, events, freed } = setUp({ retentionMs: 30 * dayMs }, days(90, 80, 70, 60, 50, 31, 29, 1));
    await begin();
    expect([events().length, freed()]).toEqual([2, 1]);
  });

  test("lets payloads go first", async () => {
    const settings = { retentionMs: 60 * dayMs, retentionPayloadsMs: 30 * dayMs };
    const { begin, events } = setUp(settings, days(90, 80, 50, 40, 29));
    await begin();
    expect(events().map(({ erased }) => erased === true)).toEqual([true, true, false]);
  });

  test("lets the oldest go as long as there is too much", async () => {
    const { begin, events } = setUp({ retentionMaxBytes: 4 }, days(6, 5, 4, 3, 2, 1, 0.5));
    const newest = events().slice(3);
    await begin();
    expect(events()).toEqual(newest.slice(-events().length));
    expect(events().length).toBeLessThanOrEqual(4);
  });

  test("leaves what has come within the hour, however much there is", async () => {
    const { begin, events } = setUp({ retentionMaxBytes: 1 }, [dayMs, endedForMs - 1, 0]);
    await begin();
    expect(events()).toHaveLength(2);
  });

  test("lets the oldest go before newer ones also when they waited the last time", async () => {
    const { begin, pass, clock, events } = setUp({ retentionMaxBytes: 1 }, days(3, 2, 1));
    const oldest = [...events()];
    for (const event of oldest) event.waits = true;
    await begin();
    expect(events()).toEqual(oldest);
    const newer = { tenantKey: 1, seq: firstSeqAt(clock.now()) };
    events().push(newer);
    for (const event of oldest) event.waits = false;
    await pass(2 * endedForMs);
    expect(events()).toEqual([newer]);
  });

  test("goes through many that wait only now and then, however long there is too much", async () => {
    const { retention, run, slowDown, events, queries } = setUp({ retentionMaxBytes: 1 }, Array(30).fill(dayMs));
    for (const event of events()) event.waits = true;
    slowDown();
    retention.start();
    const begun = () => queries.filter(({ afterSeq }) => afterSeq === 0).length;
    // Ten steps of three seconds.
    await run(5 * 60_000);
    expect(begun()).toBe(1);
    await run(3 * 60_000);
    expect(begun()).toBe(2);
  });

  test("goes on each minute from where it was, and looks again at what waited a day later", async () => {
    const { begin, pass, events, queries } = setUp({ retentionMs: 30 * dayMs }, days(40, 35, 30));
    const [first] = events();
    if (first) first.waits = true;
    await begin();
    expect(events()).toHaveLength(2);
    queries.length = 0;
    if (first) first.waits = false;
    await pass(60_000);
    expect(events()).toEqual(first ? [first] : []);
    expect(queries.every(({ afterSeq }) => afterSeq >= (first?.seq ?? 0))).toBe(true);
    for (let minute = 0; minute < 24 * 60; minute++) await pass(60_000);
    expect(events()).toEqual([]);
  });

  test("keeps what an account keeps otherwise for as long as that", async () => {
    const { begin, pass, events, setOwn } = setUp({ retentionMs: 30 * dayMs }, days(90, 90, 20, 20, 5, 5));
    setOwn({ tenantKey: 1, ownRetentionDays: 10, ownPayloadDays: 1 }, { tenantKey: 2, ownRetentionDays: 0 });
    await begin();
    expect(events().map(({ tenantKey, erased }) => [tenantKey, erased])).toEqual([
      [2, undefined],
      [2, undefined],
      [1, true],
      [2, undefined],
    ]);
    setOwn();
    await pass(60_000);
    expect(events().map(({ tenantKey }) => tenantKey)).toEqual([2, 1, 2]);
  });

  test("finds out which accounts take more than they may, and when they do not any more", async () => {
    const { begin, pass, full, setOwn } = setUp({}, days(9, 9, 8));
    setOwn({ tenantKey: 1, ownStorageBytes: 1 }, { tenantKey: 2, ownStorageBytes: 1 });
    await begin();
    expect([...full]).toEqual([[1, true]]);
    setOwn({ tenantKey: 1, ownStorageBytes: 2, storageFullAt: 1 });
    await pass(60_000);
    expect([...full]).toEqual([[1, false]]);
  });

  test("finds that out each minute, also while there is much to let go", async () => {
    const { retention, run, full, setOwn, slowDown, events } = setUp(
      { retentionMs: 30 * dayMs },
      Array(600).fill(40 * dayMs),
    );
    setOwn({ tenantKey: 1, ownStorageBytes: 280 });
    slowDown();
    retention.start();
    await run(30_000);
    expect([...full]).toEqual([[1, true]]);
    await run(60_000);
    expect([...full]).toEqual([[1, false]]);
    expect(events().length).toBeGreaterThan(300);
  });

  test("passes over an account that is damaged: its size cannot be read, and its old events stay", async () => {
    const { begin, full, setOwn, damage, events } = setUp({ retentionMs: 30 * dayMs }, days(40, 40, 40, 40, 9, 9, 9));
    setOwn({ tenantKey: 1, ownStorageBytes: 0 }, { tenantKey: 2, ownStorageBytes: 1 });
    damage(1);
    await begin();
    expect([...full]).toEqual([[2, true]]);
    expect(events().map(({ tenantKey }) => tenantKey)).toEqual([1, 1, 1, 2, 1]);
  });

  test("lets nothing go while it cannot be read what accounts keep for longer", async () => {
    const { begin, pass, damage, events, queries } = setUp({ retentionMs: 30 * dayMs }, days(40));
    damage("list");
    await begin();
    await pass(60_000);
    expect([events().length, queries.length]).toEqual([1, 0]);
  });

  test("tries again after a fault", async () => {
    const { retention, clock, events, queries, fail } = setUp({ retentionMs: 30 * dayMs }, days(40));
    fail();
    retention.start();
    while (events().length > 0) {
      await new Promise<void>((resolve) => setImmediate(resolve));
      clock.advance(5_000);
    }
    expect(queries.length).toBeGreaterThan(1);
  });
});
