import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import {
  closedPort,
  createTravelClock,
  gate,
  type Hook,
  type HookAnswer,
  type Hooks,
  ingestOne,
  outcome,
  type RecordBody,
  register,
  settled,
  startHooks,
  until,
} from "../support/api-server.ts";
import { type NameServer, startNameServer } from "../support/name-server.ts";
import { heldUpMs } from "../support/patience.ts";
import { readAll } from "../support/read-all.ts";
import { startTestApp, type TestAccount } from "../support/test-app.ts";
import { provenSections, useServer } from "./scenario.ts";

provenSections.add("spec: Events").add("rules 7").add("rules 8");

let hooks: Hooks;
let names: NameServer;
beforeAll(async () => {
  hooks = await startHooks();
  names = await startNameServer((name) => (name.startsWith("private") ? ["10.0.0.7"] : "NXDOMAIN"));
});
afterAll(() => {
  hooks.stop();
  names.close();
});

/** Two retries, 50 ms apart. */
const server = useServer({ random: () => 0.5 });
let tenant: TestAccount;
beforeAll(async () => {
  tenant = await server().account();
});

async function deliverTo(url: string, payload: unknown = {}): Promise<RecordBody> {
  await register(tenant, url);
  return outcome(tenant, await ingestOne(tenant, payload));
}

const withHeaders =
  (status: number, headers: Record<string, string>): HookAnswer =>
  (response) =>
    void response.writeHead(status, headers).end();

/** Answers with each status in turn, the last one from then on. */
const inTurn =
  (...statuses: number[]): HookAnswer =>
  (response, nth) =>
    void response.writeHead(statuses[Math.min(nth, statuses.length) - 1] ?? 200).end();

describe("the request", () => {
  test("has the specified headers, those of Standard Webhooks, and no others", async () => {
    const hook = hooks.hook();
    const { eventId, ingestionTimestamp } = await deliverTo(hook.url, { event_type: "order.created", ä: 1.5 });
    const [request] = hook.received;
    if (!request) throw new Error("nothing was received");
    const body = `{"eventId":"${eventId}","tenantId":"${tenant.id}","ingestionTimestamp":"${ingestionTimestamp}","payload":{"event_type":"order.created","ä":1.5}}`;
    expect(request.text).toBe(body);
    expect(request.method).toBe("POST");
    const headers = Array.from({ length: request.rawHeaders.length / 2 }, (_, i) =>
      request.rawHeaders.slice(2 * i, 2 * i + 2),
    );
    expect(Object.fromEntries(headers)).toEqual({
      Host: new URL(hook.url).host,
      Connection: "keep-alive",
      "Content-Type": "application/json",
      "Content-Length": String(Buffer.byteLength(body)),
      "User-Agent": expect.stringMatching(/^Postrider\/\d/),
      "Service-Event-Id": eventId,
      "Service-Signature": expect.stringMatching(/^[A-Za-z0-9+/]{86}==$/),
      "Service-Key-Id": expect.stringMatching(/^sk_[0-9a-z]{26}$/),
      "webhook-id": eventId,
      "webhook-timestamp": expect.stringMatching(/^\d{10}$/),
      "webhook-signature": expect.stringMatching(/^v1,[A-Za-z0-9+/]{43}= v1a,[A-Za-z0-9+/]{86}==$/),
    });
  });

  test("keeps its event id through attempts", async () => {
    const hook = hooks.hook(inTurn(500, 429, 200));
    const { eventId } = await deliverTo(hook.url);
    expect(hook.received.map(({ headers }) => headers["service-event-id"])).toEqual([eventId, eventId, eventId]);
  });

  test("goes to every registered webhook, and each has its own record", async () => {
    const account = await server().account();
    await account.setTier("enterprise");
    const [a, b, c] = [hooks.hook(204), hooks.hook(410), hooks.hook(inTurn(503, 200))];
    await register(account, a.url, b.url, c.url);
    const records = await settled(account, await ingestOne(account));
    expect(records.map((r) => [r.targetWebhook, r.state, r.attempts])).toEqual([
      [a.url, "DELIVERED", 1],
      [b.url, "FAILED", 1],
      [c.url, "DELIVERED", 2],
    ]);
  });
});

