// biome-ignore-all lint/suspicious/noThenProperty: rows of a scenario table have one
import { afterAll, beforeAll, describe, expect } from "bun:test";
import {
  batchOf,
  gate,
  type Hook,
  type Hooks,
  ingestOne,
  ingestRaw,
  isoPattern,
  type RecordBody,
  register,
  startHooks,
  until,
} from "../support/api-server.ts";
import type { TestAccount, TestApp } from "../support/test-app.ts";
import { type Scenario, scenarios, useServer } from "./scenario.ts";

interface World {
  server: TestApp;
  /** Three webhooks: one acknowledges, one refuses, one never answers. Five events, n = 0 to 4. */
  tenant: TestAccount;
  eventIds: string[];
  good: Hook;
  bad: Hook;
  stuck: Hook;
  /** 25 events and no webhook. */
  other: TestAccount;
  otherEventId: string;
  busy: TestAccount;
}

let world: World;
let hooks: Hooks;
const held = gate();
// Before the server's own: it waits for what is in flight.
afterAll(() => {
  held.open();
  hooks.stop();
});
const server = useServer();

beforeAll(async () => {
  hooks = await startHooks();
  const refuse = hooks.hook((response) => void response.writeHead(404).end("x".repeat(5000)));
  const [tenant, other, busy] = await Promise.all([server().account(), server().account(), server().account()]);
  await tenant.setTier("enterprise");
  await busy.setTier("enterprise");
  const [good, stuck] = [hooks.hook(), hooks.hook(held.answer)];
  await register(tenant, good.url, refuse.url, stuck.url);
  const eventIds: string[] = [];
  for (let n = 0; n < 5; n += 1) eventIds.push(await ingestOne(tenant, { n, secret: "payload-of-tenant" }));
  await batchOf(server(), other, 24);
  const otherEventId = await ingestOne(other, { secret: "payload-of-other" });
  await until(
    async () => (await tenant.get("/v1/events/state/PENDING")).body.total,
    (pending) => pending === 5,
  );
  await stuck.whenReceived(5);
  world = { server: server(), tenant, eventIds, good, bad: refuse, stuck, other, otherEventId, busy };
});
const error = (code: string) => ({ message: expect.stringMatching(/^\S.{10,}\.$/), code });
const neverOfOthers = ({ other, otherEventId }: World) => [other.id, otherEventId, "payload-of-other"];
const neverOfTenant = ({ tenant }: World) => [tenant.id, "payload-of-tenant"];

const outcomes = (events: RecordBody[]) => events.map((e) => [(e.originalPayload as { n: number }).n, e.state]);
const states = ["DELIVERED", "FAILED", "PENDING"];

const badQueries = ["size=0", "size=1001", "size=-1", "size=1.5", "size=ten", "size=", "page=-1", "page=0.5", "page=x"];
const badRanges = [
  "q=",
  `q=${"x".repeat(201)}`,
  "type=",
  `type=${"x".repeat(201)}`,
  "status=99",
  "status=1000",
  "status=4xx",
  "from=yesterday",
  "to=2026-02-30",
  "from=2026-01-02&to=2026-01-01",
  "from=2026-01-01T25:00Z",
];

const refusedQueries = (path: string) =>
  Object.fromEntries(
    [...badQueries, ...badRanges].map((query): [string, Scenario<World>] => [
      `?${query}`,
      {
        section: "rules 7",
        request: ({ tenant }) => tenant.get(`${path}?${query}`),
        status: 400,
        exact: true,
        body: error("invalid_request"),
      },
    ]),
  );

