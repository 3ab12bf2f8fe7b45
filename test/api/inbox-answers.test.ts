import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  batchOf,
  closedPort,
  createTravelClock,
  type HookAnswer,
  type Hooks,
  ingestOne,
  outcome,
  register,
  settled,
  startHooks,
  until,
} from "../support/api-server.ts";
import { startNameServer } from "../support/name-server.ts";
import { look, testOnSqlite } from "../support/server-data.ts";
import { startTestApp, type TestAccount, type TestApp } from "../support/test-app.ts";
import { provenSections, useServer } from "./scenario.ts";

/** Rules, section 9: what the inbox answers, and what becomes of it. */

provenSections.add("rules 8").add("rules 9");

let hooks: Hooks;
beforeAll(async () => {
  hooks = await startHooks();
});
afterAll(() => hooks.stop());

const clock = createTravelClock();
const server = useServer({ clock, env: { POSTRIDER_RETRY_SCHEDULE: "20ms" } });

const inboxOf = async (account: Pick<TestAccount, "get">) => (await account.get("/v1/inbox")).body;

const whenInboxHas = (account: Pick<TestAccount, "get">, total: number) =>
  until(
    () => inboxOf(account),
    (inbox) => inbox.total === total,
  );

/** For what may come faster than one can look. */
const whenInboxHasAtLeast = (account: Pick<TestAccount, "get">, total: number) =>
  until(
    () => inboxOf(account),
    (inbox) => inbox.total >= total,
  );

interface Told {
  status?: number;
  delay_ms?: number;
  silent?: boolean;
}

/** A new account whose inbox has been told how to answer. */
async function withInbox(app: TestApp, answer: Told = {}) {
  const account = await app.account();
  const { url } = await inboxOf(account);
  await register(account, url);
  expect((await account.put("/v1/inbox/answer", answer)).status).toBe(200);
  return { account, url };
}

/** Opens a stream: what happens from now on is in it. @returns what it has said when that is enough */
async function openStream(
  app: TestApp,
  token: string,
): Promise<(isEnough: (text: string) => boolean) => Promise<string>> {
  const abort = new AbortController();
  const { body } = await fetch(`${app.url}/v1/stream`, {
    headers: { Authorization: `Bearer ${token}` },
    signal: abort.signal,
  });
  if (!body) throw new Error("The stream has no body");
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  async function readUntil(isEnough: (text: string) => boolean): Promise<string> {
    while (!isEnough(text)) {
      const { value, done } = await reader.read();
      if (done) break;
      text += value;
    }
    return text;
  }
  await readUntil((said) => said.includes(": open\n"));
  return async (isEnough) => {
    const said = await readUntil(isEnough);
    abort.abort();
    return said;
  };
}

// ---------------------------------------------------------------- the same as elsewhere

interface AttemptBody {
  number: number;
  statusCode: number | null;
  error: string | null;
  durationMs: number;
}

const seconds = (ms: number) => Math.floor(ms / 1000);

/** What a receiver over the network does that was told the same. */
const elsewhere =
  ({ status = 204, delay_ms = 0, silent = false }: Told): HookAnswer =>
  (response) => {
    if (!silent) clock.after(delay_ms, () => response.writeHead(status).end());
  };

test.each<[Told, travelMs: number]>([
  [{}, 0],
  [{ status: 200 }, 0],
  [{ status: 299 }, 0],
  [{ status: 304 }, 0],
  [{ status: 307 }, 0],
  [{ status: 400 }, 0],
  [{ status: 410 }, 0],
  [{ status: 429 }, 0],
  [{ status: 500 }, 0],
  [{ status: 503 }, 0],
  [{ status: 599 }, 0],
  [{ status: 201, delay_ms: 1_000 }, 1_000],
  [{ status: 500, delay_ms: 9_000 }, 9_000],
  [{ status: 200, delay_ms: 10_000 }, 10_000],
  [{ status: 200, delay_ms: 15_000 }, 10_000],
  [{ status: 200, silent: true }, 10_000],
])("told to answer %j, it leaves the same records as a receiver over the network", async (answer, travelMs) => {
  const { account, url } = await withInbox(server(), answer);
  await account.setTier("business");
  const hook = hooks.hook(elsewhere(answer));
  await register(account, url, hook.url);
  const eventId = await ingestOne(account);
  const isRepeated = (answer.status ?? 204) >= 429 || travelMs === 10_000 || String(answer.status).startsWith("3");
  for (let attempt = 1; attempt <= (isRepeated ? 2 : 1); attempt++) {
    await Promise.all([hook.whenReceived(attempt), whenInboxHasAtLeast(account, attempt)]);
    clock.travel(travelMs);
  }
  await until(
    async () => (await account.get(`/v1/events/${eventId}`)).body,
    (records: { state: string }[]) => records.every(({ state }) => state !== "PENDING"),
  );

  /** Without what no two receivers have in common. */
  const seen = async (target: string) => {
    const records = (await account.get(`/v1/events/${eventId}`)).body;
    const { body: attempts } = await account.get(`/v1/events/${eventId}/attempts`);
    const of = ({ targetWebhook }: { targetWebhook: string }) => targetWebhook === target;
    const { lastAttemptAt: _, lastDurationMs: __, ...record } = records.find(of);
    const plain = attempts
      .filter(of)
      .map(({ number, statusCode, error, durationMs }: AttemptBody) => [
        number,
        statusCode,
        error,
        seconds(durationMs),
      ]);
    return JSON.parse(JSON.stringify({ record, attempts: plain }).replaceAll(target, "the target"));
  };
  const [own, other] = [await seen(url), await seen(hook.url)];
  expect(own).toEqual(other);
  expect(own.attempts).toHaveLength(isRepeated ? 2 : 1);
  expect(own.attempts[0][3]).toBe(travelMs / 1000);
  const { deliveries } = await inboxOf(account);
  const answered = travelMs === 10_000 ? null : (answer.status ?? 204);
  expect(deliveries.map(({ answeredStatus }: { answeredStatus: number }) => answeredStatus)).toEqual(
    own.attempts.map(() => answered),
  );
});