describe("the verdict", () => {
  const permanent = [400, 401, 404, 408, 410, 422, 499];
  const retryable = [300, 301, 302, 304, 307, 429, 500, 502, 503, 599];

  test.each([200, 201, 202, 204, 299])("%i acknowledges", async (status) => {
    const record = await deliverTo(hooks.hook(status).url);
    expect(record).toMatchObject({ state: "DELIVERED", errorReason: null, attempts: 1, nextAttemptAt: null });
  });

  test.each(permanent)("%i is permanent", async (status) => {
    const hook = hooks.hook(status);
    const errorReason = `HTTP ${status} from ${hook.url}`;
    expect(await deliverTo(hook.url)).toMatchObject({ state: "FAILED", errorReason, attempts: 1, nextAttemptAt: null });
    expect(hook.received).toHaveLength(1);
  });

  test.each(retryable)("%i is tried again until the schedule is used up", async (status) => {
    const elsewhere = hooks.hook();
    const hook = hooks.hook(withHeaders(status, { Location: elsewhere.url }));
    const errorReason = `HTTP ${status} from ${hook.url}`;
    expect(await deliverTo(hook.url)).toMatchObject({ state: "FAILED", errorReason, attempts: 3, nextAttemptAt: null });
    expect([hook.received.length, elsewhere.received.length]).toEqual([3, 0]);
  });

  test.each([
    [[500, 200], "DELIVERED", 2],
    [[429, 503, 202], "DELIVERED", 3],
    [[503, 404], "FAILED", 2],
    [[302, 500, 200], "DELIVERED", 3],
  ] as const)("%p ends %s after %i attempts", async (statuses, state, attempts) => {
    const hook = hooks.hook(inTurn(...statuses));
    const errorReason = state === "DELIVERED" ? null : `HTTP 404 from ${hook.url}`;
    expect(await deliverTo(hook.url)).toMatchObject({ state, attempts, errorReason });
  });

  test("a refused connection is retryable", async () => {
    const url = `http://127.0.0.1:${await closedPort()}/hook`;
    expect(await deliverTo(url)).toMatchObject({
      state: "FAILED",
      attempts: 3,
      errorReason: `Connection refused by ${url}`,
    });
  });

  test("a connection that closes without an answer is retryable", async () => {
    const { url } = hooks.hook((response) => void response.destroy());
    const errorReason = `Connection closed by ${url} without a response`;
    expect(await deliverTo(url)).toMatchObject({ state: "FAILED", attempts: 3, errorReason });
  });

  test("it does not wait for the body", async () => {
    const startedAt = performance.now();
    const { url } = hooks.hook((response) => void response.writeHead(200).write("and then nothing"));
    expect(await deliverTo(url)).toMatchObject({ state: "DELIVERED", attempts: 1 });
    expect(performance.now() - startedAt).toBeLessThan(heldUpMs);
  });

  test("the head of an answer that did not acknowledge is kept, and who gave it", async () => {
    const { url } = hooks.hook((response, nth) => {
      if (nth > 1) response.writeHead(204, { "X-Told": "nobody" }).end();
      else
        response
          .writeHead(
            503,
            [
              ["Retry-After", "0"],
              ["Set-Cookie", "a=1"],
              ["Set-Cookie", "b=2"],
            ].flat(),
          )
          .end();
    });
    const { eventId } = await deliverTo(url);
    const [refused, acknowledged] = (await tenant.get(`/v1/events/${eventId}/attempts`)).body;
    const headers = (refused.responseHeaders as { name: string; value: string }[]).filter(
      ({ name }) => !/^(date|connection|keep-alive|content-length|transfer-encoding)$/i.test(name),
    );
    expect(headers).toEqual([
      { name: "Retry-After", value: "0" },
      { name: "Set-Cookie", value: "a=1" },
      { name: "Set-Cookie", value: "b=2" },
    ]);
    expect([refused.statusCode, refused.address, refused.responseHeadersAreCut]).toEqual([503, "127.0.0.1", undefined]);
    expect(acknowledged.statusCode).toBe(204);
    for (const field of ["responseHeaders", "address"]) expect(acknowledged).not.toHaveProperty(field);
  });

  test("a reset in the body changes nothing", async () => {
    const { url } = hooks.hook((response) => {
      response.writeHead(200, { "Content-Length": "100" }).write("half");
      setTimeout(() => response.destroy(), 10);
    });
    const { state, eventId } = await deliverTo(url);
    const [attempt] = (await tenant.get(`/v1/events/${eventId}/attempts`)).body;
    expect([state, attempt.statusCode, attempt.error, attempt.responseBody]).toEqual(["DELIVERED", 200, null, "half"]);
  });

  test.each([
    ["https://private.example.com/x", "The address of https://private.example.com/x is not public"],
    [
      "https://nowhere.example.com/x",
      "The host name of https://nowhere.example.com/x could not be resolved (name does not exist)",
    ],
  ])("%s", async (url, errorReason) => {
    const app = await startTestApp({ env: { POSTRIDER_DNS_SERVERS: names.address, POSTRIDER_RETRY_SCHEDULE: "1ms" } });
    const account = await app.account();
    await register(account, url);
    const record = await outcome(account, await ingestOne(account));
    expect(record).toMatchObject({ state: "FAILED", attempts: 2, errorReason });
    expect(JSON.stringify(record)).not.toContain("10.0.0.7");
    await app.stop();
  });
});

