// biome-ignore-all lint/suspicious/noThenProperty: rows of a scenario table have one
import { afterAll, beforeAll, describe, expect } from "bun:test";
import {
  eventIdPattern,
  type Hook,
  type Hooks,
  ingestRaw,
  isoPattern,
  outcome,
  rawRequest,
  register,
  seedTenant,
  startHooks,
  until,
} from "../support/api-server.ts";
import type { TestAccount, TestApp } from "../support/test-app.ts";
import { type Scenario, scenarios, useServer } from "./scenario.ts";

interface World {
  server: TestApp;
  tenant: TestAccount;
  other: TestAccount;
  hook: Hook;
}

const server = useServer();
let world: World;
let hooks: Hooks;

beforeAll(async () => {
  hooks = await startHooks();
  const hook = hooks.hook();
  const [tenant, other] = await Promise.all([server().account(), server().account()]);
  await register(tenant, hook.url);
  world = { server: server(), tenant, other, hook };
});
afterAll(() => hooks.stop());

const accepted = { status: "accepted", eventId: expect.stringMatching(eventIdPattern) };
const error = (code: string) => ({ message: expect.stringMatching(/^\S.{10,}/), code });

/** Others than the caller must not appear in an answer. */
const never = ({ other }: World) => [other.id, other.apiKey];

const maxBody = 256 * 1024;
const bodyOfSize = (bytes: number) => `{"payload":{"a":"${"x".repeat(bytes - 20)}"}}`;
const nested = (levels: number) => `${'{"a":'.repeat(levels - 1)}{}${"}".repeat(levels - 1)}`;

const trace = {
  traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
  tracestate: "rojo=00f067aa0ba902b7, congo=t61rcWkgMzE",
};

/** What the webhook got of a trace with an event, the first time and when it was replayed. */
async function tracesOf({ tenant, hook }: World, eventId: string) {
  await outcome(tenant, eventId);
  await tenant.post("/v1/events/replays/single", { eventId, replayGroupId: "again" });
  const got = () => hook.received.filter(({ headers }) => headers["service-event-id"] === eventId);
  await until(got, ({ length }) => length === 2);
  return got().map(({ headers }) => [headers.traceparent, headers.tracestate]);
}

describe("a trace", () => {
  const rows: [string, Record<string, string>, (string | undefined)[]][] = [
    ["is sent with the deliveries, as it came", trace, [trace.traceparent, trace.tracestate]],
    ["needs no state", { traceparent: trace.traceparent }, [trace.traceparent, undefined]],
    ["without a parent is left out", { tracestate: trace.tracestate }, [undefined, undefined]],
    ["with a parent that is not valid is left out", { ...trace, traceparent: "00-0-0-01" }, [undefined, undefined]],
    ["with a state that is not valid goes without it", { ...trace, tracestate: "a" }, [trace.traceparent, undefined]],
  ];
  scenarios("POST /v1/ingest", () => world, {
    ...Object.fromEntries(
      rows.map(([what, headers, expected]): [string, Scenario<World>] => [
        what,
        {
          section: "rules 6",
          request: ({ tenant }) => tenant.ingest({ traced: what }, headers),
          status: 202,
          then: async (given, { body }) =>
            expect(await tracesOf(given, body.eventId)).toEqual([expected, expected] as never),
        },
      ]),
    ),
  });

  scenarios("POST /v1/ingest/batch", () => world, {
    "is that of each event": {
      section: "rules 6",
      request: ({ server, tenant }) =>
        server.request("POST", "/v1/ingest/batch", {
          token: tenant.apiKey,
          body: { events: [{ payload: { n: 1 } }, { payload: { n: 2 } }] },
          headers: trace,
        }),
      status: 202,
      async then(given, { body }) {
        for (const eventId of body.eventIds) {
          const expected = [trace.traceparent, trace.tracestate];
          expect(await tracesOf(given, eventId)).toEqual([expected, expected]);
        }
        const { body: preview } = await given.tenant.get(`/v1/events/${body.eventIds[0]}/delivery`);
        expect(preview.headers).toMatchObject(trace);
      },
    },
  });
});

