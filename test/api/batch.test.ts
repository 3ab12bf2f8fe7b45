// biome-ignore-all lint/suspicious/noThenProperty: rows of a scenario table have one
import { beforeAll, describe, expect } from "bun:test";
import { batchOf, createTravelClock, eventIdPattern, ingestRaw, rawRequest, until } from "../support/api-server.ts";
import type { TestAccount, TestApp } from "../support/test-app.ts";
import { type Scenario, scenarios, useServer } from "./scenario.ts";

interface World {
  server: TestApp;
  tenant: TestAccount;
  other: TestAccount;
  full: TestAccount;
}

const clock = createTravelClock();
const server = useServer({ clock });
let world: World;

beforeAll(async () => {
  const [tenant, other] = await Promise.all([server().account(), server().account()]);
  world = { server: server(), tenant, other, full: other };
});

const error = (code: string) => ({ message: expect.stringMatching(/^\S.{10,}/), code });
const acceptedOne = { status: "accepted", eventId: expect.stringMatching(eventIdPattern) };

const batch = (app: TestApp, token: string, body: string, headers?: Record<string, string>) =>
  app.request("POST", "/v1/ingest/batch", { token, body, ...(headers && { headers }) });

const eventCount = async (account: TestAccount) => (await account.get("/v1/events?size=1")).body.total as number;

const limit = 5 * 2 ** 20;
/** A batch of events of about 6 KB each, padded with white space to the byte. */
const batchOfSize = (bytes: number) => {
  const events = Array.from({ length: 800 }, () => `{"payload":{"a":"${"x".repeat(6_000)}"}}`).join();
  return `{"events":[${events}]}`.padEnd(bytes, " ");
};

/** A batch of two events, of which the second has a payload of so many bytes. */
const withEntryOf = (bytes: number) => `{"events":[{"payload":{}},{"payload":{"a":"${"x".repeat(bytes - 8)}"}}]}`;
let storedBefore = 0;

const refused: Record<string, [body: string, code: string]> = {
  "no events": ['{"payload":{}}', "events_required"],
  "an empty list": ['{"events":[]}', "events_empty"],
  "events that are no list": ['{"events":{"payload":{}}}', "events_not_array"],
  "two lists": ['{"events":[{"payload":{}}],"events":[{"payload":{}}]}', "events_duplicate"],
  "1,001 events": [`{"events":[${Array(1001).fill('{"payload":{}}').join()}]}`, "too_many_events"],
  "one bad event among good ones": ['{"events":[{"payload":{}},{"payload":1},{"payload":{}}]}', "payload_not_object"],
  "an event without a payload": ['{"events":[{"payload":{}},{}]}', "payload_required"],
  "an entry that is no object": ['{"events":[{"payload":{}},"x"]}', "event_not_object"],
  "a list": ['[{"payload":{}}]', "body_not_object"],
  "broken JSON behind good events": ['{"events":[{"payload":{}}]', "invalid_json"],
};

