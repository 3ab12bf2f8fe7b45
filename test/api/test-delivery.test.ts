// biome-ignore-all lint/suspicious/noThenProperty: rows of a scenario table have one
import { afterAll, beforeAll, expect } from "bun:test";
import nacl from "tweetnacl";
import { closedPort, createTravelClock, type Hook, type Hooks, isoPattern, startHooks } from "../support/api-server.ts";
import { startNameServer } from "../support/name-server.ts";
import type { TestAccount, TestApp } from "../support/test-app.ts";
import { scenarios, useServer } from "./scenario.ts";

/** Rules, section 9: the test event of a webhook. */

const { any, stringMatching } = expect;

interface World {
  server: TestApp;
  /** Business: two webhooks. */
  ada: TestAccount;
  eve: TestAccount;
}

const clock = createTravelClock();
const nobodysPort = await closedPort();
const names = await startNameServer((name, type) =>
  name === "inside.example" && type === "A" ? ["127.0.0.1"] : "NXDOMAIN",
);
const server = useServer({ clock, env: { POSTRIDER_DNS_SERVERS: names.address } });
let ada: TestAccount;
let eve: TestAccount;
let hooks: Hooks;

beforeAll(async () => {
  hooks = await startHooks();
  ada = await server().account();
  await ada.setTier("business");
  eve = await server().account();
});
afterAll(() => {
  hooks.stop();
  names.close();
});

const world = (): World => ({ server: server(), ada, eve });

const put = (account: TestAccount, body: unknown) => account.put("/v1/tenants/webhooks", body);

const list = async (account: TestAccount): Promise<{ id: string }[]> =>
  (await account.get("/v1/tenants/webhooks")).body;

let hook: Hook;
let hookId: string;

const attempt = {
  ...{ eventId: stringMatching(/^evt_/), number: 1, startedAt: stringMatching(isoPattern), durationMs: any(Number) },
  replayGroupId: null,
};
const testOf = (account: TestAccount, id: string, body?: string) =>
  account.post(`/v1/tenants/webhooks/${id}/test`, body);

