import { beforeAll, describe, expect, test } from "bun:test";
import * as v from "valibot";
import { invalidField } from "../../src/domain/errors.ts";
import type { Schema } from "../../src/http/endpoint.ts";
import { errorResponse } from "../../src/http/errors.ts";
import { ingestOne } from "../support/api-server.ts";
import type { Answer, TestAccount } from "../support/test-app.ts";
import { type Call, exactRequests } from "./exact-request.ts";
import { useServer } from "./scenario.ts";

/** Rules, section 3: what an error says of the field that is to blame. */

const { stringMatching } = expect;

const server = useServer();
const send = exactRequests(server);
let ada: TestAccount;
let eventId: string;

beforeAll(async () => {
  ada = await server().account();
  eventId = await ingestOne(ada);
});

const kib64 = 65_536;
const putHooks = (call: Call) => send("PUT", "/v1/tenants/webhooks", { token: ada.jwt, ...call });

describe("a field that is nearly one of the request's", () => {
  const webhook = { webhook_url: "https://example.com/hook" };
  const rows: [method: "POST" | "PUT", path: string, body: unknown, field: string, meant: string][] = [
    ["POST", "/v1/tenants/api-keys/rotate", { grace_period: 60 }, "grace_period", "grace_period_seconds"],
    ["POST", "/v1/tenants/signing-keys/rotate", { activateAfter: 60 }, "activateAfter", "activate_after_seconds"],
    ["PUT", "/v1/tenants/webhooks", [webhook, { ...webhook, eventTypes: [] }], "[1].eventTypes", "event_types"],
    ["PUT", "/v1/tenants/webhooks", [{ ...webhook, "rate-limit": 5 }], "[0].rate-limit", "rate_limit"],
    ["PUT", "/v1/tenants/webhooks", [{ ...webhook, orderd: true }], "[0].orderd", "ordered"],
    ["PUT", "/v1/tenants/webhooks", [{ ...webhook, types: ["order.*"] }], "[0].types", "event_types"],
    ["PUT", "/v1/inbox/answer", { statuss: 503 }, "statuss", "status"],
    ["PUT", "/v1/inbox/answer", { status: 503, Delay: 1 }, "Delay", "delay_ms"],
    ["POST", "/v1/tenants", { Tier: "pro" }, "Tier", "tier"],
    ["POST", "/v1/tenants", { webhooks: [{ ...webhook, pause: true }] }, "webhooks[0].pause", "paused"],
    ["POST", "/v1/tenants/upgrade", { tier: "pro", mail: "a@example.com" }, "mail", "email"],
    ["POST", "/v1/tenants/auth/logout", { al: true }, "al", "all"],
  ];
  test.each(rows)("is refused: %s %s %j", async (method, path, body, field, meant) => {
    const { jwt: token } = ada;
    const keys = (await ada.get("/v1/tenants/api-keys")).body;
    const answer = await send(method, path, { token, body: JSON.stringify(body) });
    expect({ status: answer.status, body: answer.body }).toEqual({
      status: 400,
      body: { message: `${field} is not a field of this request; perhaps ${meant} is meant.`, code: "invalid_request" },
    });
    expect(answer.headers.get("error-field")).toBe(field);
    expect((await ada.get("/v1/tenants/api-keys")).body).toEqual(keys);
  });

  test("is not looked for behind many that are not", async () => {
    const others = Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`other_${i}`, i]));
    const body = (fields: object) => JSON.stringify({ ...fields, statuss: 503 });
    expect((await send("PUT", "/v1/inbox/answer", { token: ada.jwt, body: body(others) })).status).toBe(200);
  });

  test("is never a field of the examples, or one that a response of the same kind has", () => {
    const endpoints = server().app.endpoints.filter(({ path }) => path !== "/v1/about"); // which is no account's
    const taking = endpoints.filter(({ body, path }) => typeof body === "object" && !path.includes("/replays"));
    expect(taking.length).toBeGreaterThan(15);
    const refused = taking.flatMap(({ method, path, tag, body, bodyExample = {} }) => {
      const examples = endpoints
        .filter((other) => other.tag === tag)
        .flatMap(({ responses }) => Object.values(responses));
      const returned = examples.flatMap(({ example }) => (Array.isArray(example) ? example : [example]));
      const entries = Array.isArray(bodyExample) ? bodyExample : [bodyExample];
      const sent = entries.map((entry) => ({ ...Object.assign({}, ...returned), ...entry }));
      const { issues = [] } = v.safeParse(body as Schema, Array.isArray(bodyExample) ? sent : sent[0]);
      const misspelt = issues.filter(({ message }) => message.startsWith("is not a field"));
      return misspelt.map(({ message, path: at }) => `${method} ${path}: ${at?.at(-1)?.key} ${message}`);
    });
    expect(refused).toEqual([]);
  });
});

