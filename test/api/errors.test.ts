import { afterAll, beforeAll, describe, expect, spyOn, test } from "bun:test";
import { type Hooks, ingestOne, rawRequest, startHooks } from "../support/api-server.ts";
import type { Answer, TestAccount } from "../support/test-app.ts";
import { type Call, exactRequests } from "./exact-request.ts";
import { useServer } from "./scenario.ts";

/** Specification, "Errors"; rules, section 3: the shape of an error, and what is judged first. */

const { stringMatching } = expect;

const server = useServer();
const send = exactRequests(server);
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