describe("the batch", () => {
  scenarios("POST /v1/ingest/batch", () => world, {
    "ids come in the order of the events, payloads byte for byte": {
      section: "rules 6",
      request: ({ server: app, tenant }) =>
        batch(
          app,
          tenant.apiKey,
          '{"x":1,"events":[{"payload":{"n":1.0}},{"y":2,"payload":{"n": 2}},{"payload":{"n":3e0}}]}',
        ),
      status: 202,
      exact: true,
      body: { status: "accepted", eventIds: Array(3).fill(expect.stringMatching(eventIdPattern)) },
      never: ({ other }) => [other.id],
      async then({ tenant }, { body: { eventIds } }) {
        expect([...eventIds].sort()).toEqual(eventIds);
        const texts = await Promise.all(
          eventIds.map(async (id: string) => (await tenant.get(`/v1/events/${id}`)).text),
        );
        ['{"n":1.0}', '{"n": 2}', '{"n":3e0}'].forEach((payload, i) => {
          expect(texts[i]).toContain(`"originalPayload":${payload},`);
        });
      },
    },
    "1,000 events": {
      section: "rules 6",
      request: ({ server: app, other }) => batchOf(app, other, 1000),
      status: 202,
      async then({ other }, { body: { eventIds } }) {
        expect(new Set(eventIds).size).toBe(1000);
        expect(await eventCount(other)).toBe(1000);
      },
    },
    "exactly 5 MiB": {
      section: "rules 6",
      request: ({ server: app, other }) => batch(app, other.apiKey, batchOfSize(limit)),
      status: 202,
    },
    ...Object.fromEntries(
      Object.entries(refused).map(([what, [body, code]]): [string, Scenario<World>] => {
        let before = 0;
        return [
          `${what}, and nothing is stored`,
          {
            section: "rules 6",
            given: async ({ tenant }) => (before = await eventCount(tenant)),
            request: ({ server: app, tenant }) => batch(app, tenant.apiKey, body),
            status: 400,
            exact: true,
            body: error(code),
            then: async ({ tenant }) => expect(await eventCount(tenant)).toBe(before),
          },
        ];
      }),
    ),
    "an entry as large as a single event may be": {
      section: "rules 6",
      request: ({ server: app, tenant }) => batch(app, tenant.apiKey, withEntryOf(256 * 1024)),
      status: 202,
    },
    "an entry larger than that, and nothing is stored": {
      section: "rules 6",
      given: async ({ tenant }) => (storedBefore = await eventCount(tenant)),
      request: ({ server: app, tenant }) => batch(app, tenant.apiKey, withEntryOf(256 * 1024 + 1)),
      status: 400,
      exact: true,
      body: { message: "events[1].payload must be at most 262144 bytes.", code: "invalid_request" },
      then: async ({ tenant }) => expect(await eventCount(tenant)).toBe(storedBefore),
    },
    "a byte more than 5 MiB": {
      section: "rules 6",
      request: ({ server: app, tenant }) => batch(app, tenant.apiKey, batchOfSize(limit + 1)),
      status: 413,
      exact: true,
      body: { message: "The body must be at most 5242880 bytes.", code: "body_too_large" },
    },
    "a chunked body beyond 5 MiB": {
      section: "rules 3",
      request: ({ server: app, tenant }) =>
        rawRequest(app, "POST", "/v1/ingest/batch", {
          headers: { Authorization: `Bearer ${tenant.apiKey}` },
          chunks: [batchOfSize(limit), " "],
        }),
      status: 413,
      exact: true,
      body: error("body_too_large"),
    },
    "a session token": {
      section: "spec: Authentication",
      request: ({ server: app, tenant }) => batch(app, tenant.jwt, '{"events":[{"payload":{}}]}'),
      status: 401,
      exact: true,
      body: error("unauthenticated"),
    },
    "an idempotency key gives the same ids again": {
      section: "rules 6",
      async request({ server: app, tenant }) {
        const first = await batch(app, tenant.apiKey, '{"events":[{"payload":{}},{"payload":{}}]}', {
          "Idempotency-Key": "b",
        });
        const again = await batch(app, tenant.apiKey, '{"events":[{"payload":{}},{"payload":{}}]}', {
          "Idempotency-Key": "b",
        });
        expect(again.body).toEqual(first.body);
        return again;
      },
      status: 202,
    },
  });
});

const keyed = (app: TestApp, account: TestAccount, key: string, body = '{"payload":{"k":1}}') =>
  ingestRaw(app, account.apiKey, body, { "Idempotency-Key": key });

describe("Idempotency-Key", () => {
  scenarios("POST /v1/ingest", () => world, {
    "the same bytes get the same 202, and one event is stored": {
      section: "rules 6",
      async request({ server: app, tenant }) {
        const before = await eventCount(tenant);
        const first = await keyed(app, tenant, "again");
        const second = await keyed(app, tenant, "again");
        expect(second.text).toBe(first.text);
        expect(await eventCount(tenant)).toBe(before + 1);
        return second;
      },
      status: 202,
      exact: true,
      body: acceptedOne,
    },
    "ten at once get the same 202": {
      section: "rules 6",
      async request({ server: app, tenant }) {
        const before = await eventCount(tenant);
        const answers = await Promise.all(Array.from({ length: 10 }, () => keyed(app, tenant, "at once")));
        expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1);
        expect(await eventCount(tenant)).toBe(before + 1);
        return answers[0] ?? Promise.reject();
      },
      status: 202,
    },
    "other bytes, also only in white space": {
      section: "rules 6",
      given: ({ server: app, tenant }) => keyed(app, tenant, "bytes"),
      request: ({ server: app, tenant }) => keyed(app, tenant, "bytes", '{"payload":{"k": 1}}'),
      status: 422,
      exact: true,
      body: error("idempotency_key_reused"),
    },
    "the same bytes on another path": {
      section: "rules 6",
      given: ({ server: app, tenant }) =>
        batch(app, tenant.apiKey, '{"events":[{"payload":{}}],"payload":{}}', { "Idempotency-Key": "path" }),
      request: ({ server: app, tenant }) => keyed(app, tenant, "path", '{"events":[{"payload":{}}],"payload":{}}'),
      status: 422,
    },
    "another account's key is another key": {
      section: "rules 6",
      async request({ server: app, tenant, other }) {
        const mine = await keyed(app, tenant, "shared");
        const theirs = await keyed(app, other, "shared", '{"payload":{"k":2}}');
        expect(theirs.body.eventId).not.toBe(mine.body.eventId);
        return theirs;
      },
      status: 202,
    },
    ...Object.fromEntries(
      [
        ["nothing", ""],
        ["256 characters", "k".repeat(256)],
        ["a character outside ASCII", "sch\u00fcssel"],
        ["a tab", "a\tb"],
      ].map(([what = "", key = ""]): [string, Scenario<World>] => [
        `a key of ${what}`,
        {
          section: "rules 6",
          request: ({ server: app, tenant }) => keyed(app, tenant, key),
          status: 400,
          exact: true,
          body: {
            message: "Idempotency-Key must be 1 to 255 printable ASCII characters.",
            code: "invalid_idempotency_key",
          },
        },
      ]),
    ),
    "a key of 255 characters": {
      section: "rules 6",
      request: ({ server: app, tenant }) => keyed(app, tenant, "~".repeat(255)),
      status: 202,
    },
    "a refusal is not remembered": {
      section: "rules 6",
      given: async ({ server: app, tenant }) =>
        expect((await keyed(app, tenant, "refused", '{"payload":1}')).status).toBe(400),
      request: ({ server: app, tenant }) => keyed(app, tenant, "refused"),
      status: 202,
    },
    "the stored answer comes before the account's state, and a bad body before it": {
      section: "rules 3",
      async request({ server: app, tenant }) {
        const first = await keyed(app, tenant, "stored");
        await app.request("POST", `/operator/tenants/${tenant.id}/suspend`, { token: app.operatorToken });
        const again = await keyed(app, tenant, "stored");
        expect((await keyed(app, tenant, "new")).status).toBe(403);
        expect((await keyed(app, tenant, "stored", '{"payload":{"k":2}}')).status).toBe(422);
        expect((await keyed(app, tenant, "stored", "{}")).status).toBe(400);
        await app.request("POST", `/operator/tenants/${tenant.id}/resume`, { token: app.operatorToken });
        expect(again.text).toBe(first.text);
        // The 403 was not remembered.
        return keyed(app, tenant, "new", '{"payload":{"other":1}}');
      },
      status: 202,
    },
    "after 24 hours a key is a new one": {
      section: "rules 6",
      async request({ server: app, tenant }) {
        const first = await keyed(app, tenant, "old");
        clock.travel(24 * 60 * 60 * 1000 + 1);
        const later = await keyed(app, tenant, "old", '{"payload":{"k":2}}');
        expect(later.body.eventId).not.toBe(first.body.eventId);
        return later;
      },
      status: 202,
    },
  });
});

