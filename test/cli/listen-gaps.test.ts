import { afterAll, describe, expect, test } from "bun:test";
import {
  batchOf,
  closedPort,
  createTravelClock,
  gate,
  ingestOne,
  register,
  settled,
  startHooks,
  until,
} from "../support/api-server.ts";
import { type ListeningOptions, startListening } from "../support/listening.ts";
import { type Receiver, startReceiver } from "../support/receiver.ts";
import { startTestApp, type TestAccount, type TestApp, type TestAppOptions } from "../support/test-app.ts";
import { startWire, type Wire } from "../support/wire.ts";

/** What is not lost, and not forwarded twice, whatever happens to server, connection and session. */

const cleanUps: (() => Promise<unknown>)[] = [];
afterAll(async () => {
  for (const cleanUp of cleanUps.reverse()) await cleanUp();
});

async function start(options: TestAppOptions = {}): Promise<TestApp> {
  const app = await startTestApp(options);
  cleanUps.push(() => app.stop());
  return app;
}

async function restart(app: TestApp, between: () => Promise<unknown> = async () => {}): Promise<TestApp> {
  await app.stop({ keepData: true });
  await between();
  return start({ dataDir: app.dataDir, env: { POSTRIDER_PORT: new URL(app.url).port } });
}

/** The account on another server: sessions and keys outlive the process. */
const on = (app: TestApp, { apiKey }: TestAccount): Pick<TestAccount, "ingest" | "apiKey"> => ({
  apiKey,
  ingest: (payload) => app.request("POST", "/v1/ingest", { token: apiKey, body: { payload } }),
});

function receive(...options: Parameters<typeof startReceiver>): Receiver {
  const receiver = startReceiver(...options);
  cleanUps.push(() => receiver.stop());
  return receiver;
}

async function wireTo(app: TestApp): Promise<Wire> {
  const wire = await startWire(app.url);
  cleanUps.push(() => wire.stop());
  return wire;
}

function begin(options: ListeningOptions) {
  const listening = startListening(options);
  cleanUps.push(async () => {
    if (listening.code === null) listening.interrupt();
    await listening.ended.catch(() => {});
  });
  return listening;
}

async function listen(options: ListeningOptions) {
  const listening = begin(options);
  await listening.whenOpen();
  return listening;
}

const idsOf = (receiver: Receiver) => receiver.requests.map(({ headers }) => headers.get("service-event-id"));
const ids = async (app: TestApp, account: Pick<TestAccount, "apiKey">, n: number): Promise<string[]> =>
  (await batchOf(app, account, n)).body.eventIds;
const oneByOne = ["--concurrency", "1"];

