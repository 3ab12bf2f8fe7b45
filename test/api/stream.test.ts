// biome-ignore-all lint/suspicious/noThenProperty: rows of a scenario table have one
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  batchOf,
  createTravelClock,
  type Hooks,
  ingestOne,
  isoPattern,
  outcome,
  register,
  startHooks,
} from "../support/api-server.ts";
import { connectRaw, headOf, statusOf } from "../support/raw-peer.ts";
import { type Message, openStream } from "../support/stream-client.ts";
import type { TestAccount } from "../support/test-app.ts";
import { provenSections, scenarios, useServer } from "./scenario.ts";

provenSections.add("rules 11").add("spec: Dashboard stream");

let hooks: Hooks;
afterAll(() => hooks.stop());
const clock = createTravelClock();
const server = useServer({ clock });
beforeAll(async () => {
  hooks = await startHooks();
});

const time = expect.stringMatching(isoPattern);

describe("what it says", () => {
  let tenant: TestAccount;
  let other: TestAccount;
  beforeAll(async () => {
    [tenant, other] = await Promise.all([server().account(), server().account()]);
  });

  test("its head", async () => {
    const stream = await openStream(server(), tenant.jwt);
    const { status, headers } = stream.response;
    expect([
      status,
      headers.get("content-type"),
      headers.get("cache-control"),
      headers.get("x-accel-buffering"),
    ]).toEqual([200, "text/event-stream", "no-store", "no"]);
    await stream.whenComments(1);
    stream.close();
  });

  test("an event, its attempts and its end, in the field names of the API and without the payload", async () => {
    const hook = hooks.hook((response, nth) => void response.writeHead(nth === 1 ? 503 : 200).end());
    await register(tenant, hook.url);
    const [stream, foreign] = await Promise.all([openStream(server(), tenant.jwt), openStream(server(), other.jwt)]);
    const eventId = await ingestOne(tenant, { secret: "payload-of-tenant" });
    const finished = await stream.next("delivery.finished");
    expect(stream.messages.map(({ event, data }) => ({ event, data }))).toEqual([
      { event: "event.accepted", data: { eventId, ingestionTimestamp: time } },
      {
        event: "delivery.attempted",
        data: {
          eventId,
          targetWebhook: hook.url,
          number: 1,
          startedAt: time,
          durationMs: expect.any(Number),
          statusCode: 503,
          error: `HTTP 503 from ${hook.url}`,
          errorCode: "http_status",
          nextAttemptAt: time,
          replayGroupId: null,
        },
      },
      {
        event: "delivery.attempted",
        data: {
          eventId,
          targetWebhook: hook.url,
          number: 2,
          startedAt: time,
          durationMs: expect.any(Number),
          statusCode: 200,
          error: null,
          errorCode: null,
          nextAttemptAt: null,
          replayGroupId: null,
        },
      },
      {
        event: "delivery.finished",
        data: {
          eventId,
          targetWebhook: hook.url,
          state: "DELIVERED",
          errorReason: null,
          errorCode: null,
          statusCode: null,
          attempts: 2,
          replayGroupId: null,
        },
      },
    ]);
    const numbers = stream.messages.map(({ id }) => Number(id.split("-")[1]));
    expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b));
    expect(new Set(stream.messages.map(({ id }) => id.split("-")[0])).size).toBe(1);
    expect(finished.data.state).toBe("DELIVERED");
    // What happens in another account comes to another stream only.
    const theirs = await ingestOne(other, {});
    await foreign.next("event.accepted", ({ eventId: id }) => id === theirs);
    expect(JSON.stringify(foreign.messages)).not.toContain(tenant.id);
    expect(JSON.stringify(foreign.messages)).not.toContain(eventId);
    expect(JSON.stringify(stream.messages)).not.toContain("payload-of-tenant");
    stream.close();
    foreign.close();
  });

  test("the progress of a replay", async () => {
    const hook = hooks.hook();
    await register(tenant, hook.url);
    const eventId = await ingestOne(tenant);
    await outcome(tenant, eventId);
    const stream = await openStream(server(), tenant.jwt);
    await tenant.post("/v1/events/replays/all", { replayGroupId: "shown" });
    const { data } = await stream.next("replay.progressed");
    const { headers } = await tenant.post("/v1/events/replays/single", { eventId, replayGroupId: "shown" });
    const replay = (await tenant.get(headers.get("location") ?? "")).body;
    expect(Object.keys(data)).toEqual(Object.keys(replay));
    await stream.next("delivery.finished", ({ replayGroupId }) => replayGroupId === "shown");
    stream.close();
  });

  test("a change of the account", async () => {
    const stream = await openStream(server(), tenant.jwt);
    await register(tenant, hooks.hook().url);
    const { data } = await stream.next("account.changed");
    expect(data).toEqual({ tenant_id: tenant.id, tier: "free", status: "active", changed: "webhooks" });
    await tenant.setTier("pro");
    await stream.next("account.changed", ({ changed, tier }) => changed === "tier" && tier === "pro");
    stream.close();
  });

  test("a comment every 15 seconds", async () => {
    const stream = await openStream(server(), other.jwt);
    await stream.whenComments(1);
    for (const n of [2, 3]) {
      clock.travel(15_000);
      await stream.whenComments(n);
    }
    expect(stream.messages).toEqual([]);
    stream.close();
  });
});