describe("a parameter that is not one, in the query of a list", () => {
  test.each([
    ["/v1/events?statuss=500", "statuss is not a parameter of this request; perhaps status is meant."],
    ["/v1/events?stat=FAILED", "stat is not a parameter of this request; perhaps state is meant."],
    ["/v1/events/state/FAILED?state=FAILED", "state belongs in the path alone; leave it out of the query."],
    ["/v1/events/state/FAILED?eventType=a", /^eventType is not a parameter of this request; the parameters are page, /],
    ["/v1/events/replays?status=running", /; the parameters are page, size\.$/],
    ["/v1/failures?webhok=wh_1", /; perhaps webhook is meant\.$/],
    ["/v1/stats?buckets=1h", /; perhaps bucket is meant\.$/],
    ["/v1/audit?actions=login.failed", /; perhaps action is meant\.$/],
    ["/v1/tenants/webhooks?expanded=true", /; perhaps expand is meant\.$/],
  ])("GET %s says what is meant", async (path, message) => {
    expect(await ada.get(path)).toMatchObject({
      status: 400,
      body: { message: stringMatching(message), code: "invalid_request" },
    });
  });

  test("is 400 wherever there are parameters, on all but the pages that the payment processor returns to", async () => {
    const { app, operatorToken } = server();
    const lists = app.endpoints.filter(
      ({ method, query, path }) => method === "GET" && query && !path.startsWith("/pay/"),
    );
    expect(lists.length).toBeGreaterThan(9);
    for (const { method, path, access } of lists) {
      const token = access === "operator" ? operatorToken : ada.jwt;
      const answer = await send(method, `${path.replace(":state", "FAILED")}?no%20such=1`, { token });
      const { status, headers } = answer;
      expect([path, status, headers.get("Error-Field")]).toEqual([path, 400, "no such"]);
    }
  });

  test("is ignored where there are none", async () => {
    expect((await ada.get(`/v1/events/${eventId}?_=1`)).status).toBe(200);
  });
});

describe("the field that is to blame stands in a header, with its rule", () => {
  const kept = "Wr0ng#Password";
  const named: Record<string, [request: () => Promise<Answer>, field: string, rule: RegExp]> = {
    "of the body": [() => send("POST", "/v1/tenants", { body: '{"name":7}' }), "name", /^must be a string$/],
    "in an entry of a list": [
      () => putHooks({ body: '[{"webhook_url":"http://shop.example"}]' }),
      "[0].webhook_url",
      /^must start with "https:\/\/"/,
    ],
    "in a list that is a field": [
      () => send("POST", "/v1/tenants", { body: '{"webhooks":[{"webhook_url":"https://a.example","name":7}]}' }),
      "webhooks[0].name",
      /^must be a string$/,
    ],
    "found out by the handler": [
      () =>
        send("PUT", "/v1/tenants/password", {
          token: ada.jwt,
          body: JSON.stringify({ current_password: kept, new_password: "N3w+Password" }),
        }),
      "current_password",
      /^is not the password of this account$/,
    ],
    "of the query": [() => ada.get("/v1/events?size=0"), "size", /^must be at least 1$/],
    "that depends on another one": [
      () => send("POST", "/v1/events/replays/preview", { token: ada.jwt, body: '{"kind":"single"}' }),
      "eventId",
      /^is required for the kind "single"$/,
    ],
    "of an event": [() => send("POST", "/v1/ingest", { token: ada.apiKey, body: "{}" }), "payload", /^is required$/],
    "of a batch": [
      () => send("POST", "/v1/ingest/batch", { token: ada.apiKey, body: '{"events":[{"payload":[]}]}' }),
      "events[0].payload",
      /^must be a JSON object$/,
    ],
    "of the request's head": [() => ada.ingest({}, { "Idempotency-Key": "" }), "Idempotency-Key", /^must be 1 to 255/],
  };
  test.each(Object.entries(named))("%s", async (_, [request, field, rule]) => {
    const { status, headers, body, text } = await request();
    expect([status, headers.get("Error-Field"), headers.get("Error-Rule")]).toEqual([400, field, stringMatching(rule)]);
    expect(body.message).toBe(`${field} ${headers.get("Error-Rule")}.`);
    expect(Object.keys(JSON.parse(text)).sort()).toEqual(["code", "message"]);
  });

  const unnamed: Record<string, [request: () => Promise<Answer>, status: number]> = {
    "a body that is not JSON": [() => putHooks({ body: "{" }), 400],
    "a body of the wrong kind": [() => putHooks({ body: "{}" }), 400],
    "more webhooks than the plan allows": [
      () => putHooks({ body: JSON.stringify(["a", "b"].map((host) => ({ webhook_url: `https://${host}.example` }))) }),
      400,
    ],
    "a wrong credential": [() => send("GET", "/v1/tenants/me", { token: "x" }), 401],
    "a resource that is not there": [() => ada.get("/v1/events/evt_1"), 404],
    "an unknown path": [() => send("GET", "/v1/nothing"), 404],
    "a plan that this server does not sell": [
      () =>
        send("POST", "/v1/tenants", {
          body: JSON.stringify({ tier: "pro", name: "A", email: "a@shop.example", password: kept }),
        }),
      503,
    ],
    "a body that is too large": [() => putHooks({ body: " ".repeat(kib64 + 1) }), 413],
  };
  test.each(Object.entries(unnamed))("and is not there for %s", async (_, [request, status]) => {
    const { headers, ...answer } = await request();
    expect([answer.status, headers.get("Error-Field"), headers.get("Error-Rule")]).toEqual([status, null, null]);
  });

  test("what a client sent goes into no header unless it is printable ASCII", () => {
    const fieldOf = (field: string, rule: string) =>
      errorResponse(invalidField(field, rule)).headers.get("Error-Field");
    expect(fieldOf("tier", "must be higher")).toBe("tier");
    const unfit = [
      ["nämé", "is wrong"],
      ["a\r\nSet-Cookie: b", "is wrong"],
      ["a", "is\nwrong"],
      ["a".repeat(1001), "is"],
    ];
    for (const [field = "", rule = ""] of unfit) expect(fieldOf(field, rule)).toBeNull();
  });
});