describe("the list", () => {
  scenarios("GET /v1/events", () => world, {
    "newest ingestion first, those of one event in the order of the webhooks": {
      section: "spec: Events",
      request: ({ tenant }) => tenant.get("/v1/events"),
      status: 200,
      never: neverOfOthers,
      then(_, { body }) {
        expect(Object.keys(body)).toEqual(["events", "total", "totalEvents"]);
        expect([body.total, body.totalEvents]).toEqual([15, 5]);
        expect(outcomes(body.events)).toEqual([4, 3, 2, 1, 0].flatMap((n) => states.map((state) => [n, state])));
      },
    },
    "a record has the specified fields first, then ours": {
      section: "spec: Event record",
      request: ({ tenant }) => tenant.get("/v1/events?size=3"),
      status: 200,
      then({ tenant, eventIds, good, bad, stuck }, { body }) {
        const common = {
          eventId: eventIds[4],
          tenantId: tenant.id,
          ingestionTimestamp: expect.stringMatching(isoPattern),
          originalPayload: { n: 4, secret: "payload-of-tenant" },
          eventType: null,
          replayGroupId: null,
        };
        const time = expect.stringMatching(isoPattern);
        const none = { errorReason: null, errorCode: null, statusCode: null };
        const refused = { errorReason: `HTTP 404 from ${bad.url}`, errorCode: "http_status", statusCode: 404 };
        const ended = { attempts: 1, lastAttemptAt: time, lastDurationMs: expect.any(Number), nextAttemptAt: null };
        expect(Object.keys(body.events[0]).join()).toBe(
          "eventId,tenantId,state,ingestionTimestamp,targetWebhook,errorReason,originalPayload,attempts,lastAttemptAt,lastDurationMs,nextAttemptAt,errorCode,statusCode,eventType,replayGroupId",
        );
        expect(body.events).toEqual([
          { ...common, ...ended, state: "DELIVERED", targetWebhook: good.url, ...none },
          { ...common, ...ended, state: "FAILED", targetWebhook: bad.url, ...refused },
          {
            ...common,
            state: "PENDING",
            targetWebhook: stuck.url,
            ...none,
            attempts: 0,
            lastAttemptAt: null,
            lastDurationMs: null,
            nextAttemptAt: time,
          },
        ]);
      },
    },
    "20 records a page, from page 0, when nothing is said": {
      section: "spec: Limits",
      request: ({ other }) => other.get("/v1/events"),
      status: 200,
      never: neverOfTenant,
      async then({ other }, { body }) {
        expect([body.events.length, body.total]).toEqual([20, 25]);
        expect((await other.get("/v1/events?page=0&size=20")).body).toEqual(body);
        const second = (await other.get("/v1/events?page=1")).body;
        expect([second.events.length, second.total]).toEqual([5, 25]);
        const ids = [...body.events, ...second.events].map(({ eventId }: RecordBody) => eventId);
        expect(ids).toEqual([...new Set(ids)].sort().reverse());
      },
    },
    "a page behind the last one is empty": {
      section: "spec: Events",
      request: ({ tenant }) => tenant.get("/v1/events?page=99999999999999999999&size=1000"),
      status: 200,
      exact: true,
      body: { events: [], total: 15, totalEvents: 5 },
    },
    "a page cuts through the records of an event": {
      section: "rules 7",
      request: ({ tenant }) => tenant.get("/v1/events?page=1&size=4"),
      status: 200,
      then: (_, { body }) =>
        expect(outcomes(body.events)).toEqual([
          [3, "FAILED"],
          [3, "PENDING"],
          [2, "DELIVERED"],
          [2, "FAILED"],
        ]),
    },
    "1,000 a page at most": {
      section: "spec: Limits",
      given: ({ server: app, busy }) => batchOf(app, busy, 1000).then(() => batchOf(app, busy, 1000)),
      request: ({ busy }) => busy.get("/v1/events?size=1000"),
      status: 200,
      then: (_, { body }) => expect([body.events.length, body.total]).toEqual([1000, 2000]),
    },
    "a filtered total is counted to 10,000, an unfiltered one to its end": {
      section: "rules 7",
      async given({ server: app, busy }) {
        for (let i = 0; i < 9; i += 1) await batchOf(app, busy, 1000);
      },
      request: ({ busy }) => busy.get("/v1/events?size=1&from=2020-01-01"),
      status: 200,
      async then({ busy }, { body }) {
        expect({ ...body, events: body.events.length }).toEqual({ events: 1, total: 10_000, totalIsExact: false });
        const all = (await busy.get("/v1/events?size=1&page=10500")).body;
        expect({ ...all, events: all.events.length }).toEqual({ events: 1, total: 11_000, totalEvents: 11_000 });
      },
    },
    "only a webhook's records, by its URL or id": {
      section: "rules 7",
      request: ({ tenant, bad }) => tenant.get(`/v1/events?webhook=${encodeURIComponent(bad.url)}`),
      status: 200,
      async then({ tenant, bad }, { body }) {
        expect(outcomes(body.events)).toEqual([4, 3, 2, 1, 0].map((n) => [n, "FAILED"]));
        expect([body.total, body.totalIsExact]).toEqual([5, true]);
        const { body: webhooks } = await tenant.get("/v1/tenants/webhooks");
        const { id } = webhooks.find(({ url }: { url: string }) => url === bad.url);
        expect((await tenant.get(`/v1/events?webhook=${id}`)).body).toEqual(body);
      },
    },
    "only events of a type, also of one webhook": {
      section: "rules 7",
      async given({ server: app, busy, good }) {
        await register(busy, good.url);
        await ingestRaw(app, busy.apiKey, '{"event_type":"order.paid","payload":{"n":1}}');
        await ingestRaw(app, busy.apiKey, '{"payload":{"n":2,"type":"order"}}');
      },
      request: ({ busy, good }) =>
        busy.get(`/v1/events?type=order.paid&webhook=${encodeURIComponent(good.url)}&from=2020-01-01`),
      status: 200,
      async then({ busy }, { body }) {
        expect(body).toMatchObject({ events: [{ originalPayload: { n: 1 } }], total: 1, totalIsExact: true });
        const { body: others } = await busy.get("/v1/events?type=order");
        expect(others.events).toMatchObject([{ originalPayload: { n: 2 }, eventType: "order" }]);
        expect((await busy.get("/v1/events?type=Order")).body.total).toBe(0);
      },
    },
    "only the failures with a code or a status, together with the other filters": {
      section: "rules 15",
      request: ({ tenant }) => tenant.get("/v1/events?code=http_status"),
      status: 200,
      never: neverOfOthers,
      async then({ tenant, good, bad }, { body }) {
        expect(outcomes(body.events)).toEqual([4, 3, 2, 1, 0].map((n) => [n, "FAILED"]));
        expect([body.total, body.totalIsExact]).toEqual([5, true]);
        const found = async (query: string) => (await tenant.get(`/v1/events${query}`)).body;
        const at = (hook: Hook) => `webhook=${encodeURIComponent(hook.url)}`;
        expect(await found("?status=404")).toEqual(body);
        expect(await found(`?status=404&code=http_status&${at(bad)}&from=2020-01-01`)).toEqual(body);
        expect(await found("/state/FAILED?status=404")).toEqual(body);
        expect(await found("?state=FAILED&status=404")).toEqual(body);
        const none = { events: [], total: 0, totalIsExact: true };
        for (const query of [
          "?status=500",
          "?code=timeout",
          "?code=timeout&status=404",
          "/state/DELIVERED?status=404",
          "/state/PENDING?status=404",
          "?state=PENDING&status=404",
          `?status=404&${at(good)}`,
          "?status=404&to=2020-01-01",
          "?status=404&type=order.paid",
        ]) {
          expect([query, await found(query)]).toEqual([query, none]);
        }
      },
    },
    "only what a replay began, together with the other filters": {
      section: "rules 15",
      async request({ server, good }) {
        const account = await server.account();
        await register(account, good.url);
        const [first] = [await ingestOne(account, { n: 1 }), await ingestOne(account, { n: 2 })];
        const replay = { eventId: first, replayGroupId: "again" };
        const { headers } = await account.post("/v1/events/replays/single", replay);
        const id = headers.get("location")?.split("/").at(-1);
        const { body: none } = await account.get(`/v1/events?replay=${id}&type=order.paid`);
        expect([none.events, none.total]).toEqual([[], 0]);
        return account.get(`/v1/events?replay=${id}`);
      },
      status: 200,
      then: (_, { body }) =>
        expect(body).toMatchObject({
          ...{ events: [{ originalPayload: { n: 1 }, replayGroupId: "again" }], total: 1, totalIsExact: true },
        }),
    },
    "only events with a text in the payload, or in the id": {
      section: "rules 15",
      request: ({ tenant }) => tenant.get(`/v1/events?q=${encodeURIComponent('"n":3')}`),
      status: 200,
      never: neverOfOthers,
      async then({ tenant, eventIds, bad }, { body }) {
        expect(outcomes(body.events)).toEqual(states.map((state) => [3, state]));
        expect(body).toMatchObject({ total: 3, totalIsExact: true, searchedTo: null });
        expect((await tenant.get(`/v1/events?q=${eventIds[3]}`)).body).toEqual(body);
        const webhook = encodeURIComponent(bad.url);
        const { body: both } = await tenant.get(`/v1/events?q=payload-of&status=404&webhook=${webhook}&size=2`);
        expect(outcomes(both.events)).toEqual([4, 3].map((n) => [n, "FAILED"]));
        expect((await tenant.get("/v1/events?q=nowhere")).body).toMatchObject({ events: [], total: 0 });
      },
    },
    "a code that does not exist": {
      section: "rules 15",
      request: ({ tenant }) => tenant.get("/v1/events?code=teapot"),
      status: 400,
      body: { message: expect.stringMatching(/^code must be one of http_status, timeout, /), code: "invalid_request" },
    },
    "an event that no webhook takes": {
      section: "rules 14",
      async given({ server: app, busy, good }) {
        const entry = { webhook_url: good.url, event_types: ["order.*"] };
        expect((await busy.put("/v1/tenants/webhooks", [entry])).status).toBe(200);
        await ingestRaw(app, busy.apiKey, '{"event_type":"login","payload":{}}');
        await ingestRaw(app, busy.apiKey, '{"event_type":"order.new","payload":{"n":9}}');
      },
      request: ({ busy }) => busy.get("/v1/events/state/SKIPPED"),
      status: 200,
      async then({ busy, good }, { body }) {
        const skipped = { state: "SKIPPED", targetWebhook: "", eventType: "login", attempts: 0, nextAttemptAt: null };
        expect(body).toMatchObject({ events: [{ ...skipped, errorReason: null, errorCode: null }], total: 1 });
        expect((await busy.get("/v1/events?type=order.new")).body.events).toMatchObject([{ targetWebhook: good.url }]);
      },
    },
    "another account's webhook has no records": {
      section: "spec: Authentication",
      request: ({ other, bad }) => other.get(`/v1/events?webhook=${encodeURIComponent(bad.url)}`),
      status: 200,
      exact: true,
      body: { events: [], total: 0, totalIsExact: true },
    },
    "a range of ingestion times, both ends inclusive": {
      section: "rules 7",
      async request({ tenant, eventIds }) {
        const at = async (id = "") => (await tenant.get(`/v1/events/${id}`)).body[0].ingestionTimestamp;
        return tenant.get(`/v1/events?from=${await at(eventIds[1])}&to=${await at(eventIds[3])}`);
      },
      status: 200,
      then(_, { body }) {
        const found = new Set(outcomes(body.events).map(([n]) => n));
        expect([found.has(1), found.has(2), found.has(3), body.totalIsExact]).toEqual([true, true, true, true]);
      },
    },
    "a date alone is its first or last millisecond": {
      section: "rules 2",
      request({ tenant }) {
        const today = new Date().toISOString().slice(0, 10);
        return tenant.get(`/v1/events?from=${today}&to=${today}`);
      },
      status: 200,
      then: (_, { body }) => expect(body.total).toBe(15),
    },
    ...refusedQueries("/v1/events"),
    "an API key": {
      section: "spec: Authentication",
      request: ({ server: { request }, tenant }) => request("GET", "/v1/events", { token: tenant.apiKey }),
      status: 401,
      exact: true,
      body: error("unauthenticated"),
      never: neverOfTenant,
    },
  });
});

