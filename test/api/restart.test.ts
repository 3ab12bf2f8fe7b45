import { afterAll, beforeAll, expect, test } from "bun:test";
import { readServerFile } from "../../src/server-file.ts";
import {
  batchOf,
  createTravelClock,
  gate,
  type Hooks,
  ingestOne,
  outcome,
  register,
  startHooks,
  until,
} from "../support/api-server.ts";
import { openStream } from "../support/stream-client.ts";
import { startTestApp, type TestAccount, type TestApp, type TestAppOptions } from "../support/test-app.ts";
import { provenSections } from "./scenario.ts";

provenSections.add("rules 3").add("rules 10").add("spec: Replays");

let hooks: Hooks;
beforeAll(async () => {
  hooks = await startHooks();
});
afterAll(() => hooks.stop());

/** The account on the next server: sessions and keys outlive the process. */
const on = (app: TestApp, { id, jwt, apiKey }: TestAccount) => ({
  id,
  apiKey,
  get: (path: string) => app.request("GET", path, { token: jwt }),
  ingest: (payload: unknown) => app.request("POST", "/v1/ingest", { token: apiKey, body: { payload } }),
});

const restarted = async (app: TestApp, options: TestAppOptions = {}) => {
  await app.stop({ keepData: true });
  return startTestApp({ dataDir: app.dataDir, ...options });
};

test("what is pending survives, and is delivered once", async () => {
  const first = await startTestApp({ env: { POSTRIDER_RETRY_SCHEDULE: "5m" } });
  const account = await first.account();
  const hook = hooks.hook(503);
  await register(account, hook.url);
  const eventIds: string[] = (await batchOf(first, account, 300, { n: 1 })).body.eventIds;
  await hook.whenReceived(20);
  hook.answer = 200;
  const clock = createTravelClock();
  const second = await restarted(first, { clock });
  await second.app.whenIdle();
  clock.travel(10 * 60_000);
  const again = on(second, account);
  await until(
    () => again.get("/v1/events/state/DELIVERED?size=1"),
    ({ body }) => body.total === 300,
  );
  await second.app.whenIdle();
  const { events } = (await again.get("/v1/events?size=1000")).body;
  expect(events.map(({ eventId }: { eventId: string }) => eventId)).toEqual([...eventIds].reverse());
  const attempts = events.reduce((total: number, event: { attempts: number }) => total + event.attempts, 0);
  expect(attempts).toBe(hook.received.length);
  expect((await again.ingest({})).status).toBe(202);
  await second.stop();
});

test("while attempts in flight end, all goes on: what is accepted meanwhile is delivered by the next server", async () => {
  const first = await startTestApp();
  const account = await first.account();
  const held = gate();
  const hook = hooks.hook(held.answer);
  await register(account, hook.url);
  const eventId = await ingestOne(account);
  await hook.whenReceived(1);
  const stream = await openStream(first, account.jwt);
  const stopped = first.stop({ keepData: true });
  const ready = await first.request("GET", "/readyz");
  expect([ready.status, ready.body.code]).toEqual([503, "shutting_down"]);
  expect(readServerFile(first.dataDir)).toMatchObject({ stopping: true });
  const eventIds = [eventId];
  // Until the work in the background rests, what comes is still sent. Of two that do not arrive, one may be on its way.
  do {
    const later = await account.ingest({ n: eventIds.length + 1 });
    expect([later.status, (await first.request("GET", "/healthz")).status]).toEqual([202, 200]);
    expect((await account.get(`/v1/events/${later.body.eventId}`)).body[0].state).toBe("PENDING");
    await stream.next("event.accepted", (data) => data.eventId === later.body.eventId);
    eventIds.push(later.body.eventId);
  } while (eventIds.length - hook.received.length < 2);
  held.open();
  await stopped;
  expect(hook.received.length).toBeLessThan(eventIds.length);
  const second = await startTestApp({ dataDir: first.dataDir });
  await second.app.whenIdle();
  for (const id of eventIds) {
    const { body } = await on(second, account).get(`/v1/events/${id}`);
    expect([body.length, body[0].state, body[0].attempts]).toEqual([1, "DELIVERED", 1]);
  }
  expect(hook.received).toHaveLength(eventIds.length);
  await second.stop();
});