describe("Last-Event-ID", () => {
  test("resumes after the message that it names, without a gap or a repetition", async () => {
    const tenant = await server().account();
    const first = await openStream(server(), tenant.jwt);
    await batchOf(server(), tenant, 3);
    const seen = await first.whenMessages(3);
    first.close();
    await batchOf(server(), tenant, 2);
    const resumed = await openStream(server(), tenant.jwt, seen[1]?.id);
    await batchOf(server(), tenant, 1);
    const messages = await resumed.whenMessages(4);
    expect(messages.map(({ event }) => event)).toEqual(Array(4).fill("event.accepted"));
    expect(messages[0]).toEqual(seen[2] as Message);
    resumed.close();
  });

  test("1,000 messages can be made good, and no more", async () => {
    const tenant = await server().account();
    const first = await openStream(server(), tenant.jwt);
    await batchOf(server(), tenant, 2);
    const seen = await first.whenMessages(2);
    await batchOf(server(), tenant, 999);
    await first.whenMessages(1001);
    first.close();
    const [tooOld, justInTime] = await Promise.all([
      openStream(server(), tenant.jwt, `${seen[0]?.id.split("-")[0]}-0`),
      openStream(server(), tenant.jwt, seen[0]?.id),
    ]);
    expect(await justInTime.whenMessages(1000)).toHaveLength(1000);
    expect((await tooOld.whenMessages(1))[0]?.event).toBe("resync");
    tooOld.close();
    justInTime.close();
  });

  test.each(["nonsense", "1-1", "999999999999999-1"])(
    "%s is unknown: first comes resync, then what is new",
    async (id) => {
      const tenant = await server().account();
      const stream = await openStream(server(), tenant.jwt, id);
      await ingestOne(tenant);
      const messages = await stream.whenMessages(2);
      expect(messages.map(({ event }) => event)).toEqual(["resync", "event.accepted"]);
      stream.close();
    },
  );
});

describe("its end", () => {
  test.each([
    [
      "every session of the account ends",
      (tenant: TestAccount) => tenant.post("/v1/tenants/auth/logout", { all: true }),
    ],
    ["the account is deleted", (tenant: TestAccount) => tenant.delete("/v1/tenants")],
    [
      "the password is changed",
      (tenant: TestAccount) =>
        tenant.put("/v1/tenants/password", { current_password: tenant.password, new_password: "An0ther@password" }),
    ],
  ])("at once when %s", async (_, act) => {
    const tenant = await server().account();
    const stream = await openStream(server(), tenant.jwt);
    await stream.whenComments(1);
    expect((await act(tenant)).status).toBeLessThan(300);
    await stream.ended;
  });

  test("when this session logs out; the account's other streams stay", async () => {
    const tenant = await server().account();
    const login = { loginId: tenant.id, password: tenant.password };
    const { token } = (await server().request("POST", "/v1/tenants/auth/login", { body: login })).body;
    const [stream, other] = [await openStream(server(), tenant.jwt), await openStream(server(), token)];
    await tenant.post("/v1/tenants/auth/logout");
    clock.travel(15_000);
    await stream.ended;
    await ingestOne(tenant);
    await other.next("event.accepted");
    other.close();
  });

  test("when the token expires, not before", async () => {
    const tenant = await server().account();
    const stream = await openStream(server(), tenant.jwt);
    clock.travel(2 * 60 * 60 * 1000 - 60_000);
    await ingestOne(tenant);
    await stream.next("event.accepted");
    clock.travel(60_000);
    await stream.ended;
    expect((await tenant.get("/v1/events")).status).toBe(401);
  });

  test("a client that leaves makes room: 50 streams are open at most", async () => {
    const tenant = await server().account();
    const streams = await Promise.all(Array.from({ length: 50 }, () => openStream(server(), tenant.jwt)));
    expect(streams.map(({ response }) => response.status)).toEqual(Array(50).fill(200));
    const { status, headers, body } = await tenant.get("/v1/stream");
    expect([status, body]).toEqual([
      429,
      { message: "The account has 50 open streams, which is the limit; close one.", code: "too_many_streams" },
    ]);
    expect(Number(headers.get("retry-after"))).toBeGreaterThan(0);
    for (const { close } of streams) close();
  });
});

describe("HEAD", () => {
  test.each(["/v1/stream", "/v1/events?size=10"])("of %s is answered alike with a slash at its end", async (path) => {
    const tenant = await server().account();
    await ingestOne(tenant, { pad: "x".repeat(100_000) });
    const headAt = async (at: string) => {
      const peer = await connectRaw(server().url);
      peer.write(`${headOf("HEAD", at, { Authorization: `Bearer ${tenant.jwt}`, Connection: "close" })}\r\n`);
      return (await peer.closed).replace(/(?<=request-id: )\S+/i, "…");
    };
    const head = await headAt(path);
    expect(statusOf(head)).toBe(200);
    expect(await headAt(path.replace(/(?=\?|$)/, "/"))).toBe(head);
  });

  test.each(["/v1/stream", "/v1/stream/"])("of %s takes no place for longer than its answer", async (path) => {
    const tenant = await server().account();
    for (let nth = 0; nth < 51; nth += 1)
      expect((await server().request("HEAD", path, { token: tenant.jwt })).status).toBe(200);
  });
});

scenarios("GET /v1/stream", () => ({ server: server() }), {
  "no token": {
    section: "spec: Authentication",
    request: ({ server: { request } }) => request("GET", "/v1/stream"),
    status: 401,
    exact: true,
    body: { message: expect.any(String), code: "unauthenticated" },
  },
  "a token in the URL": {
    section: "rules 11",
    async request({ server: app }) {
      const { jwt } = await app.account();
      return app.request("GET", `/v1/stream?token=${jwt}&access_token=${jwt}`);
    },
    status: 401,
  },
});