describe("what is accepted", () => {
  scenarios("POST /v1/ingest", () => world, {
    "an object is accepted": {
      section: "spec: Ingestion",
      request: ({ tenant }) => tenant.ingest({ event_type: "order.created" }),
      status: 202,
      exact: true,
      body: accepted,
      headers: { "content-type": /^application\/json/, "cache-control": "no-store" },
      never,
      async then({ tenant }, { body }) {
        const record = await outcome(tenant, body.eventId);
        expect(record).toMatchObject({ state: "DELIVERED", tenantId: tenant.id });
      },
    },
    "the event is stored when the answer comes": {
      section: "rules 6",
      request: ({ tenant }) => tenant.ingest({ n: 1 }),
      status: 202,
      async then({ tenant }, { body }) {
        const { status, body: records } = await tenant.get(`/v1/events/${body.eventId}`);
        expect(status).toBe(200);
        expect(records).toHaveLength(1);
      },
    },
    "other top-level fields are ignored": {
      section: "rules 6",
      request: ({ server: { request }, tenant }) =>
        request("POST", "/v1/ingest", {
          token: tenant.apiKey,
          body: '{"eventId":"evt_mine","tenantId":"t1","events":[1],"payload":{"a":1},"__proto__":{"payload":{}}}',
        }),
      status: 202,
      exact: true,
      body: accepted,
      async then({ tenant }, { body }) {
        expect(body.eventId).not.toBe("evt_mine");
        expect(await outcome(tenant, body.eventId)).toMatchObject({ tenantId: tenant.id, originalPayload: { a: 1 } });
      },
    },
    "a body of exactly 256 KiB": {
      section: "rules 6",
      request: ({ server: app, tenant }) => ingestRaw(app, tenant.apiKey, bodyOfSize(maxBody)),
      status: 202,
    },
    "64 levels, the body's own object among them": {
      section: "rules 6",
      request: ({ server: app, tenant }) => ingestRaw(app, tenant.apiKey, `{"payload":${nested(63)}}`),
      status: 202,
    },
    "a chunked body without a length": {
      section: "rules 3",
      request: ({ server: app, tenant }) =>
        rawRequest(app, "POST", "/v1/ingest", {
          headers: { Authorization: `Bearer ${tenant.apiKey}` },
          chunks: ['{"payload"', ':{"a":', "1}}"],
        }),
      status: 202,
      exact: true,
      body: accepted,
    },
    ...Object.fromEntries(
      ["", "application/json", "application/json; charset=utf-8", "application/cloudevents+json"].map((type) => [
        `the content type ${type || "absent"}`,
        {
          section: "rules 3",
          request: ({ server: app, tenant }: World) =>
            rawRequest(app, "POST", "/v1/ingest", {
              headers: { Authorization: `Bearer ${tenant.apiKey}`, ...(type && { "Content-Type": type }) },
              chunks: ['{"payload":{}}'],
            }),
          status: 202,
        } satisfies Scenario<World>,
      ]),
    ),
  });
});

const faithful: Record<string, string> = {
  "integers beyond 2^53": '{"id":9007199254740993,"huge":123456789012345678901234567890}',
  "the spelling of numbers": '{"a":1.0,"b":1e400,"c":-0,"d":1E+2,"e":0.10}',
  "the order of keys": '{"z":1,"10":2,"a":3,"2":4}',
  "duplicate keys inside": '{"a":1,"a":{"b":2,"b":3}}',
  escapes: '{"a":"\\u0041\\/\\n\\ud83d\\ude00 \\ud800","\\u0062":1}',
  "characters of every length": '{"ä":"€😀","\u2028":"\u0000"}'.replace("\u0000", "\\u0000"),
  "white space": '{ "a" :\t[ 1 ,\r\n 2 ] }',
  ["__proto__"]: '{"__proto__":{"polluted":true},"constructor":1}',
  "a payload inside the payload": '{"payload":{"payload":[]}}',
  nothing: "{}",
  "deep nesting": nested(40),
};