describe("no event is lost or forwarded twice", () => {
  test("when the server is restarted, and accepts events before anybody follows it again", async () => {
    const app = await start();
    const account = await app.account();
    const receiver = receive();
    const { whenPrinted, err } = await listen({ url: app.url, account, forwardTo: receiver.url, words: oneByOne });
    const expected = await ids(app, account, 30);
    await whenPrinted(10);
    const second = await restart(app);
    expected.push(...(await ids(second, account, 30)));
    await whenPrinted(60);
    const third = await restart(second);
    expected.push(...(await ids(third, account, 30)));
    await whenPrinted(90);
    expected.push((await on(third, account).ingest({})).body.eventId);
    await whenPrinted(91);
    expect(idsOf(receiver)).toEqual(expected);
    expect(err.filter((line) => line.startsWith("Forwarding"))).toHaveLength(1);
  });

  test("when the stream is cut again and again in the middle of events", async () => {
    const app = await start();
    const account = await app.account();
    const wire = await wireTo(app);
    const receiver = receive();
    const { whenPrinted } = await listen({ url: wire.url, account, forwardTo: receiver.url, words: oneByOne });
    const expected: string[] = [];
    for (let round = 0; round < 3; round += 1) {
      expected.push(...(await ids(app, account, 20)));
      wire.cut();
      expected.push(await ingestOne(account));
      await whenPrinted(expected.length - 10);
    }
    await whenPrinted(expected.length);
    expect(idsOf(receiver)).toEqual(expected);
  });

  test("when more came than the server can resume with", async () => {
    const app = await start();
    const account = await app.account();
    const wire = await wireTo(app);
    const receiver = receive();
    const { whenPrinted } = await listen({ url: wire.url, account, forwardTo: receiver.url });
    const expected = await ids(app, account, 3);
    await whenPrinted(3);
    wire.break();
    for (const n of [1000, 450]) expected.push(...(await ids(app, account, n)));
    wire.mend();
    expected.push(await ingestOne(account));
    await whenPrinted(expected.length);
    expect(idsOf(receiver).sort()).toEqual(expected);
  });

  test("when the local address is much slower than the events", async () => {
    const app = await start();
    const account = await app.account();
    const held = Promise.withResolvers<void>();
    const receiver = receive({
      async answer() {
        await held.promise;
        return new Response(null, { status: 204 });
      },
    });
    const { whenPrinted } = await listen({ url: app.url, account, forwardTo: receiver.url });
    const expected: string[] = [];
    for (let n = 0; n < 3; n += 1) expected.push(...(await ids(app, account, 500)));
    await receiver.waitFor(8);
    expect(receiver.requests).toHaveLength(8);
    held.resolve();
    await whenPrinted(1500);
    expect(idsOf(receiver).sort()).toEqual(expected);
  });

  test("when an event has three webhooks, and so three records", async () => {
    const hooks = await startHooks();
    const app = await start();
    const account = await app.account();
    await account.setTier("enterprise");
    await register(account, hooks.hook().url, hooks.hook().url, hooks.hook().url);
    const past = await ids(app, account, 500);
    const receiver = receive();
    const { whenPrinted, stop } = await listen({
      url: app.url,
      account,
      forwardTo: receiver.url,
      words: [...oneByOne, "--since", "1h"],
    });
    await whenPrinted(500);
    await stop();
    hooks.stop();
    expect(idsOf(receiver)).toEqual(past);
  });
});

describe("ends of deliveries", () => {
  test("that came in a gap are found, also of events that were accepted before it", async () => {
    const hooks = await startHooks();
    const clock = createTravelClock();
    clock.travel(-2_000);
    const app = await start({ clock });
    const account = await app.account();
    const held = gate(422);
    const hook = hooks.hook(422);
    await register(account, hook.url);
    const wire = await wireTo(app);
    const receiver = receive();
    const words = ["--events", "failed"];
    const before = await ingestOne(account);
    await settled(account, before);
    clock.travel(2_000);
    const { whenPrinted, out } = await listen({ url: wire.url, account, forwardTo: receiver.url, words });
    const first = await ingestOne(account);
    await whenPrinted(1);
    hook.answer = held.answer;
    const waiting = await ingestOne(account);
    await hook.whenReceived(3);
    wire.break();
    hook.answer = 422;
    held.open();
    const inGap = await ids(app, account, 700);
    await until(
      () => account.get("/v1/events/state/FAILED?size=1"),
      ({ body }) => body.total === 703,
    );
    wire.mend();
    await whenPrinted(702);
    const last = await ingestOne(account);
    await whenPrinted(703);
    hooks.stop();
    expect(idsOf(receiver).sort()).toEqual([first, waiting, ...inGap, last]);
    expect(out).toHaveLength(703);
  });
});

describe("replays", () => {
  test("that came in a gap are found, and none is forwarded twice", async () => {
    const hooks = await startHooks();
    const clock = createTravelClock();
    const app = await start({ clock });
    const account = await app.account();
    await register(account, hooks.hook().url);
    const stored = await ids(app, account, 150);
    await until(
      () => account.get("/v1/events/state/DELIVERED?size=1"),
      ({ body }) => body.total === 150,
    );
    const wire = await wireTo(app);
    const receiver = receive();
    const words = ["--events", "replayed"];
    const { whenPrinted, out } = await listen({ url: wire.url, account, forwardTo: receiver.url, words });
    const replay = async (kind: string, body: Record<string, unknown> = {}) => {
      const { headers } = await account.post(`/v1/events/replays/${kind}`, { replayGroupId: "again", ...body });
      await until(
        () => account.get(headers.get("location") ?? ""),
        (answer) => answer.body.status === "completed",
      );
    };
    const [first = "", second = ""] = stored;
    await replay("single", { eventId: first });
    await whenPrinted(1);
    clock.travel(20_000);
    wire.break();
    // What the server still had of the stream is gone.
    for (let n = 0; n < 3; n += 1) await ids(app, account, 400);
    await replay("timeline", { startTime: "2020-01-01", endTime: new Date(clock.now() - 10_000).toISOString() });
    wire.mend();
    await whenPrinted(150);
    await replay("single", { eventId: second });
    await whenPrinted(151);
    hooks.stop();
    expect(idsOf(receiver).slice(1).sort()).toEqual([...stored.slice(1), second].sort());
    expect(out).toHaveLength(151);
  });
});