describe("the time of retries", () => {
  const clock = createTravelClock();
  const slow = useServer({ clock, random: () => 0.5, env: { POSTRIDER_RETRY_SCHEDULE: "5s,5m,30m,2h,5h,10h,10h" } });
  let account: TestAccount;
  beforeEach(async () => {
    account = await slow().account();
  });

  /** The only record of an event, from the store: sessions end while the clock travels. */
  async function recordOf(eventId: string) {
    const owner = await slow().app.store.findTenant(account.id);
    const records = await slow().app.store.records(owner?.key ?? 0, eventId);
    const [record] = records ? await readAll(records) : [];
    if (!record) throw new Error("the event has no record");
    return record;
  }

  /** The pause after the last attempt of an event that now has had `n`. */
  async function pauseAfter(n: number, eventId: string): Promise<number> {
    const { nextAttemptAt, lastAttemptAt } = await until(
      () => recordOf(eventId),
      ({ attempts }) => attempts === n,
    );
    return nextAttemptAt === null ? Number.NaN : nextAttemptAt - (lastAttemptAt ?? 0);
  }

  async function firstPause(answer: HookAnswer): Promise<number> {
    const hook = hooks.hook(answer);
    await register(account, hook.url);
    return pauseAfter(1, await ingestOne(account));
  }

  const seconds = 1000;
  const hours = 3600 * seconds;

  test("seven pauses make eight attempts", async () => {
    const hook = hooks.hook(500);
    await register(account, hook.url);
    const eventId = await ingestOne(account);
    const schedule = [5, 300, 1800, 7200, 18_000, 36_000, 36_000].map((s) => s * seconds);
    for (const [i, pause] of schedule.entries()) {
      const found = await pauseAfter(i + 1, eventId);
      expect(found).toBeWithin(pause, pause + 1500);
      clock.travel(found);
    }
    const record = await until(
      () => recordOf(eventId),
      ({ attempts }) => attempts === 8,
    );
    expect(record).toMatchObject({ state: "FAILED", errorReason: `HTTP 500 from ${hook.url}`, nextAttemptAt: null });
  });

  test.each([
    ["seconds postpone", 503, "3600", 1 * hours],
    ["a 429 has a say, too", 429, "60", 60 * seconds],
    ["it never makes a retry earlier", 503, "1", 5 * seconds],
    ["24 hours at most", 503, "999999", 24 * hours],
    ["nonsense is nothing", 503, "soon", 5 * seconds],
    ["another 5xx has no say", 500, "3600", 5 * seconds],
    ["a redirect has no say", 302, "3600", 5 * seconds],
  ])("Retry-After: %s", async (_, status, value, pause) => {
    expect(await firstPause(withHeaders(status, { "Retry-After": value }))).toBeWithin(pause, pause + 1500);
  });

  test("Retry-After: a date postpones", async () => {
    const date = new Date(clock.now() + 2 * hours).toUTCString();
    expect(await firstPause(withHeaders(503, { "Retry-After": date }))).toBeWithin(2 * hours - 1500, 2 * hours + 1500);
  });

  test("no answer within 10 s is retryable, and not before", async () => {
    const hook = hooks.hook(() => {});
    await register(account, hook.url);
    const eventId = await ingestOne(account);
    await hook.whenReceived(1);
    clock.travel(9_000);
    expect(await recordOf(eventId)).toMatchObject({ state: "PENDING", attempts: 0 });
    clock.travel(1_000);
    expect(await pauseAfter(1, eventId)).toBeWithin(15 * seconds, 16.5 * seconds);
    expect((await recordOf(eventId)).errorReason).toBe(`No response within 10 s from ${hook.url}`);
  });
});