describe("bytes are kept", () => {
  scenarios(
    "POST /v1/ingest",
    () => world,
    Object.fromEntries(
      Object.entries(faithful).map(([what, payload]): [string, Scenario<World>] => [
        `${what}: in originalPayload and at the webhook`,
        {
          section: "rules 6",
          request: ({ server: app, tenant }) =>
            ingestRaw(app, tenant.apiKey, ` {"x":[],"payload" : ${payload} ,"y":1}\n`),
          status: 202,
          async then({ tenant, hook }, { body: { eventId } }) {
            const record = await outcome(tenant, eventId);
            const time = record.ingestionTimestamp;
            expect(time).toMatch(isoPattern);
            const sent = hook.received.filter(({ headers }) => headers["service-event-id"] === eventId);
            expect(sent.map(({ text }) => text)).toEqual([
              `{"eventId":"${eventId}","tenantId":"${tenant.id}","ingestionTimestamp":"${time}","payload":${payload}}`,
            ]);
            const { text } = await tenant.get(`/v1/events/${eventId}`);
            expect(text).toContain(`"originalPayload":${payload},`);
            expect((await tenant.get("/v1/events?size=1")).text).toContain(`"originalPayload":${payload},`);
          },
        },
      ]),
    ),
  );
});

const types: Record<string, [body: string, type: string | null]> = {
  "what the body says": ['{"event_type":"order.paid","payload":{"event_type":"a","type":"b"}}', "order.paid"],
  "said after the payload, and written with escapes": [
    '{"payload":{"type":"b"},"event\\u005ftype":"caf\\u00e9 ☕"}',
    "café ☕",
  ],
  "the payload's event_type before its type": ['{"payload":{"type":"b","event_type":"a"}}', "a"],
  "the payload's type": ['{"payload":{"data":{"type":"c"},"type":"b"}}', "b"],
  "the last of several, as parsers have it": ['{"payload":{"type":"b","type":"c"}}', "c"],
  "null in the body leaves it to the payload": ['{"event_type":null,"payload":{"type":"b"}}', "b"],
  "a payload's type that is no string is none": ['{"payload":{"event_type":{"a":1},"type":7}}', null],
  "a payload's type that is empty is none": ['{"payload":{"type":""}}', null],
  "a payload's type of 201 characters is none": [`{"payload":{"type":"${"x".repeat(201)}"}}`, null],
  "a payload's type with a control character is none": ['{"payload":{"type":"a\\nb"}}', null],
  "a payload's type that only the program uses is none": ['{"payload":{"type":"postrider.webhook.failing"}}', null],
  none: ['{"payload":{"data":{"type":"c"}}}', null],
  "200 characters": [`{"event_type":"${"x".repeat(200)}","payload":{}}`, "x".repeat(200)],
};

describe("the type of an event", () => {
  scenarios(
    "POST /v1/ingest",
    () => world,
    Object.fromEntries(
      Object.entries(types).map(([what, [body, eventType]]): [string, Scenario<World>] => [
        what,
        {
          section: "rules 6",
          request: ({ server: app, tenant }) => ingestRaw(app, tenant.apiKey, body),
          status: 202,
          async then({ tenant }, { body: { eventId } }) {
            expect(await outcome(tenant, eventId)).toMatchObject({ eventType });
            const { body: list } = await tenant.get("/v1/events?size=1");
            expect(list.events).toMatchObject([{ eventId, eventType }]);
          },
        },
      ]),
    ),
  );
  scenarios("POST /v1/ingest/batch", () => world, {
    "is that of each entry": {
      section: "rules 6",
      request: ({ server: { request }, tenant }) =>
        request("POST", "/v1/ingest/batch", {
          token: tenant.apiKey,
          body: '{"events":[{"event_type":"a.b","payload":{}},{"payload":{"type":"c"}},{"payload":{}}]}',
        }),
      status: 202,
      async then({ tenant }, { body: { eventIds } }) {
        const records = await Promise.all(eventIds.map((id: string) => outcome(tenant, id)));
        expect(records.map(({ eventType }) => eventType)).toEqual(["a.b", "c", null]);
      },
    },
  });
});

