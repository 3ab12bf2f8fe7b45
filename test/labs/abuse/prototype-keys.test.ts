import { afterEach, beforeAll, describe, expect, test } from "bun:test";
import { useServer } from "../../api/scenario.ts";
import type { Answer, TestAccount } from "../../support/test-app.ts";

/**
 * Hazards, section 5, "Prototype pollution": the names under which JavaScript keeps what all objects share, at every
 * place of every endpoint where a client may write a name.
 */
const names = ["__proto__", "constructor", "prototype", "toString", "hasOwnProperty", "valueOf", "__defineGetter__"];

const server = useServer({ env: { POSTRIDER_PAYMENTS: "sandbox" } });
let ada: TestAccount;
/** Whose bodies are sent. */
let eve: TestAccount;

interface Operation {
  requestBody?: { content: Record<string, { example?: unknown }> };
}

/** Of every endpoint that takes JSON: the example of the document, with which it would do something. */
let bodies: { method: string; path: string; example: unknown }[];

beforeAll(async () => {
  ada = await server().account();
  eve = await server().account();
  const { paths } = (await server().request("GET", "/openapi.json")).body as {
    paths: Record<string, Record<string, Operation>>;
  };
  bodies = Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).flatMap(([method, { requestBody }]) => {
      const example = requestBody?.content["application/json"]?.example;
      return example === undefined ? [] : [{ method: method.toUpperCase(), path, example }];
    }),
  );
});

const shared = JSON.stringify([
  names,
  Object.getOwnPropertyNames(Object.prototype),
  Object.getOwnPropertyNames(Array.prototype),
]);

afterEach(() => {
  const now = [names, Object.getOwnPropertyNames(Object.prototype), Object.getOwnPropertyNames(Array.prototype)];
  expect(JSON.stringify(now)).toBe(shared);
  expect(({} as Record<string, unknown>).polluted).toBeUndefined();
  expect(server().log.filter((line) => line.includes("request.failed"))).toEqual([]);
});

/** With a credential of its own, because a request that succeeds may end it. */
async function send(method: string, path: string, body: string): Promise<Answer> {
  const { token: session } = (await eve.post("/v1/tenants/auth/refresh")).body;
  const [apiKey] = (await eve.get("/v1/tenants/api-keys")).body;
  const token = path.startsWith("/v1/ingest") ? apiKey.key : session;
  const answer = await server().request(method, path.replace(/\{\w+\}/g, "x"), { body, token });
  expect([method, path, body, answer.status === 401 && path !== "/v1/tenants/auth/login"]).toEqual([
    method,
    path,
    body,
    false,
  ]);
  return answer;
}

const isRefusal = ({ status, body }: Answer) => status >= 400 && status < 500 && typeof body.code === "string";

describe("in a body", () => {
  test("there are endpoints to try", () => {
    expect(bodies.length).toBeGreaterThan(12);
  });

  test("a field that only a prototype has is missing", async () => {
    for (const { method, path, example } of bodies) {
      if (Array.isArray(example)) continue;
      const inner = JSON.stringify({ ...(example as object), polluted: true });
      // Also for those that take an empty body, and insist on something in any other.
      const bare = await send(method, path, '{"of_no_meaning":{}}');
      for (const text of [
        `{"__proto__":${inner}}`,
        `{"constructor":{"prototype":${inner}}}`,
        `{"\\u005f_proto__":${inner}}`,
      ]) {
        const answer = await send(method, path, text);
        // As if the name and what is below it were of no meaning.
        expect([method, path, text.slice(0, 20), answer.status, answer.body?.code]).toEqual([
          method,
          path,
          text.slice(0, 20),
          bare.status,
          bare.body?.code,
        ]);
      }
    }
  });

  test("they are no value of any field", async () => {
    for (const { method, path, example } of bodies) {
      for (const field of Object.keys(Array.isArray(example) ? {} : (example as object))) {
        for (const value of [
          ...names.map((name) => JSON.stringify(name)),
          '{"__proto__":{"polluted":true}}',
          '["__proto__"]',
        ]) {
          const answer = await send(method, path, `{"${field}":${value}}`);
          expect([method, path, field, value, answer.status < 500]).toEqual([method, path, field, value, true]);
        }
      }
    }
  });

  test("in an entry of a list they are no field", async () => {
    const entries = '[{"__proto__":{"webhook_url":"https://example.com/a","polluted":true}}]';
    expect((await ada.put("/v1/tenants/webhooks", entries)).body.code).toBe("field_required");
    const { status, body } = await server().request("POST", "/v1/tenants", { body: `{"webhooks":${entries}}` });
    expect([status, body.code]).toEqual([400, "field_required"]);
    expect((await ada.get("/v1/tenants/webhooks")).body).toEqual([]);
    const batch = `{"events":[{"__proto__":{"payload":{}}}]}`;
    expect(isRefusal(await send("POST", "/v1/ingest/batch", batch))).toBe(true);
  });

  test("nobody comes to a tier, to a session's version or to an operator's right by them", async () => {
    const rich = '{"tier":"enterprise","enforcedTier":"enterprise","admin":true,"polluted":true}';
    const body = `{"__proto__":${rich},"constructor":{"prototype":${rich}},"name":"Eve"}`;
    const { body: made } = await server().request("POST", "/v1/tenants", { body });
    expect([made.tier, made.name]).toEqual(["free", "Eve"]);
    expect((await ada.get("/v1/tenants/me")).body.tier).toBe("free");
  });
});