test("the answer's body names the delivery in the inbox", async () => {
  const { account } = await withInbox(server(), { status: 400 });
  const eventId = await ingestOne(account);
  await outcome(account, eventId);
  const [{ responseBody }] = (await account.get(`/v1/events/${eventId}/attempts`)).body;
  expect(JSON.parse(responseBody)).toEqual({ inbox: (await inboxOf(account)).deliveries[0].id });
});

test("what it is told holds from the next delivery on, also for one that waits for its retry", async () => {
  const { account } = await withInbox(server(), { silent: true });
  const eventId = await ingestOne(account);
  await whenInboxHas(account, 1);
  await account.put("/v1/inbox/answer", {});
  clock.travel(10_000);
  expect(await outcome(account, eventId)).toMatchObject({ state: "DELIVERED", attempts: 2 });
});

// ---------------------------------------------------------------- live

describe("its account's streams are told", () => {
  const changed = (text: string) =>
    [...text.matchAll(/^event: account\.changed\nid: .*\ndata: (.*)$/gm)].map(([, data = ""]) => JSON.parse(data));

  test("when it was told another answer, and when it was emptied", async () => {
    const { account } = await withInbox(server());
    const readStream = await openStream(server(), account.jwt);
    await account.put("/v1/inbox/answer", { status: 500 });
    await account.delete("/v1/inbox/deliveries");
    const message = { tenant_id: account.id, tier: "free", status: "active", changed: "inbox" };
    expect(changed(await readStream((text) => changed(text).length >= 2))).toEqual([message, message]);
  });

  test.each<[string, Told, (account: TestAccount) => Promise<unknown>]>([
    ["silent", { silent: true }, ingestOne],
    ["slow", { delay_ms: 5_000 }, ingestOne],
    [
      "a test",
      {},
      async (account) => {
        const [{ id }] = (await account.get("/v1/tenants/webhooks")).body;
        await account.post(`/v1/tenants/webhooks/${id}/test`);
      },
    ],
  ])("of a delivery that nothing else announces (%s)", async (_, answer, send) => {
    const { account } = await withInbox(server(), answer);
    const readStream = await openStream(server(), account.jwt);
    await send(account);
    const text = await readStream((said) => changed(said).length >= 1);
    expect(changed(text)).toEqual([{ tenant_id: account.id, tier: "free", status: "active", changed: "inbox" }]);
    expect(text).not.toContain("event: delivery.attempted");
    expect((await inboxOf(account)).total).toBe(1);
    // Lets go of what is under way: the server would wait for it at its stop.
    await account.put("/v1/inbox/answer", {});
    clock.travel(10_000);
  });
});

// ---------------------------------------------------------------- what it outlives, and what not

test("address, deliveries and answer survive a restart, and so does a delivery that it keeps waiting", async () => {
  const time = createTravelClock();
  // Enough for the attempt that the stop breaks off and, as the clock may be ahead of a busy machine, for some that time out.
  const schedule = Array.from({ length: 20 }, () => "20ms").join();
  const env = { POSTRIDER_PORT: String(await closedPort()), POSTRIDER_RETRY_SCHEDULE: schedule };
  const first = await startTestApp({ env, clock: time });
  const { account, url } = await withInbox(first);
  await outcome(account, await ingestOne(account, { n: 1 }));
  await account.put("/v1/inbox/answer", { status: 200, delay_ms: 1, silent: true });
  const eventId = await ingestOne(account, { n: 2 });
  const before = await whenInboxHas(account, 2);
  expect(before).toMatchObject({ url, answer: { status: 200, delay_ms: 1, silent: true } });
  const stopped = first.stop({ keepData: true });
  // It waits for what is in flight, by the clock.
  await until(
    () => time.travel(1_000),
    () => Bun.peek.status(stopped) === "fulfilled",
  );

  const second = await startTestApp({ env, dataDir: first.dataDir, clock: time });
  const again: TestAccount = {
    ...account,
    get: (path) => second.request("GET", path, { token: account.jwt }),
    put: (path, body) => second.request("PUT", path, { token: account.jwt, body }),
  };
  const { url: sameUrl, answer, deliveries } = await whenInboxHasAtLeast(again, before.total + 1);
  expect({ sameUrl, answer }).toEqual({ sameUrl: url, answer: before.answer });
  expect(deliveries.slice(-before.total)).toEqual(before.deliveries);
  expect(deliveries[0]).toMatchObject({ eventId, answeredStatus: null, body: before.deliveries[0].body });
  expect((await again.put("/v1/inbox/answer", {})).status).toBe(200);
  time.travel(10_000);
  expect(await outcome(again, eventId)).toMatchObject({ state: "DELIVERED" });
  await second.stop();
});