scenarios<World>("POST /v1/tenants/webhooks/{id}/test", world, {
  "sends one signed event and answers with the attempt": {
    section: "rules 9",
    async given({ ada }) {
      hook = hooks.hook((response) => response.writeHead(201).end("thank you"));
      await put(ada, [{ webhook_url: hook.url }, { webhook_url: `http://127.0.0.1:${nobodysPort}/` }]);
      hookId = (await list(ada))[0]?.id ?? "";
    },
    request: ({ ada }) => testOf(ada, hookId),
    status: 200,
    exact: true,
    body: () => ({
      ...attempt,
      targetWebhook: hook.url,
      statusCode: 201,
      error: null,
      errorCode: null,
      responseBody: "thank you",
    }),
    async then({ server, ada }) {
      const [request] = await hook.whenReceived(1);
      const { keys } = (await server.request("GET", `/v1/tenants/${ada.id}/jwks.json`)).body;
      const signature = Buffer.from(String(request?.headers["service-signature"]), "base64");
      const isGenuine = nacl.sign.detached.verify(
        request?.body ?? Buffer.alloc(0),
        signature,
        Buffer.from(keys[0].x, "base64url"),
      );
      expect([hook.received.length, request?.headers["service-key-id"], isGenuine]).toEqual([1, keys[0].kid, true]);
      expect(JSON.parse(request?.text ?? "")).toMatchObject({ tenantId: ada.id, payload: any(Object) });
      expect((await ada.get("/v1/events")).body).toEqual({ events: [], total: 0, totalEvents: 0 });
    },
  },
  "sends a payload of one's own as the very bytes that came": {
    section: "rules 9",
    async given({ ada }) {
      await put(ada, [{ webhook_url: hook.url, event_types: ["order.*"] }]);
    },
    request: ({ ada }) => testOf(ada, hookId, '{"payload": {"n":1.0, "type":"order.paid","n":12345678901234567890}}'),
    status: 200,
    body: { statusCode: 201, eventType: "order.paid", typeIsTaken: true },
    async then() {
      const [, request] = await hook.whenReceived(2);
      expect(request?.text).toEndWith(',"payload":{"n":1.0, "type":"order.paid","n":12345678901234567890}}');
    },
  },
  "says when the webhook does not take such an event, and sends it all the same": {
    section: "rules 9",
    request: ({ ada }) => testOf(ada, hookId, '{"payload":{"type":"order.paid"},"event_type":"invoice.paid"}'),
    status: 200,
    body: { statusCode: 201, eventType: "invoice.paid", typeIsTaken: false },
    async then({ ada }) {
      await hook.whenReceived(3);
      await put(ada, [
        { webhook_url: hook.url, event_types: null },
        { webhook_url: `http://127.0.0.1:${nobodysPort}/` },
      ]);
    },
  },
  ...Object.fromEntries(
    (
      [
        ["no payload", '{"event_type":"order.paid"}', "payload_required"],
        ["a type that is ours", '{"payload":{},"event_type":"postrider.test"}', "event_type_reserved"],
        ["what is no JSON", '{"payload":{"n":01}}', "invalid_json"],
      ] as const
    ).map(([name, body, code]) => [
      `with ${name}, as ingestion refuses it`,
      {
        section: "rules 9",
        request: ({ ada }: World) => testOf(ada, hookId, body),
        status: 400,
        body: { code },
        then: () => expect(hook.received).toHaveLength(3),
      },
    ]),
  ),
  "a failed attempt is an answer, too": {
    section: "rules 9",
    async given() {
      hook.answer = 503;
    },
    // An empty object is no payload.
    request: ({ ada }) => testOf(ada, hookId, " {} "),
    status: 200,
    exact: true,
    body: () => ({
      ...attempt,
      targetWebhook: hook.url,
      statusCode: 503,
      error: `HTTP 503 from ${hook.url}`,
      errorCode: "http_status",
      responseBody: "",
      responseHeaders: any(Array),
      address: "127.0.0.1",
    }),
    then: () => expect(hook.received).toHaveLength(4),
  },
  "of a webhook that nobody serves": {
    section: "rules 9",
    request: async ({ ada }) => testOf(ada, (await list(ada))[1]?.id ?? ""),
    status: 200,
    exact: true,
    body: {
      ...attempt,
      targetWebhook: `http://127.0.0.1:${nobodysPort}/`,
      statusCode: null,
      error: `Connection refused by http://127.0.0.1:${nobodysPort}/`,
      errorCode: "connection_refused",
      responseBody: "",
    },
  },
  "of a public name that resolves to loopback, which is found out as it is dialled": {
    section: "rules 1",
    async given({ ada }) {
      await put(ada, [{ webhook_url: hook.url }, { webhook_url: "https://inside.example/" }]);
    },
    request: async ({ ada }) => testOf(ada, (await list(ada))[1]?.id ?? ""),
    status: 200,
    exact: true,
    body: {
      ...attempt,
      targetWebhook: "https://inside.example/",
      statusCode: null,
      error: "The address of https://inside.example/ is not public",
      errorCode: "address_not_public",
      responseBody: "",
    },
    never: () => ["127.0.0.1"],
  },
  "another tenant's webhook is not found": {
    section: "spec: Authentication",
    request: ({ eve }) => testOf(eve, hookId),
    status: 404,
    exact: true,
    body: { message: any(String), code: "webhook_not_found" },
    never: ({ ada }) => [ada.id, hook.url, hookId],
  },
  "an unknown webhook": {
    section: "spec: Errors",
    request: ({ eve }) => testOf(eve, "wh_00000000000000000000000000"),
    status: 404,
    exact: true,
    body: { message: any(String), code: "webhook_not_found" },
  },
  "of an account that is deleted before the webhook answers, which breaks it off": {
    section: "rules 4",
    async request({ server }) {
      const leaving = await server.account();
      let isClosed = new Promise<void>(() => {});
      const silent = hooks.hook((response) => {
        isClosed = new Promise((resolve) => response.on("close", resolve));
      });
      await put(leaving, [{ webhook_url: silent.url }]);
      const testing = testOf(leaving, (await list(leaving))[0]?.id ?? "");
      await silent.whenReceived(1);
      expect((await leaving.delete("/v1/tenants")).status).toBe(204);
      await isClosed;
      return testing;
    },
    status: 401,
    exact: true,
    body: { message: any(String), code: "account_gone" },
  },
  "the eleventh within a minute": {
    section: "rules 3",
    given: ({ eve }) => Promise.all(Array.from({ length: 8 }, () => testOf(eve, "wh_0"))),
    request: ({ eve }) => testOf(eve, "wh_0"),
    status: 429,
    exact: true,
    body: { message: any(String), code: "too_many_tests" },
    headers: { "Retry-After": /^(60|[1-5]?[0-9])$/ },
    async then({ eve, ada }, { headers }) {
      expect((await testOf(ada, hookId)).status).toBe(200);
      clock.travel(Number(headers.get("Retry-After")) * 1000);
      expect((await testOf(eve, "wh_0")).status).toBe(404);
    },
  },
});
