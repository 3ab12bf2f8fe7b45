import { afterAll, beforeAll, describe, expect, spyOn, test } from "bun:test";
import * as v from "valibot";
import { invalidField } from "../../src/domain/errors.ts";
import type { Schema } from "../../src/http/endpoint.ts";
import { errorResponse } from "../../src/http/errors.ts";
import { type Hooks, ingestOne, rawRequest, startHooks } from "../support/api-server.ts";
import type { Answer, TestAccount } from "../support/test-app.ts";
import { useServer } from "./scenario.ts";

/** Specification, "Errors"; rules, section 3: the shape of an error, and what is judged first. */

const { stringMatching } = expect;

const server = useServer();
let ada: TestAccount;
let suspended: TestAccount;
let eventId: string;
let hooks: Hooks;

beforeAll(async () => {
  hooks = await startHooks();
  ada = await server().account();
  suspended = await server().account();
  eventId = await ingestOne(ada);
  await suspended.ingest({}, { "Idempotency-Key": "before" });
  const { operatorToken: token } = server();
  await server().request("POST", `/operator/tenants/${suspended.id}/suspend`, { token });
});
afterAll(() => hooks.stop());

/** One request and its whole answer. `section` names the sentence that it proves. */
interface Row {
  section: string;
  request(): Promise<Answer>;
  status: number;
  /** Absent: there is no body to speak of, only the status counts. */
  code?: string;
  headers?: Record<string, string | RegExp>;
}