describe("--since", () => {
  test.each(["an event", "a time", "a duration"])("%s", async (what) => {
    const app = await start();
    const account = await app.account();
    const [first = "", ...later] = await ids(app, account, 250);
    const { ingestionTimestamp } = (await account.get(`/v1/events/${first}`)).body[0];
    const since = { "an event": first, "a time": ingestionTimestamp, "a duration": "10m" }[what] ?? "";
    const receiver = receive();
    const words = [...oneByOne, "--since", since];
    const { whenPrinted, stop } = await listen({ url: app.url, account, forwardTo: receiver.url, words });
    const now = await ingestOne(account);
    const expected = [...(what === "an event" ? [] : [first]), ...later, now];
    await whenPrinted(expected.length);
    await stop();
    expect(idsOf(receiver)).toEqual(expected);
  });

  test("with the id of the last line, goes on where the last time ended", async () => {
    const app = await start();
    const account = await app.account();
    const receiver = receive();
    const first = await listen({ url: app.url, account, forwardTo: receiver.url, words: oneByOne });
    const expected = await ids(app, account, 10);
    await first.whenPrinted(10);
    expect(await first.stop()).toBe(0);
    const since = / --since (\S+)$/.exec(first.err.at(-1) ?? "")?.[1] ?? "";
    expected.push(...(await ids(app, account, 10)));
    const words = [...oneByOne, "--since", since];
    const second = await listen({ url: app.url, account, forwardTo: receiver.url, words });
    await second.whenPrinted(10);
    expect(idsOf(receiver)).toEqual(expected);
  });

  test.each(["finished", "failed", "accepted,failed", "replayed"])(
    "with the time of the last line, finds what had waited: --events %s",
    async (kinds) => {
      const hooks = await startHooks();
      const app = await start();
      const account = await app.account();
      await register(account, hooks.hook(kinds === "replayed" ? 200 : 422).url);
      const earlier = kinds === "replayed" ? await ids(app, account, 5) : [];
      const slow = receive({ answer: () => new Promise(() => {}) });
      const words = [...oneByOne, "--events", kinds];
      const first = await listen({ url: app.url, account, forwardTo: slow.url, words });
      const expected = kinds === "replayed" ? earlier : await ids(app, account, 5);
      if (kinds === "replayed") {
        const range = { startTime: "2020-01-01", endTime: new Date().toISOString(), replayGroupId: "again" };
        await account.post("/v1/events/replays/timeline", range);
      }
      for (const eventId of expected) await settled(account, eventId);
      await slow.waitFor(1);
      first.interrupt();
      first.interrupt();
      expect(await first.ended).toBe(0);
      const [, since = ""] = / To continue from there: --since (20\S+Z)$/.exec(first.err.at(-1) ?? "") ?? [];
      const receiver = receive();
      const again = [...words, "--since", since];
      const second = await listen({ url: app.url, account, forwardTo: receiver.url, words: again });
      await second.whenPrinted(kinds === "accepted,failed" ? 10 : 5);
      expect([...new Set(idsOf(receiver))].sort()).toEqual(expected.toSorted());
      hooks.stop();
    },
  );
});