describe("the list by state", () => {
  scenarios("GET /v1/events/state/{state}", () => world, {
    ...Object.fromEntries(
      states.map((state): [string, Scenario<World>] => [
        state,
        {
          section: "spec: Event state values",
          request: ({ tenant }) => tenant.get(`/v1/events/state/${state}`),
          status: 200,
          never: neverOfOthers,
          async then({ tenant }, { body }) {
            expect([outcomes(body.events), body.total]).toEqual([[4, 3, 2, 1, 0].map((n) => [n, state]), 5]);
            expect((await tenant.get(`/v1/events?state=${state}`)).body).toEqual(body);
          },
        },
      ]),
    ),
    "it takes page and size": {
      section: "spec: Events",
      request: ({ tenant }) => tenant.get("/v1/events/state/FAILED?page=1&size=2"),
      status: 200,
      then: (_, { body }) => expect([outcomes(body.events).join(), body.total]).toEqual(["2,FAILED,1,FAILED", 5]),
    },
    "it takes the filters too": {
      section: "rules 7",
      request: ({ tenant, good }) => tenant.get(`/v1/events/state/FAILED?webhook=${encodeURIComponent(good.url)}`),
      status: 200,
      exact: true,
      body: { events: [], total: 0, totalIsExact: true },
    },
    ...Object.fromEntries(
      ["/state/delivered", "/state/UNKNOWN", "?state=delivered"].map((path): [string, Scenario<World>] => [
        `a state that is none: ${path}`,
        {
          section: "rules 7",
          request: ({ tenant }) => tenant.get(`/v1/events${path}`),
          status: 400,
          exact: true,
          body: { message: "state must be DELIVERED, FAILED, PENDING or SKIPPED.", code: "invalid_request" },
        },
      ]),
    ),
    ...refusedQueries("/v1/events/state/FAILED"),
  });
});