describe("what is taken away", () => {
  const concurrency = 16;
  async function ingestMany(account: TestAccount, n: number): Promise<string[]> {
    return Promise.all(Array.from({ length: n }, () => ingestOne(account)));
  }
  const stateOf = async (account: TestAccount, state: string) =>
    (await account.get(`/v1/events/state/${state}`)).body.total as number;
  const becomes = (account: TestAccount, state: string, total: number) =>
    until(
      () => stateOf(account, state),
      (found) => found === total,
    );

  async function busyAccount(answer: HookAnswer): Promise<{ account: TestAccount; hook: Hook }> {
    const account = await server().account();
    const hook = hooks.hook(answer);
    await register(account, hook.url);
    return { account, hook };
  }

  test("a removed webhook: nothing starts, what is in flight counts, what waits fails, nothing revives", async () => {
    const held = gate();
    const { account, hook } = await busyAccount(held.answer);
    await ingestMany(account, concurrency + 4);
    await hook.whenReceived(concurrency);
    await register(account);
    held.open();
    await becomes(account, "DELIVERED", concurrency);
    await becomes(account, "FAILED", 4);
    const { events } = (await account.get("/v1/events/state/FAILED")).body;
    for (const { errorReason, targetWebhook } of events) {
      expect([errorReason, targetWebhook]).toEqual(["The webhook was removed before the delivery succeeded", hook.url]);
    }
    await register(account, hook.url);
    await outcome(account, await ingestOne(account));
    expect(hook.received).toHaveLength(concurrency + 1);
    expect(await stateOf(account, "FAILED")).toBe(4);
  });

  test("a deleted account: attempts in flight are broken off, and nothing answers any more", async () => {
    const { account, hook } = await busyAccount(() => {});
    await ingestMany(account, concurrency + 4);
    const received = await hook.whenReceived(concurrency);
    expect((await account.delete("/v1/tenants")).status).toBe(204);
    await Promise.all(received.map(({ broken }) => broken));
    expect((await account.get("/v1/events")).status).toBe(401);
    expect((await account.ingest({})).status).toBe(401);
    expect((await server().request("GET", `/v1/tenants/${account.id}/status`)).status).toBe(404);
    await deliverTo(hooks.hook().url);
    expect(hook.received).toHaveLength(concurrency);
  });

  test("the operator's suspension pauses, and resuming goes on", async () => {
    const held = gate();
    const { account, hook } = await busyAccount(held.answer);
    await ingestMany(account, concurrency + 4);
    await hook.whenReceived(concurrency);
    await server().request("POST", `/operator/tenants/${account.id}/suspend`, { token: server().operatorToken });
    held.open();
    await becomes(account, "DELIVERED", concurrency);
    await deliverTo(hooks.hook().url);
    expect([hook.received.length, await stateOf(account, "PENDING")]).toEqual([concurrency, 4]);
    await server().request("POST", `/operator/tenants/${account.id}/resume`, { token: server().operatorToken });
    await becomes(account, "DELIVERED", concurrency + 4);
    expect(hook.received).toHaveLength(concurrency + 4);
  });

  test("a suspension for payment does not stop what was accepted", async () => {
    const held = gate();
    const { account, hook } = await busyAccount(held.answer);
    await ingestMany(account, concurrency + 4);
    await hook.whenReceived(concurrency);
    const { store } = server().app;
    await store.suspend((await store.findTenant(account.id))?.key ?? 0, "payment", Date.now());
    held.open();
    await becomes(account, "DELIVERED", concurrency + 4);
    expect((await account.ingest({})).status).toBe(402);
  });
});
