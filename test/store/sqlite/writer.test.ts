import { Database } from "bun:sqlite";
import { describe, expect, spyOn, test } from "bun:test";
import type { DueDelivery } from "../../../src/domain/delivery.ts";
import { createFakeClock } from "../../support/fake-clock.ts";
import { readAll } from "../../support/read-all.ts";
import { useSqlite } from "../../support/sqlite-store.ts";
import {
  bytes,
  latestKey,
  newApiKeyRow,
  newTenant,
  refusalOf,
  settlementOf,
  untyped,
} from "../../support/store-factory.ts";

const sqlite = useSqlite();

describe("group commit", () => {
  const events = [untyped(bytes("{}"))];

  test("jobs that arrive together share a commit", async () => {
    const commits: number[] = [];
    const { store } = await sqlite.store({ onCommit: ({ jobs }) => commits.push(jobs) });
    const tenant = await store.createTenant(newTenant({ urls: ["https://a.example"] }), 1);
    const apiKeyId = await latestKey(store, tenant.key);
    commits.length = 0;
    await Promise.all(
      Array.from({ length: 2_000 }, () => store.acceptEvents({ tenantKey: tenant.key, apiKeyId, events })),
    );
    expect(commits.reduce((sum, jobs) => sum + jobs, 0)).toBe(2_000);
    expect(commits.length).toBeLessThanOrEqual(4);
  });

  test("what arrives during a commit goes into the next one", async () => {
    const commits: number[] = [];
    const { store } = await sqlite.store({ onCommit: ({ jobs }) => commits.push(jobs) });
    const tenant = await store.createTenant(newTenant(), 1);
    const apiKeyId = await latestKey(store, tenant.key);
    commits.length = 0;
    const accept = () => store.acceptEvents({ tenantKey: tenant.key, apiKeyId, events });
    await Promise.all([accept().then(accept), accept().then(accept)]);
    expect(commits).toEqual([2, 2]);
  });

  test("of the time that a commit takes, the part without a processor is one in which the thread stood still", async () => {
    const stood: number[] = [];
    const clock = createFakeClock();
    // Each commit takes 200 ms by this clock, and hardly any of the processor.
    const slow = {
      ...clock,
      monotonicMs() {
        clock.advance(200);
        return clock.monotonicMs();
      },
    };
    const { store } = await sqlite.store({ clock: slow, onStandstill: (ms) => stood.push(ms) });
    stood.length = 0;
    await store.createTenant(newTenant(), 1);
    expect(stood).toHaveLength(1);
    expect(stood[0]).toBeGreaterThan(100);
  });

  test("a rest after a commit ends as soon as the next one is full", async () => {
    const { store } = await sqlite.store();
    const tenant = await store.createTenant(newTenant(), 1);
    const apiKeyId = await latestKey(store, tenant.key);
    const accept = () => store.acceptEvents({ tenantKey: tenant.key, apiKeyId, events });
    await accept();
    // A rest that does not end by itself.
    const timers = spyOn(globalThis, "setTimeout").mockReturnValue(setTimeout(() => {}) as never);
    try {
      await Promise.all(Array.from({ length: 512 }, accept));
    } finally {
      timers.mockRestore();
    }
  });

  test("the outcome of an attempt for which nothing waits shares the next commit, and has one of its own if none comes", async () => {
    const commits: number[] = [];
    const { store } = await sqlite.store({ onCommit: ({ jobs }) => commits.push(jobs) });
    const tenant = await store.createTenant(newTenant({ urls: ["https://a.example"] }), 1);
    const apiKeyId = await latestKey(store, tenant.key);
    const accept = async () => {
      const { deliveries } = await store.acceptEvents({ tenantKey: tenant.key, apiKeyId, events, roomFor: () => 1 });
      return settlementOf(deliveries[0] as DueDelivery, "delivered", Date.now());
    };
    const first = await accept();
    commits.length = 0;
    const [{ kind }, second] = await Promise.all([store.settle(first, false), accept()]);
    expect([kind, commits]).toEqual(["settled", [2]]);
    await store.settle(second, false);
    expect(commits).toEqual([2, 1]);
  });

  test.each([
    ["128 at most", 0, [1 + 128, 128, 44]],
    ["what can be written in 5 ms, if that is fewer", 0.125, [1 + 41, 41, 41, 41, 41, 41, 41, 13]],
  ])(
    "who posts waits for few settlements, however many attempts have ended at once: %s",
    async (_, eachMs, expected) => {
      const commits: number[] = [];
      const { store } = await sqlite.store({ onCommit: ({ jobs }) => commits.push(jobs) });
      const tenant = await store.createTenant(newTenant({ urls: ["https://a.example"] }), 1);
      const apiKeyId = await latestKey(store, tenant.key);
      const many = Array.from({ length: 300 }, () => untyped(bytes("{}")));
      const roomFor = () => many.length;
      const { deliveries } = await store.acceptEvents({ tenantKey: tenant.key, apiKeyId, events: many, roomFor });
      commits.length = 0;
      let nowMs = Math.ceil(performance.now());
      const time = spyOn(performance, "now").mockImplementation(() => (nowMs += eachMs));
      try {
        const settled = deliveries.map((delivery) =>
          store.settle(settlementOf(delivery, "delivered", Date.now()), true),
        );
        await store.acceptEvents({ tenantKey: tenant.key, apiKeyId, events });
        expect(commits).toEqual(expected.slice(0, 1));
        await Promise.all(settled);
        expect(commits).toEqual(expected);
      } finally {
        time.mockRestore();
      }
    },
  );

  test("a failing job fails alone", async () => {
    const { store } = await sqlite.store();
    const tenant = await store.createTenant(newTenant({ urls: ["https://a.example"] }), 1);
    const apiKeyId = await latestKey(store, tenant.key);
    const broken = newTenant({ apiKey: newApiKeyRow() });
    await store.createTenant(broken, 1);
    const results = await Promise.allSettled([
      store.acceptEvents({ tenantKey: tenant.key, apiKeyId, events }),
      // The same id once more: the unique index refuses it.
      store.createTenant(broken, 2),
      store.acceptEvents({ tenantKey: tenant.key, apiKeyId, events }),
    ]);
    expect(results.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect((await store.page({ tenantKey: tenant.key, page: 0, size: 10 })).total).toBe(2);
    expect(await store.usage(tenant.key, Date.now())).toEqual({ eventsThisMonth: 2 });
  });

  test("what a job changes is told once, also when a failing neighbour has the batch made again", async () => {
    const { store } = await sqlite.store();
    const broken = newTenant();
    const { key } = await store.createTenant(broken, 1);
    const told: string[] = [];
    store.onChange(({ kind }) => void told.push(kind));
    await Promise.allSettled([store.setPassword(key, "new"), store.createTenant(broken, 2)]);
    expect(told).toEqual(["sessions_ended"]);
  });

  test("two changes of one tenant that cannot both be fail only the second", async () => {
    const { store } = await sqlite.store();
    const [one, two] = [newTenant({ loginEmail: "me@x.io" }), newTenant({ loginEmail: "me@x.io" })];
    const outcomes = await Promise.all([one, two].map((tenant) => refusalOf(store.createTenant(tenant, 1))));
    expect(outcomes).toEqual(["fulfilled", "invalid email_taken"]);
  });
});

test("a batch gets a commit of its own, and what others send goes between two of them", async () => {
  const commits: number[] = [];
  const { store } = await sqlite.store({ onCommit: ({ jobs }) => void commits.push(jobs) });
  const [greedy, small] = [await store.createTenant(newTenant(), 1), await store.createTenant(newTenant(), 1)];
  commits.length = 0;
  const answers: string[] = [];
  const send = async (name: string, tenantKey: number, events: number) => {
    const apiKeyId = await latestKey(store, tenantKey);
    await store.acceptEvents({
      tenantKey,
      apiKeyId,
      events: Array.from({ length: events }, () => untyped(bytes("{}"))),
    });
    answers.push(name);
  };
  const batches = ["batch", "batch", "batch"].map((name) => send(name, greedy.key, 1000));
  await Promise.all([...batches, send("small", small.key, 1), send("small", small.key, 1)]);
  expect(answers).toEqual(["batch", "small", "small", "batch", "batch"]);
  expect(commits).toEqual([1, 2, 1, 1]);
});

describe("a full disk", () => {
  test("is said, leaves nothing half written, and ends when there is room again", async () => {
    const run = spyOn(Database.prototype, "run");
    const { store, path } = await sqlite.store({ maxPageCount: 150 });
    const [client] = run.mock.contexts as unknown as Database[];
    run.mockRestore();
    const tenant = await store.createTenant(newTenant({ urls: ["https://a.example", "https://b.example"] }), 1);
    const apiKeyId = await latestKey(store, tenant.key);
    const big = () =>
      store.acceptEvents({ tenantKey: tenant.key, apiKeyId, events: [untyped(new Uint8Array(20_000).fill(97))] });
    let accepted = 0;
    let outcomes: string[] = [];
    do {
      outcomes = await Promise.all(Array.from({ length: 8 }, () => refusalOf(big())));
      accepted += outcomes.filter((outcome) => outcome === "fulfilled").length;
    } while (outcomes.every((outcome) => outcome === "fulfilled"));
    expect(new Set(outcomes)).toContain("unavailable storage_full");
    for (const outcome of outcomes) expect(["fulfilled", "unavailable storage_full"]).toContain(outcome);
    const page = await store.page({ tenantKey: tenant.key, page: 0, size: 1000 });
    expect([(await readAll(page.records)).length, page.total]).toEqual([accepted * 2, accepted * 2]);
    const reading = new Database(path, { readonly: true });
    expect(reading.query("select count(*) as events from event").get()).toEqual({ events: accepted });
    expect(reading.query("select events, pending from tenant_usage").get()).toEqual({
      events: accepted,
      pending: accepted * 2,
    });
    expect(reading.query("pragma quick_check").get()).toEqual({ quick_check: "ok" });
    reading.close();
    client?.run("pragma max_page_count = 100000");
    expect(await refusalOf(big())).toBe("fulfilled");
  });
});

describe("an I/O error in a commit", () => {
  const ioError = () => Object.assign(new Error("disk I/O error"), { code: "SQLITE_IOERR_FSYNC" });

  /** A store whose commits fail while `failing` says so, before or after they have happened. */
  async function failingStore(error = ioError) {
    const control: { failing: "before" | "after" | null } = { failing: null };
    const clock = createFakeClock();
    const opened = await sqlite.store({
      clock,
      commit(commit) {
        if (control.failing === "before") throw error();
        commit();
        if (control.failing === "after") throw error();
      },
    });
    const tenant = await opened.store.createTenant(newTenant({ urls: ["https://a.example"] }), clock.now());
    const apiKeyId = await latestKey(opened.store, tenant.key);
    const accept = () => opened.store.acceptEvents({ tenantKey: tenant.key, apiKeyId, events: [untyped(bytes("{}"))] });
    const stored = async () => {
      const { records } = await opened.store.page({ tenantKey: tenant.key, page: 0, size: 100 });
      return (await readAll(records)).length;
    };
    /** Lets the writer run into its next pause. */
    const settle = () => new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
    return { ...opened, control, clock, tenant, apiKeyId, accept, stored, settle };
  }

  test.each([
    ["had happened", "after", "fulfilled", 3],
    ["had not happened", "before", "unavailable storage_unavailable", 1],
  ] as const)("that %s: the writer stands, and the waiters get the true answer", async (_, failing, answer, kept) => {
    const { store, control, clock, accept, stored, settle } = await failingStore();
    await accept();
    control.failing = failing;
    const waiting = [refusalOf(accept()), refusalOf(accept())];
    await settle();
    // Nobody knows yet, so nobody is told, and new work is turned away.
    expect(await refusalOf(accept())).toBe("unavailable storage_unavailable");
    clock.advance(300);
    expect(store.oldestWaitingWriteMs()).toBe(300);
    expect(await Promise.race([Promise.all(waiting), settle().then(() => "still waiting")])).toBe("still waiting");
    // Every pause ends in another attempt, which may fail as well.
    clock.advance(1_000);
    await settle();
    expect(await refusalOf(accept())).toBe("unavailable storage_unavailable");
    control.failing = null;
    clock.advance(1_000);
    expect(await Promise.all(waiting)).toEqual([answer, answer]);
    expect(await stored()).toBe(kept);
    expect(store.oldestWaitingWriteMs()).toBe(0);
    const { eventIds } = await accept();
    expect(await stored()).toBe(kept + 1);
    const records = await store.records(1, eventIds[0] ?? "");
    expect(records && (await readAll(records))).toHaveLength(1);
  });

  describe("for which the index of the log has no room", () => {
    const noRoom = () => Object.assign(new Error("disk I/O error"), { code: "SQLITE_IOERR_SHMSIZE" });

    test("is said to be a full disk once another one is in the log in its place, and until there is room nothing is accepted", async () => {
      const { control, clock, accept, stored, settle } = await failingStore(noRoom);
      control.failing = "before";
      const waiting = refusalOf(accept());
      await settle();
      expect(await waiting).toBe("unavailable storage_full");
      clock.advance(1_000);
      await settle();
      expect(await refusalOf(accept())).toBe("unavailable storage_unavailable");
      control.failing = null;
      clock.advance(1_000);
      await settle();
      expect(await refusalOf(accept())).toBe("fulfilled");
      expect(await stored()).toBe(1);
    });

    test("leaves its waiters without an answer as long as none is in the log in its place", async () => {
      let commits = 0;
      const { control, clock, accept, settle } = await failingStore(() => {
        commits += 1;
        return commits === 2 ? ioError() : noRoom();
      });
      control.failing = "before";
      const waiting = refusalOf(accept());
      await settle();
      expect(await Promise.race([waiting, settle().then(() => "still waiting")])).toBe("still waiting");
      clock.advance(1_000);
      expect([await waiting, commits]).toEqual(["unavailable storage_full", 3]);
      control.failing = null;
      clock.advance(1_000);
      await settle();
    });

    test("keeps no store from closing", async () => {
      const { store, control, clock, accept, settle } = await failingStore(noRoom);
      control.failing = "before";
      expect(await refusalOf(accept())).toBe("unavailable storage_full");
      const closed = store.close();
      clock.advance(1_000);
      await settle();
      await closed;
    });
  });

  test("leaves what it may have stored to whoever sent it: nobody else gets it meanwhile", async () => {
    const { store, control, clock, tenant, apiKeyId, settle } = await failingStore();
    const event = { tenantKey: tenant.key, apiKeyId, events: [untyped(bytes("{}"))], roomFor: () => 1 };
    const accept = () => store.acceptEvents(event);
    const [webhook] = await store.webhooks(tenant.key);
    const ref = { tenantKey: tenant.key, webhookKey: webhook?.key ?? 0 };
    const claim = async () => (await store.claim(ref, clock.now(), 10)).due;
    control.failing = "after";
    const accepted = accept();
    await settle();
    expect(await claim()).toEqual([]);
    control.failing = null;
    clock.advance(1_000);
    const { deliveries } = await accepted;
    expect([deliveries.length, await claim()]).toEqual([1, []]);
    await store.release(deliveries);
    expect(await claim()).toMatchObject(deliveries.map(({ eventId }) => ({ eventId })));
  });

  test.each([
    ["had happened", "after", ["sessions_ended"]],
    ["had not happened", "before", []],
  ] as const)(
    "that %s: of the changes in it is told what is true, once that is known",
    async (_, failing, expected) => {
      const { store, control, clock, settle } = await failingStore();
      const told: string[] = [];
      store.onChange(({ kind }) => void told.push(kind));
      control.failing = failing;
      const waiting = refusalOf(store.setPassword(1, "new"));
      await settle();
      expect(told).toEqual([]);
      control.failing = null;
      clock.advance(1_000);
      await waiting;
      expect(told).toEqual([...expected]);
    },
  );

  test("is not waited for by a store that closes if the disk stays broken: nobody is told what nobody knows", async () => {
    const { store, control, clock, accept, settle } = await failingStore();
    control.failing = "before";
    const waiting = refusalOf(accept());
    await settle();
    const closed = store.close().then(() => "closed");
    clock.advance(4_000);
    expect(await Promise.race([closed, settle().then(() => "waiting")])).toBe("waiting");
    clock.advance(1_000);
    expect(await closed).toBe("closed");
    expect(await Promise.race([waiting, settle().then(() => "not told")])).toBe("not told");
  });

  test("is waited for by a store that closes", async () => {
    const { store, path, control, clock, accept, settle } = await failingStore();
    control.failing = "after";
    const waiting = refusalOf(accept());
    await settle();
    const closed = store.close().then(() => "closed");
    expect(await Promise.race([closed, settle().then(() => "waiting")])).toBe("waiting");
    control.failing = null;
    clock.advance(1_000);
    expect(await waiting).toBe("fulfilled");
    expect(await closed).toBe("closed");
    const reading = new Database(path, { readonly: true });
    expect(reading.query("select count(*) as events from event").get()).toEqual({ events: 1 });
    reading.close();
  });
});