const bytes = (...parts: (string | number[])[]) =>
  Buffer.concat(parts.map((part) => (typeof part === "string" ? Buffer.from(part) : Buffer.from(part))));

const refused: Record<string, [body: string | Uint8Array, code: string]> = {
  "no payload": ['{"event":{}}', "payload_required"],
  "an empty object": ["{}", "payload_required"],
  "a payload that is an array": ['{"payload":[]}', "payload_not_object"],
  "a payload that is null": ['{"payload":null}', "payload_not_object"],
  "a payload that is a string": ['{"payload":"{}"}', "payload_not_object"],
  "a payload that is a number": ['{"payload":1}', "payload_not_object"],
  "two payloads": ['{"payload":{},"payload":{}}', "payload_duplicate"],
  "two payloads, one written with escapes": ['{"payload":{},"p\\u0061yload":{}}', "payload_duplicate"],
  "a type that is no string": ['{"event_type":7,"payload":{}}', "invalid_event_type"],
  "an empty type": ['{"event_type":"","payload":{}}', "invalid_event_type"],
  "a type of 201 characters": [`{"event_type":"${"x".repeat(201)}","payload":{}}`, "invalid_event_type"],
  "a type with half a surrogate pair": ['{"event_type":"\\ud800","payload":{}}', "invalid_event_type"],
  "a type that only the program uses": ['{"event_type":"postrider.x","payload":{}}', "event_type_reserved"],
  "two types": ['{"event_type":"a","payload":{},"event_type":"a"}', "event_type_duplicate"],
  "an ordering key that is no string": ['{"ordering_key":7,"payload":{}}', "invalid_ordering_key"],
  "an empty ordering key": ['{"ordering_key":"","payload":{}}', "invalid_ordering_key"],
  "an ordering key of 256 characters": [`{"ordering_key":"${"x".repeat(256)}","payload":{}}`, "invalid_ordering_key"],
  "two ordering keys": ['{"ordering_key":"a","payload":{},"ordering_key":"a"}', "ordering_key_duplicate"],
  "a body that is an array": ['[{"payload":{}}]', "body_not_object"],
  "a body that is a string": ['"payload"', "body_not_object"],
  "an empty body": ["", "invalid_json"],
  "no JSON": ["payload", "invalid_json"],
  "a cut-off body": ['{"payload":{}', "invalid_json"],
  "something behind the body": ['{"payload":{}}{}', "invalid_json"],
  "a trailing comma": ['{"payload":{"a":1,}}', "invalid_json"],
  "a number with a leading zero": ['{"payload":{"a":01}}', "invalid_json"],
  "65 levels": [`{"payload":${nested(64)}}`, "nesting_too_deep"],
  "65 levels in a field that is ignored": [`{"payload":{},"x":${nested(64)}}`, "nesting_too_deep"],
  "a byte order mark": [bytes([0xef, 0xbb, 0xbf], '{"payload":{}}'), "invalid_utf8"],
  "invalid UTF-8": [bytes('{"payload":{"a":"', [0xff], '"}}'), "invalid_utf8"],
  "an overlong form": [bytes('{"payload":{"a":"', [0xc0, 0xaf], '"}}'), "invalid_utf8"],
  "a surrogate in UTF-8": [bytes('{"payload":{"a":"', [0xed, 0xa0, 0x80], '"}}'), "invalid_utf8"],
};