test("in the last moment new requests are 503, to be repeated elsewhere", async () => {
  let letWrite = () => {};
  const mayWrite = new Promise<void>((resolve) => (letWrite = resolve));
  let isLast = () => {};
  const last = new Promise<void>((resolve) => (isLast = resolve));
  const server = await startTestApp({
    clock: createTravelClock(),
    wrapStore: (store) => ({
      ...store,
      async addStats(deltas) {
        isLast();
        await mayWrite;
        return store.addStats(deltas);
      },
    }),
  });
  const account = await server.account();
  await ingestOne(account);
  const stopped = server.stop();
  await last;
  for (const answer of [account.ingest({}), account.get("/v1/events"), server.request("GET", "/readyz")]) {
    const { status, headers, body } = await answer;
    expect([status, body]).toEqual([
      503,
      { message: "The server is shutting down; retry the request.", code: "shutting_down" },
    ]);
    expect([headers.get("retry-after"), headers.get("connection")]).toEqual(["2", "close"]);
  }
  letWrite();
  await stopped;
});

test("a bulk replay goes on where it was: nothing twice, nothing left out", async () => {
  const first = await startTestApp();
  const account = await first.account();
  await account.setTier("enterprise");
  for (let i = 0; i < 4; i += 1) await batchOf(first, account, 1000);
  const hook = hooks.hook();
  await register(account, hook.url);
  const started = await account.post("/v1/events/replays/failed", { replayGroupId: "resumed" });
  const location = started.headers.get("location") ?? "";
  const { body: before } = await until(
    () => account.get(location),
    ({ body }) => body.queued >= 500,
  );
  const second = await restarted(first);
  expect([before.status, before.queued < 4000]).toEqual(["running", true]);
  const again = on(second, account);
  const { body: after } = await until(
    () => again.get(location),
    ({ body }) => body.status === "completed",
  );
  expect([after.selected, after.queued, after.delivered, after.failed, after.superseded, after.skipped]).toEqual([
    4000, 4000, 4000, 0, 0, 0,
  ]);
  const counts = new Map<string, number>();
  for (const { headers } of hook.received) {
    const id = String(headers["service-event-id"]);
    counts.set(id, (counts.get(id) ?? 0) + 1);
  }
  expect([counts.size, hook.received.length]).toEqual([4000, 4000]);
  expect((await again.get("/v1/events?size=1")).body.total).toBe(4000);
  await second.stop();
}, 120_000);

test("an operator's suspension holds across a restart, and resuming delivers", async () => {
  const first = await startTestApp({ env: { POSTRIDER_RETRY_SCHEDULE: "30m" } });
  const account = await first.account();
  const hook = hooks.hook(503);
  await register(account, hook.url);
  await ingestOne(account);
  await hook.whenReceived(1);
  await first.request("POST", `/operator/tenants/${account.id}/suspend`, { token: first.operatorToken });
  const clock = createTravelClock();
  const second = await restarted(first, { clock });
  hook.answer = 200;
  expect((await on(second, account).get("/v1/events/state/PENDING")).body.total).toBe(1);
  expect((await on(second, account).ingest({})).status).toBe(403);
  clock.travel(60 * 60 * 1000);
  const other = await second.account();
  await register(other, hooks.hook().url);
  await outcome(other, await ingestOne(other));
  expect(hook.received).toHaveLength(1);
  await second.request("POST", `/operator/tenants/${account.id}/resume`, { token: second.operatorToken });
  await hook.whenReceived(2);
  await second.stop();
});