/** An id of the right form that nobody has, ids of the wrong form, and one of another account: all alike. */
const notFound = (path: string) =>
  Object.fromEntries(
    [
      ["an unknown id", () => `evt_${"0".repeat(10)}7000800000000000`],
      ["no id at all", () => "x"],
      ["an id in upper case", ({ eventIds }: World) => `evt_${(eventIds[0] ?? "").slice(4).toUpperCase()}`],
      ["another account's event", ({ otherEventId }: World) => otherEventId],
    ].map(([what, id]): [string, Scenario<World>] => [
      `${what}`,
      {
        section: "spec: Errors",
        request: (current) => current.tenant.get(`/v1/events/${(id as (w: World) => string)(current)}${path}`),
        status: 404,
        exact: true,
        body: { message: "The account has no event with this id.", code: "event_not_found" },
        never: neverOfOthers,
      },
    ]),
  );

describe("one event", () => {
  scenarios("GET /v1/events/{id}", () => world, {
    "all its records, in the order of the webhooks": {
      section: "spec: Events",
      request: ({ tenant, eventIds }) => tenant.get(`/v1/events/${eventIds[2]}`),
      status: 200,
      never: neverOfOthers,
      then: (_, { body }) => expect(outcomes(body)).toEqual(states.map((state) => [2, state])),
    },
    "without a webhook it has one record that says so": {
      section: "rules 7",
      request: ({ other, otherEventId }) => other.get(`/v1/events/${otherEventId}`),
      status: 200,
      then({ other, otherEventId }, { body }) {
        expect(body).toEqual([
          {
            eventId: otherEventId,
            tenantId: other.id,
            state: "FAILED",
            ingestionTimestamp: expect.stringMatching(isoPattern),
            targetWebhook: "",
            errorReason: "No webhook was registered when the event arrived",
            errorCode: "no_webhook",
            statusCode: null,
            eventType: null,
            originalPayload: { secret: "payload-of-other" },
            attempts: 0,
            lastAttemptAt: null,
            lastDurationMs: null,
            nextAttemptAt: null,
            replayGroupId: null,
          },
        ]);
      },
    },
    ...notFound(""),
  });

  scenarios("GET /v1/events/{id}/attempts", () => world, {
    "an event without a webhook has none": {
      section: "rules 7",
      request: ({ other, otherEventId }) => other.get(`/v1/events/${otherEventId}/attempts`),
      status: 200,
      exact: true,
      body: [],
      headers: { "total-count": "0" },
    },
    "a size above 1,000 is refused": {
      section: "rules 15",
      request: ({ other, otherEventId }) => other.get(`/v1/events/${otherEventId}/attempts?size=1001`),
      status: 400,
      body: { message: "size must be at most 1000." },
    },
    ...notFound("/attempts"),
  });

  scenarios("GET /v1/events/{id}/delivery", () => world, {
    ...notFound("/delivery"),
  });
});