describe("the server", () => {
  test("may be away at the start: that is said once, and it is tried until it answers", async () => {
    const first = await start();
    const account = await first.account();
    await first.stop({ keepData: true });
    const clock = createTravelClock();
    const listening = begin({ url: first.url, account, forwardTo: receive().url, clock });
    await listening.when(listening.err, (line) => line.includes("cannot be reached"));
    for (let round = 0; round < 5; round += 1) {
      clock.travel(60_000);
      await new Promise((resolve) => setImmediate(resolve));
    }
    const second = await start({ dataDir: first.dataDir, env: { POSTRIDER_PORT: new URL(first.url).port } });
    const travelling = setInterval(() => clock.travel(1_000), 20);
    await listening.whenOpen();
    clearInterval(travelling);
    expect(listening.err).toEqual([
      `${first.url} cannot be reached (connection refused). Retrying until it works.`,
      `${second.url} is available again.`,
      expect.stringMatching(/^Forwarding events of /),
    ]);
  });

  test("Ctrl+C ends the waiting too", async () => {
    const url = `http://127.0.0.1:${await closedPort()}`;
    const account = { id: "t1", password: "x" };
    const listening = begin({ url, account, forwardTo: "3000" });
    await listening.when(listening.err, (line) => line.includes("cannot be reached"));
    expect(await listening.stop()).toBe(130);
  });

  test("may fall silent: after 45 s without a word the stream is opened again", async () => {
    const clock = createTravelClock();
    const app = await start();
    const account = await app.account();
    const wire = await wireTo(app);
    const listening = await listen({ url: wire.url, account, forwardTo: receive().url, clock });
    await wire.whenSent("GET /v1/stream");
    for (let passed = 0; passed < 60_000; passed += 15_000) clock.travel(15_000);
    const travelling = setInterval(() => clock.travel(1_000), 20);
    await wire.whenSent("GET /v1/stream", 2);
    clearInterval(travelling);
    await ingestOne(account);
    await listening.whenPrinted(1);
  });
});

describe("the session", () => {
  test("is renewed before it ends, also one that was given as a token", async () => {
    const clock = createTravelClock();
    const app = await start({ clock });
    const account = await app.account();
    const wire = await wireTo(app);
    const env = { POSTRIDER_TOKEN: account.jwt, POSTRIDER_LOGIN: "", POSTRIDER_PASSWORD: "" };
    const listening = await listen({ url: wire.url, account, forwardTo: receive().url, clock, env });
    clock.travel(110 * 60_000);
    await wire.whenSent("POST /v1/tenants/auth/refresh");
    await ingestOne(account);
    await listening.whenPrinted(1);
    clock.travel(20 * 60_000);
    await ingestOne(account);
    await listening.whenPrinted(2);
    expect((await account.get("/v1/tenants/me")).status).toBe(401);
  });

  test("that has ended begins again with the password", async () => {
    const clock = createTravelClock();
    const app = await start({ clock });
    const account = await app.account();
    const wire = await wireTo(app);
    const listening = await listen({ url: wire.url, account, forwardTo: receive().url, clock });
    await account.post("/v1/tenants/auth/logout", { all: true });
    await wire.whenSent("POST /v1/tenants/auth/login", 2);
    await ingestOne(account);
    await listening.whenPrinted(1);
  });

  test("that has ended and was a token only ends the command, with 1 and the reason", async () => {
    const app = await start();
    const account = await app.account();
    const env = { POSTRIDER_TOKEN: account.jwt, POSTRIDER_LOGIN: "", POSTRIDER_PASSWORD: "" };
    const listening = await listen({ url: app.url, account, forwardTo: receive().url, env });
    await ingestOne(account);
    await listening.whenPrinted(1);
    await account.post("/v1/tenants/auth/logout", { all: true });
    const error = await listening.ended.then(
      () => null,
      (reason: Error) => reason,
    );
    expect(error?.message).toStartWith("POSTRIDER_TOKEN is invalid or has expired");
    expect(listening.err.at(-1)).toStartWith("1 forwarded: 1 answered with 2xx.");
  });
});

describe("Ctrl+C", () => {
  test("lets what has begun end; a second one does not wait for it", async () => {
    const app = await start();
    const account = await app.account();
    const receiver = receive({ answer: () => new Promise(() => {}) });
    const listening = await listen({ url: app.url, account, forwardTo: receiver.url, words: oneByOne });
    const [first = ""] = await ids(app, account, 3);
    await receiver.waitFor(1);
    listening.interrupt();
    listening.interrupt();
    expect(await listening.ended).toBe(0);
    const [, since = ""] =
      /^Nothing was forwarded\. To continue from there: --since (evt_\w+)$/.exec(listening.err.at(-1) ?? "") ?? [];
    expect(since < first).toBeTrue();
    expect(since).not.toBe("");
  });
});