test("a deletion breaks off what it was to answer, and leaves nothing of it", async () => {
  await using at = await start({});
  const { account } = await withInbox(at.app, { silent: true });
  const neighbour = await withInbox(at.app);
  await outcome(neighbour.account, await ingestOne(neighbour.account));
  await ingestOne(account, { secret: "ada's payload" });
  await whenInboxHas(account, 1);
  expect((await account.delete("/v1/tenants")).status).toBe(204);
  expect((await account.get("/v1/inbox")).status).toBe(401);
  await at.app.app.whenIdle();
  await until(
    () =>
      look<{ d: number; s: number }>(
        at.app,
        "select cast((select count(*) from inbox_delivery) as int) d, cast((select count(*) from inbox_setting) as int) s",
      ),
    ([counts]) => counts?.d === 1 && counts.s === 1,
  );
  expect((await inboxOf(neighbour.account)).total).toBe(1);
});

test("while the operator suspends the account, nothing goes to it", async () => {
  await using at = await start({ env: { POSTRIDER_RETRY_SCHEDULE: Array(50).fill("50ms").join() } });
  const { account } = await withInbox(at.app, { status: 503 });
  const eventId = await ingestOne(account);
  const standing = (verb: string) =>
    at.app.request("POST", `/operator/tenants/${account.id}/${verb}`, { token: at.app.operatorToken });
  expect((await standing("suspend")).status).toBe(200);
  await at.app.app.whenIdle();
  const { total } = await inboxOf(account);
  expect((await account.put("/v1/inbox/answer", {})).status).toBe(200);
  expect((await standing("resume")).status).toBe(200);
  expect(await outcome(account, eventId)).toMatchObject({ state: "DELIVERED", attempts: total + 1 });
});

testOnSqlite("on a full disk it answers 503 and keeps nothing", async () => {
  await using at = await start({ maxPageCount: 500 });
  const { account } = await withInbox(at.app);
  const big = await at.app.account();
  for (const size of [200, 20, 1]) {
    while ((await batchOf(at.app, big, size, { text: "x".repeat(500) })).status === 202);
  }
  const [{ id }] = (await account.get("/v1/tenants/webhooks")).body;
  // The pages that it has already take some more.
  let kept = 0;
  let attempt = (await account.post(`/v1/tenants/webhooks/${id}/test`)).body;
  for (; attempt.statusCode === 204; kept++) attempt = (await account.post(`/v1/tenants/webhooks/${id}/test`)).body;
  expect(attempt).toMatchObject({ statusCode: 503, error: expect.stringMatching(/^HTTP 503 from http:/) });
  expect(JSON.parse(attempt.responseBody)).toMatchObject({ code: "storage_full" });
  expect((await inboxOf(account)).total).toBe(kept);
});

// ---------------------------------------------------------------- inside the process

test.each([
  ["local", {}, /^http:\/\/localhost:\d+\/inbox\//],
  ["public", { POSTRIDER_PUBLIC_URL: "https://relay.example.com" }, /^https:\/\/relay\.example\.com\/inbox\//],
])("in %s mode no name is looked up and no connection is opened", async (mode, env, form) => {
  const names = await startNameServer(() => ["127.0.0.1"]);
  await using at = await start({ env: { ...env, POSTRIDER_DNS_SERVERS: names.address } });
  const { account, url } = await withInbox(at.app);
  expect(url).toMatch(form);
  const opensConnections = async () =>
    /postrider_delivery_connections_total\{[^}]*\} [1-9]/.test(
      (await at.app.request("GET", "/metrics", { token: at.app.operatorToken })).text,
    );
  const eventId = await ingestOne(account);
  expect(await outcome(account, eventId)).toMatchObject({ state: "DELIVERED", targetWebhook: url, attempts: 1 });
  expect([await opensConnections(), names.questions]).toEqual([false, []]);
  // The proof that these two would have told.
  await register(account, mode === "local" ? hooks.hook().url : "https://elsewhere.example.com/hook");
  await settled(account, await ingestOne(account));
  expect([await opensConnections(), names.questions.length > 0]).toEqual([true, mode === "public"]);
  names.close();
});

async function start(options: Parameters<typeof startTestApp>[0]) {
  const app = await startTestApp(options);
  return { app, [Symbol.asyncDispose]: () => app.stop() };
}