function errorScenarios(rows: Record<string, Row>): void {
  test.each(Object.entries(rows))("%s", async (_, { request, status, code, headers = {} }) => {
    const answer = await request();
    expect({ status: answer.status, ...(code && { body: answer.body }) }).toEqual({
      status,
      ...(code && { body: { message: stringMatching(/^[A-Z`a-z[].*\.$/), code } }),
    });
    if (code) expect(answer.headers.get("content-type")).toStartWith("application/json");
    for (const [name, value] of Object.entries(headers)) {
      expect(answer.headers.get(name)).toEqual(typeof value === "string" ? value : stringMatching(value));
    }
    expect(answer.text).not.toMatch(/valibot|elysia|drizzle|sqlite|node_modules|\.ts:|argon2/i);
  });
}

const kib64 = 65_536;
const form = "application/x-www-form-urlencoded";

interface Call {
  token?: string;
  body?: string | Uint8Array;
  type?: string;
  encoding?: string;
}

/** A request with exactly these headers; without `type` it has no Content-Type. */
const send = (method: string, path: string, { token, body, type, encoding }: Call = {}) =>
  rawRequest(server(), method, path, {
    headers: {
      ...(token !== undefined && { Authorization: `Bearer ${token}` }),
      ...(type !== undefined && { "Content-Type": type }),
      ...(encoding !== undefined && { "Content-Encoding": encoding }),
      ...(body !== undefined && { "Content-Length": String(Buffer.byteLength(body)) }),
    },
    ...(body !== undefined && { chunks: [body] }),
  });

const putHooks = (call: Call) => send("PUT", "/v1/tenants/webhooks", { token: ada.jwt, ...call });

describe("an unknown path is 404", () => {
  const paths = ["/v1", "/v1/nothing", "/v1/tenants/me/x", "/V1/events", "/v1/tenants/x/jwksXjson"];
  const row = { status: 404, code: "unknown_path" };
  const gone = (path: string): Row => ({ section: "rules 3", request: () => send("POST", path), ...row });
  const otherVersion = (path: string): Row => ({
    section: "spec: Versioning",
    request: () => send("GET", path, { token: ada.jwt }),
    ...row,
  });
  errorScenarios({
    ...Object.fromEntries(paths.map((path) => [path, gone(path)])),
    ...Object.fromEntries(
      ["/v2/tenants/me", "/v0/events", "/tenants/me", "/ingest"].map((path) => [path, otherVersion(path)]),
    ),
  });
});

test("an unknown path is a page for whoever comes by a browser, and the same error for every program", async () => {
  const visit = (Accept: string) => server().request("GET", "/nothing", { headers: { Accept } });
  const page = await visit("text/html,application/xhtml+xml,*/*;q=0.8");
  expect(page.status).toBe(404);
  for (const accept of ["*/*", "application/json", "text/event-stream"]) {
    expect(await visit(accept)).toMatchObject({ status: 404, body: { code: "unknown_path" } });
  }
  // In a checkout in which the dashboard was not built nobody gets one.
  const { text, headers } = await server().request("GET", "/");
  if (!headers.get("content-type")?.startsWith("text/html")) return;
  expect(page.text).toBe(text);
  expect(page.headers.get("vary")).toBe("Accept");
  expect(page.headers.get("content-security-policy")).toBe(headers.get("content-security-policy"));
});

describe("a method that a path has not is 405 with Allow", () => {
  const allowed: Record<string, [method: string, allow: string[]][]> = {
    "/v1/tenants": [
      ["PUT", ["POST", "DELETE"]],
      ["GET", ["POST", "DELETE"]],
    ],
    "/v1/tenants/me": [
      ["POST", ["GET"]],
      ["OPTIONS", ["GET"]],
      ["PATCH", ["GET"]],
    ],
    "/v1/tenants/me/": [["POST", ["GET"]]],
    "/v1/tenants/webhooks": [
      ["DELETE", ["GET", "PUT"]],
      ["POST", ["GET", "PUT"]],
    ],
    "/v1/tenants/webhooks/wh_1/test": [["GET", ["POST"]]],
    "/v1/tenants/t1/status": [["POST", ["GET"]]],
    "/v1/tenants/t1/jwks.json": [["PUT", ["GET"]]],
    "/v1/tenants/auth/login": [["GET", ["POST"]]],
    "/v1/tenants/password": [["POST", ["PUT"]]],
    "/v1/tenants/upgrade": [["PUT", ["POST"]]],
    "/v1/ingest": [["GET", ["POST"]]],
    "/healthz": [["POST", ["GET"]]],
    "/openapi.json": [["POST", ["GET"]]],
  };
  errorScenarios(
    Object.fromEntries(
      Object.entries(allowed).flatMap(([path, wrong]) =>
        wrong.map(([method, allow]) => [
          `${method} ${path}`,
          {
            section: "rules 3",
            request: () => send(method, path),
            status: 405,
            code: "method_not_allowed",
            headers: { Allow: new RegExp(`^${allow.join(", ")}$`) },
          } satisfies Row,
        ]),
      ),
    ),
  );

  test("for every endpoint", async () => {
    for (const { method, path } of server().app.endpoints) {
      // From outside an inbox has no methods (`inbox.test.ts`).
      if (path.startsWith("/inbox/")) continue;
      const answer = await send("PATCH", path.replace(/:\w+/g, "x"));
      expect([path, answer.status, answer.body.code]).toEqual([path, 405, "method_not_allowed"]);
      expect(answer.headers.get("Allow")?.split(", ")).toContain(method);
    }
  });
});

describe("a body", () => {
  const badBodies: Record<string, [body: string | Uint8Array, code: string]> = {
    "no JSON": ["{", "invalid_json"],
    nothing: ["", "invalid_json"],
    "two values": ["[] []", "invalid_json"],
    "a byte order mark": ["\ufeff[]", "invalid_json"],
    "invalid UTF-8": [new Uint8Array([0x5b, 0x22, 0xff, 0x22, 0x5d]), "invalid_utf8"],
    "a lone surrogate in UTF-8": [new Uint8Array([0x5b, 0x22, 0xed, 0xa0, 0x80, 0x22, 0x5d]), "invalid_utf8"],
    "a form": ["webhook_url=https://example.com", "invalid_json"],
    "very deep nesting": ["[".repeat(30_000) + "]".repeat(30_000), "invalid_request"],
    "a prototype": ['[{"__proto__": {"webhook_url": "https://example.com"}}]', "field_required"],
  };
  const types = ["application/json", "application/json; charset=utf-8", "APPLICATION/JSON", "application/ld+json", ""];
  const wrongTypes = [
    form,
    "multipart/form-data; boundary=x",
    "text/plain",
    "application/jsonx",
    "application/xml",
    "json",
    "*/*",
  ];

  errorScenarios({
    ...Object.fromEntries(
      Object.entries(badBodies).map(([name, [body, code]]) => [
        `with ${name} is 400`,
        { section: "spec: Errors", request: () => putHooks({ body }), status: 400, code } satisfies Row,
      ]),
    ),
    ...Object.fromEntries(
      types.map((type) => [
        `of type "${type}" is taken`,
        { section: "rules 3", request: () => putHooks({ body: "[]", type }), status: 200 } satisfies Row,
      ]),
    ),
    "without a type is taken": { section: "rules 3", request: () => putHooks({ body: "[]" }), status: 200 },
    ...Object.fromEntries(
      wrongTypes.map((type) => [
        `of type ${type} is 415`,
        {
          section: "rules 3",
          request: () => putHooks({ body: "[]", type }),
          status: 415,
          code: "unsupported_media_type",
        } satisfies Row,
      ]),
    ),
    ...Object.fromEntries(
      ["gzip", "br", "deflate", "gzip, identity"].map((encoding) => [
        `with Content-Encoding ${encoding} is 415`,
        {
          section: "rules 3",
          request: () => putHooks({ body: "[]", type: "application/json", encoding }),
          status: 415,
          code: "unsupported_media_type",
        } satisfies Row,
      ]),
    ),
    "of 64 KiB is read": {
      section: "rules 3",
      request: () => putHooks({ body: `[]${" ".repeat(kib64 - 2)}` }),
      status: 200,
    },
    "of one byte more is 413": {
      section: "rules 3",
      request: () => putHooks({ body: `[]${" ".repeat(kib64 - 1)}` }),
      status: 413,
      code: "body_too_large",
    },
    ...Object.fromEntries(
      ["/v1/tenants/auth/login", "/operator/session"].flatMap((path): [string, Row][] => [
        [
          `of 16 KiB is read at ${path}`,
          {
            section: "rules 3",
            request: () => send("POST", path, { body: `{}${" ".repeat(kib64 / 4 - 2)}` }),
            status: 400,
            code: "field_required",
          },
        ],
        [
          `of one byte more is 413 at ${path}`,
          {
            section: "rules 3",
            request: () => send("POST", path, { body: `{}${" ".repeat(kib64 / 4 - 1)}` }),
            status: 413,
            code: "body_too_large",
          },
        ],
      ]),
    ),
    "of one byte more in chunks is 413": {
      section: "rules 3",
      request: () =>
        rawRequest(server(), "PUT", "/v1/tenants/webhooks", {
          headers: { Authorization: `Bearer ${ada.jwt}`, "Transfer-Encoding": "chunked" },
          chunks: ["[]", " ".repeat(kib64 / 2), " ".repeat(kib64 / 2 - 1)],
        }),
      status: 413,
      code: "body_too_large",
    },
  });
});

describe("order of judgement (rules, section 3)", () => {
  const tooLarge = " ".repeat(kib64 + 1);
  const single = (token: string, body: string) => send("POST", "/v1/events/replays/single", { token, body });
  const order = (name: string, request: () => Promise<Answer>, status: number, code?: string): [string, Row] => [
    name,
    { section: "rules 3", request, status, ...(code !== undefined && { code }) },
  ];
  const testHook = () => send("POST", "/v1/tenants/webhooks/wh_1/test", { token: ada.jwt });

  errorScenarios(
    Object.fromEntries([
      order("404 unknown path before 401", () => send("PUT", "/v1/nothing", { body: "{" }), 404, "unknown_path"),
      order("405 before 401", () => send("PATCH", "/v1/tenants/me", { body: "{" }), 405, "method_not_allowed"),
      order("401 before 413", () => putHooks({ token: "x", body: tooLarge }), 401, "unauthenticated"),
      order("401 before 415", () => putHooks({ token: "x", body: "[]", type: form }), 401, "unauthenticated"),
      order("401 before 400", () => putHooks({ token: "x", body: "{" }), 401, "unauthenticated"),
      order("401 before 400 on ingestion", () => send("POST", "/v1/ingest", { body: "{" }), 401, "unauthenticated"),
      order("401 before 404 of the resource", () => send("GET", "/v1/events/evt_1"), 401, "unauthenticated"),
      order("413 before 415", () => putHooks({ body: tooLarge, type: form }), 413, "body_too_large"),
      order("415 before 400", () => putHooks({ body: "{", type: form }), 415, "unsupported_media_type"),
      order("400 before the account's 403", () => single(suspended.jwt, "{}"), 400, "field_required"),
      order(
        "400 before the account's 403 on ingestion",
        () => send("POST", "/v1/ingest", { token: suspended.apiKey, body: "{}" }),
        400,
      ),
      order(
        "the account's 403 before the 404 of the resource",
        () => single(suspended.jwt, '{"eventId": "evt_1", "replayGroupId": "g"}'),
        403,
        "account_suspended",
      ),
      order(
        "the account's 403 before the 403 of the resource",
        () => single(suspended.jwt, JSON.stringify({ eventId, replayGroupId: "g" })),
        403,
        "account_suspended",
      ),
      order(
        "the account's 403 before the 404 of a webhook",
        () => send("POST", "/v1/tenants/webhooks/wh_1/test", { token: suspended.jwt }),
        403,
        "account_suspended",
      ),
      order(
        "422 of an idempotency key before the account's 403",
        () => suspended.ingest({ other: 1 }, { "Idempotency-Key": "before" }),
        422,
        "idempotency_key_reused",
      ),
      order("404 of a webhook within the rate", testHook, 404, "webhook_not_found"),
      order(
        "429 of the rate before the 404 of a webhook",
        () => Promise.all(Array.from({ length: 9 }, testHook)).then(testHook),
        429,
        "too_many_tests",
      ),
    ]),
  );

  test("the stored answer of an idempotency key before the account's 403", async () => {
    const again = await suspended.ingest({}, { "Idempotency-Key": "before" });
    expect({ status: again.status, body: again.body }).toEqual({
      status: 202,
      body: { status: "accepted", eventId: stringMatching(/^evt_/) },
    });
  });

  test("429 of failed passwords before 413, 415 and 400", async () => {
    const { jwt: token } = await server().account();
    const change = (call: Call) => send("PUT", "/v1/tenants/password", { token, ...call });
    const guess = JSON.stringify({ current_password: "Wr0ng#Password", new_password: "N3w+Password" });
    const guesses = await Promise.all(Array.from({ length: 10 }, () => change({ body: guess })));
    expect(guesses.map(({ status }) => status)).toEqual(Array(10).fill(400));
    for (const call of [{ body: tooLarge }, { body: "{}", type: form }, { body: "{" }]) {
      const { status, headers } = await change(call);
      expect([status, Number(headers.get("Retry-After")) > 0]).toEqual([429, true]);
    }
  });
});

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

test("a defect is a 500 that says nothing of it, and the log has it", async () => {
  const usage = spyOn(server().app.store, "usage").mockImplementation(() => {
    throw new Error("SQLITE_CORRUPT at /var/lib/secret");
  });
  const answer = await ada.get("/v1/tenants/me");
  usage.mockRestore();
  expect({ status: answer.status, body: answer.body }).toEqual({
    status: 500,
    body: { message: stringMatching(/\.$/), code: "internal_error" },
  });
  expect(answer.text).not.toMatch(/SQLITE|secret/);
  expect(answer.headers.get("Error-Field")).toBeNull();
  expect(server().log.join("\n")).toContain("SQLITE_CORRUPT");
});