describe("what is refused", () => {
  scenarios("POST /v1/ingest", () => world, {
    ...Object.fromEntries(
      Object.entries(refused).map(([what, [body, code]]): [string, Scenario<World>] => [
        what,
        {
          section: "rules 6",
          request: ({ server: app, other }) => ingestRaw(app, other.apiKey, body),
          status: 400,
          exact: true,
          body: error(code),
          never: ({ tenant }) => [tenant.id, "payload.ts", "at Object"],
          async then({ other }) {
            expect((await other.get("/v1/events")).body.total).toBe(0);
          },
        },
      ]),
    ),
    "a byte more than 256 KiB": {
      section: "rules 6",
      request: ({ server: app, other }) => ingestRaw(app, other.apiKey, bodyOfSize(maxBody + 1)),
      status: 413,
      exact: true,
      body: { message: "The body must be at most 262144 bytes.", code: "body_too_large" },
    },
    "a chunked body beyond 256 KiB": {
      section: "rules 3",
      request: ({ server: app, other }) =>
        rawRequest(app, "POST", "/v1/ingest", {
          headers: { Authorization: `Bearer ${other.apiKey}`, "Content-Type": "application/json" },
          chunks: [bodyOfSize(maxBody), " ", " "],
        }),
      status: 413,
      exact: true,
      body: error("body_too_large"),
    },
    "a body that is no JSON by its type": {
      section: "rules 3",
      request: ({ tenant }) => tenant.ingest({}, { "Content-Type": "text/plain" }),
      status: 415,
      exact: true,
      body: error("unsupported_media_type"),
    },
    "a compressed body": {
      section: "rules 3",
      request: ({ tenant }) => tenant.ingest({}, { "Content-Encoding": "gzip" }),
      status: 415,
      exact: true,
      body: error("unsupported_media_type"),
    },
    "no key, before anything is said of the body": {
      section: "rules 3",
      request: ({ server: { request } }) => request("POST", "/v1/ingest", { body: "no json" }),
      status: 401,
      exact: true,
      body: error("unauthenticated"),
      headers: { "www-authenticate": "Bearer" },
    },
    "a session token": {
      section: "spec: Authentication",
      request: ({ server: app, tenant }) => ingestRaw(app, tenant.jwt, '{"payload":{}}'),
      status: 401,
      exact: true,
      body: error("unauthenticated"),
      never: ({ tenant }) => [tenant.id, tenant.jwt],
    },
    "an unknown key of the right form": {
      section: "spec: Authentication",
      request: ({ server: app }) => ingestRaw(app, `svc_sk_${"0".repeat(40)}`, '{"payload":{}}'),
      status: 401,
      body: error("unauthenticated"),
    },
    "the size before the type, and the type before the content": {
      section: "rules 3",
      request: ({ other }) => other.ingest({ a: "x".repeat(maxBody) }, { "Content-Type": "text/plain" }),
      status: 413,
    },
    "an account that the operator has suspended": {
      section: "rules 4",
      async given({ server: { request, operatorToken }, other }) {
        await request("POST", `/operator/tenants/${other.id}/suspend`, { token: operatorToken });
      },
      request: ({ other }) => other.ingest({}),
      status: 403,
      exact: true,
      body: error("account_suspended"),
      async then({ server: { request, operatorToken }, other }) {
        await request("POST", `/operator/tenants/${other.id}/resume`, { token: operatorToken });
        expect((await other.get("/v1/events")).body.total).toBe(0);
      },
    },
    "an account whose card is not verified": {
      section: "rules 4",
      async request({ server: app }) {
        const { apiKey } = await seedTenant(app, { tier: "pro", enforcedTier: null });
        return ingestRaw(app, apiKey, '{"payload":{}}');
      },
      status: 402,
      exact: true,
      body: { message: expect.stringContaining("ask the operator of this server"), code: "card_not_verified" },
    },
    "an account that is suspended for payment": {
      section: "rules 4",
      async request({ server: app }) {
        const { tenant, apiKey } = await seedTenant(app, { tier: "pro" });
        await app.app.store.suspend(tenant.key, "payment", Date.now());
        return ingestRaw(app, apiKey, '{"payload":{}}');
      },
      status: 402,
      exact: true,
      body: error("account_suspended"),
    },
  });
});