describe.each(names)("%s", (name) => {
  test("in a query is a parameter that nobody asked for", async () => {
    for (const path of ["/v1/events", "/v1/events/state/FAILED", "/v1/stats", "/v1/events/replays", "/v1/inbox"]) {
      for (const query of [name, `${name}[size]`, `${name}[polluted]`]) {
        const { status, body } = await ada.get(`${path}?${query}=1&${query}=2`);
        expect([path, status, body.message]).toEqual([
          path,
          400,
          expect.stringContaining(`${query} is not a parameter`),
        ]);
      }
    }
  });

  test("in a query is no value either", async () => {
    for (const field of ["page", "size", "payload", "from", "to"]) {
      expect([field, (await ada.get(`/v1/events?${field}=${name}`)).status]).toEqual([field, 400]);
    }
    expect((await ada.get(`/v1/stats?bucket=${name}`)).status).toBe(400);
    expect((await ada.get(`/v1/events?webhook=${name}`)).body.events).toEqual([]);
  });

  test("in a path is no resource", async () => {
    const { operatorToken: token, app } = server();
    // Pages of the dashboard are there whatever they are asked for.
    const templates = app.endpoints.filter(({ path }) => path.includes(":") && !/^\/(events|webhooks)\//.test(path));
    expect(templates.length).toBeGreaterThan(10);
    for (const { method, path, access, body } of templates) {
      if (path === "/inbox/:token" && method === "GET") continue;
      const answer = await server().request(method, path.replace(/:\w+/g, name), {
        token: access === "operator" ? token : access === "api_key" ? ada.apiKey : ada.jwt,
        ...(body !== undefined && method !== "GET" && { body: body === "form" ? "card=x" : {} }),
        ...(body === "form" && { headers: { "Content-Type": "application/x-www-form-urlencoded" } }),
      });
      expect([method, path, answer.status >= 400 && answer.status < 500]).toEqual([method, path, true]);
    }
  });

  test("as a name of a header or a key of idempotency is a text", async () => {
    const first = await ada.ingest({ [name]: name }, { "Idempotency-Key": name, [name]: "x" });
    const second = await ada.ingest({ [name]: name }, { "Idempotency-Key": name });
    expect([first.status, second.body]).toEqual([202, first.body]);
    const [record] = (await ada.get(`/v1/events/${first.body.eventId}`)).body;
    expect(Object.getOwnPropertyNames(record.originalPayload)).toEqual([name]);
  });

  test("as an account's id, an API key or a session is unknown", async () => {
    const login = await server().request("POST", "/v1/tenants/auth/login", { body: { loginId: name, password: name } });
    expect([login.status, login.body.code]).toEqual([401, "wrong_credentials"]);
    expect((await server().request("GET", "/v1/tenants/me", { token: name })).status).toBe(401);
    expect((await server().request("POST", "/v1/ingest", { token: name, body: { payload: {} } })).status).toBe(401);
  });
});