describe("the month's quota", () => {
  // Not before: the clock has travelled, and sessions have ended.
  beforeAll(async () => {
    world.full = await server().account();
  });

  const secondsToMonthEnd = () => {
    const date = new Date(clock.now());
    return (Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1) - clock.now()) / 1000;
  };
  const exceeded = { message: expect.stringContaining("10000"), code: "quota_exceeded" };

  scenarios("POST /v1/ingest/batch", () => world, {
    "a batch fits whole or is refused whole": {
      section: "rules 4",
      async given({ server: app, full }) {
        for (let i = 0; i < 9; i += 1) expect((await batchOf(app, full, 1000)).status).toBe(202);
        expect((await batchOf(app, full, 999)).status).toBe(202);
      },
      request: ({ server: app, full }) => batchOf(app, full, 2),
      status: 429,
      exact: true,
      body: exceeded,
      async then({ full }, { headers }) {
        expect(Math.abs(Number(headers.get("retry-after")) - secondsToMonthEnd())).toBeLessThan(5);
        expect(await eventCount(full)).toBe(9_999);
      },
    },
  });

  scenarios("POST /v1/ingest", () => world, {
    "what still fits is accepted, once": {
      section: "rules 4",
      request: ({ full }) => full.ingest({}, { "Idempotency-Key": "last" }),
      status: 202,
      async then({ full }) {
        expect((await full.get("/v1/tenants/me")).body.events_this_month).toBe(10_000);
      },
    },
    "one more": {
      section: "rules 4",
      request: ({ full }) => full.ingest({}, { "Idempotency-Key": "too much" }),
      status: 429,
      exact: true,
      body: exceeded,
      headers: { "retry-after": /^\d+$/ },
      never: ({ tenant }) => [tenant.id],
      async then({ full }) {
        // With the two of the batch. They are written once a second.
        clock.travel(1000);
        const me = () => full.get("/v1/tenants/me");
        const { body } = await until(me, ({ body }) => body.refused_this_month.quota >= 3);
        expect(body.refused_this_month).toEqual({ quota: 3, inactive: 0, invalid: 0 });
      },
    },
    "the stored answer comes before the quota": {
      section: "rules 3",
      request: ({ full }) => full.ingest({}, { "Idempotency-Key": "last" }),
      status: 202,
    },
    "another account has its own quota": {
      section: "rules 4",
      request: ({ other }) => other.ingest({}),
      status: 202,
    },
    "when the month has ended, it begins anew, and the 429 was not remembered": {
      section: "rules 2",
      given: async () => clock.travel(secondsToMonthEnd() * 1000 + 1),
      request: ({ full }) => full.ingest({ b: 1 }, { "Idempotency-Key": "too much" }),
      status: 202,
      async then({ full, server: app }) {
        const login = await app.request("POST", "/v1/tenants/auth/login", {
          body: { loginId: full.id, password: full.password },
        });
        const me = await app.request("GET", "/v1/tenants/me", { token: login.body.token });
        expect(me.body.events_this_month).toBe(1);
        expect(me.body.refused_this_month.quota).toBe(0);
      },
    },
  });
});
