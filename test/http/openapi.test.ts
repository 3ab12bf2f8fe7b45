import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import * as v from "valibot";
import { checkPassword, passwordSchema } from "../../src/accounts/password.ts";
import { deliveryStates } from "../../src/domain/delivery.ts";
import { describeEndpoint } from "../../src/http/document/operation.ts";
import type { ErasedEndpoint, Schema as Model } from "../../src/http/endpoint.ts";
import { isoTimeForm, parseIso } from "../../src/lib/iso-time.ts";
import {
  checkAnswer,
  findOperation,
  type OpenApiDocument,
  type Operation,
  problemsOf,
  type Schema,
} from "../support/openapi-check.ts";
import { startTestApp, type TestApp } from "../support/test-app.ts";

let server: TestApp;
let document: OpenApiDocument;
let published: { where: string; endpoint: ErasedEndpoint; operation: Operation }[];

beforeAll(async () => {
  server = await startTestApp({ env: { POSTRIDER_PAYMENTS: "sandbox" } });
  document = (await server.request("GET", "/openapi.json")).body;
  published = server.app.endpoints
    .filter((endpoint) => describeEndpoint(endpoint).hide !== true)
    .map((endpoint) => ({
      where: `${endpoint.method} ${endpoint.path}`,
      endpoint,
      operation: document.paths[endpoint.path.replace(/:(\w+)/g, "{$1}")]?.[endpoint.method.toLowerCase()] ?? {},
    }));
});

afterAll(async () => {
  await server.stop();
});

/** Every fault of the document at once: what is missing and where. */
const faults = (find: (entry: (typeof published)[number]) => (string | false | undefined)[]) =>
  published.flatMap((entry) => find(entry).flatMap((fault) => (fault ? [`${entry.where}: ${fault}`] : [])));

const responsesOf = (operation: Operation) =>
  Object.entries(operation.responses ?? {}).map(([status, response]) => ({ status: Number(status), ...response }));

describe("GET /openapi.json", () => {
  test("is OpenAPI 3.1.0 with our headers, and passes the guards of every other path", async () => {
    const answer = await server.request("GET", "/openapi.json");
    expect(answer.status).toBe(200);
    expect(answer.body).toMatchObject({ openapi: "3.1.0", info: { title: "Postrider" } });
    expect(answer.headers.get("content-type")).toBe("application/json");
    expect(answer.headers.get("cache-control")).toBe("no-store");
    expect(answer.headers.get("x-content-type-options")).toBe("nosniff");
    const foreign = await server.request("GET", "/openapi.json", { headers: { "X-Forwarded-For": "203.0.113.7" } });
    expect(foreign.status).toBe(403);
    const wrong = await server.request("POST", "/openapi.json");
    expect({ status: wrong.status, allow: wrong.headers.get("allow") }).toEqual({ status: 405, allow: "GET" });
  });

  test("has every endpoint under /v1 and the probes, and nothing else", () => {
    const wanted = server.app.endpoints
      .filter(({ path, access }) => access !== "operator" && /^\/(v1\/|healthz$|readyz$)/.test(path))
      .map(({ method, path }) => `${method} ${path.replace(/:(\w+)/g, "{$1}")}`);
    const found = Object.entries(document.paths).flatMap(([path, item]) =>
      Object.keys(item).map((method) => `${method.toUpperCase()} ${path}`),
    );
    expect(found.sort()).toEqual(wanted.sort());
    expect(found.length).toBeGreaterThan(35);
    expect(found.join()).not.toMatch(/operator|metrics|docs|openapi/);
  });

  test("every operation has a summary, a tag that is described and an id of its own", () => {
    const tags = document.tags.filter(({ description }) => description !== "").map(({ name }) => name);
    expect(
      faults(({ operation: { summary, tags: own = [] } }) => [
        !summary && "no summary",
        own.length !== 1 && "not one tag",
        ...own.map((tag) => !tags.includes(tag) && `the tag "${tag}" is not described`),
      ]),
    ).toEqual([]);
    const ids = published.map(({ operation }) => operation.operationId);
    expect(new Set(ids).size).toBe(ids.length);
    expect(tags.filter((tag) => !published.some(({ endpoint }) => endpoint.tag === tag))).toEqual([]);
  });

  test("every operation says which credential it takes", () => {
    const schemes = { none: [], session: [{ session: [] }], api_key: [{ apiKey: [] }] };
    expect(
      faults(({ endpoint: { access }, operation: { security } }) => [
        !Bun.deepEquals(security, schemes[access as keyof typeof schemes]) && `security is ${JSON.stringify(security)}`,
      ]),
    ).toEqual([]);
    expect(Object.keys(document.components.securitySchemes)).toEqual(["session", "apiKey"]);
  });

  test("every path parameter is a parameter, and a query stands beside it", () => {
    expect(
      faults(({ endpoint: { path }, operation: { parameters = [] } }) =>
        [...path.matchAll(/:(\w+)/g)].map(
          ([, name]) => !parameters.some((p) => p.in === "path" && p.name === name && p.required) && `no {${name}}`,
        ),
      ),
    ).toEqual([]);
    const list = findOperation(document, "GET", "/v1/events/state/DELIVERED");
    expect(list?.parameters?.slice(0, 3)).toEqual([
      { name: "state", in: "path", required: true, schema: { type: "string", enum: [...deliveryStates] } },
      { name: "page", in: "query", required: false, schema: { type: "integer", minimum: 0, default: 0 } },
      {
        name: "size",
        in: "query",
        required: false,
        schema: { type: "integer", minimum: 1, maximum: 1000, default: 20 },
      },
    ]);
  });

  test("every response has a description, every JSON one a schema and an example", () => {
    expect(
      faults(({ operation }) =>
        responsesOf(operation).flatMap(({ status, description, content }) => [
          !description && `${status} has no description`,
          status >= 400 && !content && `${status} has no body`,
          ...Object.values(content ?? {}).flatMap(({ schema, example }) => [
            schema === undefined && `${status} has no schema`,
            example === undefined && `${status} has no example`,
          ]),
        ]),
      ),
    ).toEqual([]);
    expect(
      faults(({ operation }) => [!responsesOf(operation).some(({ status }) => status < 300) && "no success"]),
    ).toEqual([]);
  });

  test("every example is what its schema describes", () => {
    const problems = (where: string, schema: object | undefined, example: unknown) =>
      schema && example !== undefined ? problemsOf(document, { ...schema }, example, where) : [];
    expect(
      faults(({ operation }) => [
        ...responsesOf(operation).flatMap(({ status, content }) =>
          Object.values(content ?? {}).flatMap(({ schema, example }) => problems(`${status}`, schema, example)),
        ),
        ...Object.values(operation.requestBody?.content ?? {}).flatMap(({ schema, example }) =>
          problems("request", schema, example),
        ),
      ]),
    ).toEqual([]);
  });

  test("every example is what the model itself takes", () => {
    const refusals = (what: string, model: Model | undefined, example: unknown) => {
      if (!model || example === undefined) return [];
      return (v.safeParse(model, example).issues ?? []).map(({ message }) => `${what}: ${message}`);
    };
    expect(
      faults(({ endpoint: { body, bodyDocument, bodyExample, responses } }) => [
        ...refusals("request", typeof body === "string" ? bodyDocument : body, bodyExample),
        ...Object.entries(responses).flatMap(([status, { schema, example }]) => refusals(status, schema, example)),
      ]),
    ).toEqual([]);
  });

  test("only replays and their preview refuse fields that they do not know", () => {
    const closed = published.filter(({ operation: { requestBody } }) =>
      Object.values(requestBody?.content ?? {}).some(({ schema }) => schema?.additionalProperties === false),
    );
    const kinds = ["single", "timeline", "all", "failed", "preview"];
    expect(closed.map(({ endpoint }) => endpoint.path)).toEqual(kinds.map((kind) => `/v1/events/replays/${kind}`));
  });

  test("every body that is taken has a schema and an example, and says whether it may be absent", () => {
    expect(
      faults(({ endpoint: { body, bodyOptional }, operation: { requestBody } }) => {
        if (body === undefined) return [requestBody && "has a body that nobody reads"];
        const media = requestBody?.content["application/json"];
        return [
          !media?.schema && "no schema of the body",
          media?.example === undefined && "no example of the body",
          requestBody?.required === (bodyOptional ?? false) && "required is wrong",
        ];
      }),
    ).toEqual([]);
  });

  test("the answers that follow from what an endpoint takes are there, with their headers", () => {
    expect(
      faults(({ endpoint: { access, body, query, limit }, operation: { responses = {} } }) => {
        const expected = [
          500,
          503,
          ...(access === "none" ? [] : [401]),
          ...(body === undefined ? [] : [400, 413, 415]),
          ...(query === undefined ? [] : [400]),
          ...(limit === undefined ? [] : [429]),
        ];
        return [
          ...expected.map((status) => !responses[status] && `no ${status}`),
          ...[429, 503].map(
            (status) => responses[status] && !responses[status].headers?.["Retry-After"] && `${status}, no Retry-After`,
          ),
          responses[401] && !responses[401].headers?.["WWW-Authenticate"] && "401 without WWW-Authenticate",
        ];
      }),
    ).toEqual([]);
  });

  test("every error has the shared body", () => {
    expect(document.components.schemas.Error).toMatchObject({ type: "object", required: ["message", "code"] });
    expect(
      faults(({ operation }) =>
        responsesOf(operation)
          .filter(({ status }) => status >= 400)
          .map(
            ({ status, content }) =>
              content?.["application/json"]?.schema?.$ref !== "#/components/schemas/Error" &&
              `${status} has another body`,
          ),
      ),
    ).toEqual([]);
  });

  test("what responses share is one schema with a name, and everything returned has one", () => {
    const { schemas } = document.components;
    const jsonOf = (path: string, status = 200) =>
      findOperation(document, "GET", path)?.responses?.[status]?.content?.["application/json"]?.schema;
    const record = { $ref: "#/components/schemas/EventRecord" };
    expect(jsonOf("/v1/events")).toEqual({ $ref: "#/components/schemas/EventRecordPage" });
    expect(jsonOf("/v1/events/state/FAILED")).toEqual({ $ref: "#/components/schemas/EventRecordPage" });
    expect(jsonOf("/v1/events/evt_1")).toEqual({ type: "array", items: record });
    expect(schemas.EventRecordPage).toMatchObject({ properties: { events: { type: "array", items: record } } });
    expect(schemas.EventRecord).not.toHaveProperty("title");
    const isOwn = (schema: Schema = {}) => "$ref" in schema || "$ref" in ((schema.items as Schema | undefined) ?? {});
    expect(
      faults(({ operation }) =>
        responsesOf(operation).map(({ status, content }) => {
          const schema = content?.["application/json"]?.schema;
          const hasFields = Object.keys((schema?.properties as object | undefined) ?? {}).length > 2;
          return hasFields && !isOwn(schema) && `${status} has no name`;
        }),
      ),
    ).toEqual([]);
  });

  test("refers to nothing that it does not have", () => {
    const refs = [...JSON.stringify(document).matchAll(/"\$ref":"#\/components\/schemas\/(\w+)"/g)].map(
      ([, name]) => name,
    );
    expect([...new Set(refs)].filter((name) => !document.components.schemas[name ?? ""])).toEqual([]);
    expect(JSON.stringify(document)).not.toContain("$defs");
  });
});

describe("real answers", () => {
  test("are as documented", async () => {
    const account = await server.account();
    const requests = [
      ["GET", "/healthz"],
      ["GET", "/v1/tenants/me"],
      ["GET", "/v1/tenants/api-keys"],
      ["GET", "/v1/tenants/webhooks"],
      ["GET", `/v1/tenants/${account.id}/status`],
      ["GET", `/v1/tenants/${account.id}/jwks.json`],
      ["GET", "/v1/tenants/nobody/status"],
      ["GET", "/v1/events?size=1"],
      ["GET", "/v1/events?size=1001"],
      ["GET", "/v1/events/evt_unknown"],
      ["GET", "/v1/events/replays"],
      ["GET", "/v1/stats"],
      ["PUT", "/v1/tenants/webhooks", { not: "a list" }],
      ["POST", "/v1/events/replays/failed", { replayGroupId: "test" }],
      ["GET", "/v1/no/such/path"],
      ["DELETE", "/v1/stats"],
    ] as const;
    for (const [method, path, body] of requests) {
      const { status, headers, text } = await server.request(method, path, { token: account.jwt, body });
      expect(() => checkAnswer(document, method, path, { status, headers, bodyText: text })).not.toThrow();
    }
    await account.ingest({ big: 1 });
    const page = await account.get("/v1/events");
    expect(page.body.total).toBe(1);
    checkAnswer(document, "GET", "/v1/events", { ...page, bodyText: page.text });
    const stranger = await server.request("GET", "/v1/events");
    expect(stranger.status).toBe(401);
    checkAnswer(document, "GET", "/v1/events", { ...stranger, bodyText: stranger.text });
  });

  const ok = { status: 200, headers: new Headers({ "Content-Type": "application/json" }) };

  test.each([
    ["a field too many", "/healthz", { ...ok, bodyText: '{"status":"ok","secret":1}' }, "body.secret"],
    ["a field too few", "/healthz", { ...ok, bodyText: "{}" }, "body.status is missing"],
    ["a wrong value", "/healthz", { ...ok, bodyText: '{"status":"bad"}' }, 'must be "ok"'],
    ["no JSON", "/healthz", { ...ok, bodyText: "ok" }, "is no JSON"],
    ["another type", "/healthz", { status: 200, headers: new Headers(), bodyText: "{}" }, "content type"],
    ["an unknown status", "/healthz", { ...ok, status: 418, bodyText: "{}" }, "418 is not in the document"],
    ["an unknown path", "/v1/unknown", { ...ok, bodyText: "{}" }, "is not in the document"],
    ["a missing header", "/healthz", { ...ok, status: 503, bodyText: '{"message":"m","code":"c"}' }, "Retry-After"],
  ])("%s is refused", (_what, path, answer, says) => {
    expect(() => checkAnswer(document, "GET", path, answer)).toThrow(says);
  });
});

describe("GET /docs", () => {
  const asset = (file: string, headers: Record<string, string> = {}) =>
    fetch(`${server.url}/docs/assets/${file}`, { headers, decompress: false });

  test("is a page without inline script and without other hosts", async () => {
    const page = await server.request("GET", "/docs");
    expect(page.status).toBe(200);
    expect(page.headers.get("content-type")).toBe("text/html; charset=utf-8");
    expect(page.headers.get("x-content-type-options")).toBe("nosniff");
    const policy = page.headers.get("content-security-policy") ?? "";
    expect(policy.split("; ")).toEqual(
      expect.arrayContaining(["default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'"]),
    );
    expect(policy).not.toContain("unsafe");
    expect(page.text).not.toMatch(/<script>|<style|style=|onload|https?:/);
    const files = [...page.text.matchAll(/(?:src|href)="(\/[^"]+)"/g)].map(([, path]) => path ?? "");
    expect(files.length).toBe(5);
    for (const file of files) expect((await server.request("GET", file)).status).toBe(200);
  });

  test("says without JavaScript where the document is", async () => {
    const { text } = await server.request("GET", "/docs");
    const [, said] = /<noscript>(.*)<\/noscript>/.exec(text) ?? [];
    expect(said).toContain('<a href="/openapi.json">/openapi.json</a>');
  });

  test.each([
    ["swagger-ui-bundle.js", "text/javascript; charset=utf-8", "node_modules/swagger-ui-dist/swagger-ui-bundle.js"],
    ["swagger-ui.css", "text/css; charset=utf-8", "node_modules/swagger-ui-dist/swagger-ui.css"],
    ["page.css", "text/css; charset=utf-8", "src/http/docs-page.css"],
    ["init.js", "text/javascript; charset=utf-8", "src/http/docs-init.js"],
  ])("%s comes whole, compressed when the client takes it, and not again", async (file, type, source) => {
    const plain = await asset(file, { "Accept-Encoding": "gzip;q=0, identity" });
    const zipped = await asset(file, { "Accept-Encoding": "br, gzip" });
    const text = await Bun.file(join(import.meta.dir, "../..", source)).text();
    expect((await plain.text()) === text).toBeTrue();
    expect(plain.headers.get("content-encoding")).toBeNull();
    expect(zipped.headers.get("content-encoding")).toBe("gzip");
    expect(gunzipSync(await zipped.bytes()).toString() === text).toBeTrue();
    for (const { headers } of [plain, zipped]) {
      expect(headers.get("content-type")).toBe(type);
      expect(headers.get("vary")).toBe("Accept-Encoding");
      expect(headers.get("cache-control")).toBe("no-cache");
      expect(headers.get("x-content-type-options")).toBe("nosniff");
    }
    const tag = zipped.headers.get("etag") ?? "";
    expect(tag).not.toBe(plain.headers.get("etag") ?? "");
    const again = await asset(file, { "Accept-Encoding": "gzip", "If-None-Match": `"other", W/${tag}` });
    expect({ status: again.status, body: await again.text(), tag: again.headers.get("etag") }).toEqual({
      status: 304,
      body: "",
      tag,
    });
  });

  test("has no other files", async () => {
    for (const file of ["index.html", "swagger-ui.css.map", "..%2f..%2fpackage.json", "constructor"]) {
      const answer = await server.request("GET", `/docs/assets/${file}`);
      expect({ status: answer.status, code: answer.body.code }).toEqual({ status: 404, code: "unknown_path" });
    }
  });
});

describe("problemsOf", () => {
  test.each([
    [{ type: "string" }, "a", 1],
    [{ type: ["string", "null"] }, null, 1],
    [{ type: "integer", minimum: 0, maximum: 9 }, 9, 10],
    [{ type: "integer" }, 1, 1.5],
    [{ exclusiveMinimum: 1, exclusiveMaximum: 2 }, 1.5, 1],
    [{ multipleOf: 5 }, 10, 12],
    [{ enum: ["a", "b"] }, "b", "c"],
    [{ const: "a" }, "a", "b"],
    [{ anyOf: [{ type: "string" }, { type: "null" }] }, null, 1],
    [{ oneOf: [{ type: "number" }, { minimum: 5 }] }, 1, 7],
    [{ allOf: [{ type: "string" }, { minLength: 2 }] }, "ab", "a"],
    [{ not: { type: "null" } }, 1, null],
    [{ minLength: 1, maxLength: 1, pattern: "^\\S$" }, "é", "éé"],
    [{ items: { type: "string" }, minItems: 1, maxItems: 2 }, ["a"], [1]],
    [{ prefixItems: [{ type: "string" }], items: false }, ["a"], ["a", 1]],
    [{ properties: { a: {} }, required: ["a"] }, { a: 1 }, {}],
    [{ properties: { a: {} } }, { a: 1 }, { b: 1 }],
    [{ properties: { a: {} }, additionalProperties: { type: "number" } }, { a: "", b: 1 }, { b: "" }],
    [{ additionalProperties: false, minProperties: 0 }, {}, { constructor: 1 }],
    [{ propertyNames: { maxLength: 1 }, maxProperties: 2 }, { a: 1 }, { ab: 1 }],
    [{ $ref: "#/components/schemas/Error" }, { message: "m", code: "c" }, { message: "m" }],
  ])("%j takes %j and not %j", (schema: Record<string, unknown>, good: unknown, bad: unknown) => {
    expect(problemsOf(document, schema, good)).toEqual([]);
    expect(problemsOf(document, schema, bad)).not.toEqual([]);
  });

  test("does not pass over what it does not know", () => {
    expect(() => problemsOf(document, { contains: {} }, [])).toThrow('"contains" is not known');
  });
});

describe("a rule that the document repeats is the rule that is checked", () => {
  test.each(["Corr3ct#Horse", "Ärger3#öö", "corr3ct#horse", "CORR3CT#HORSE", "Correct#Horse", "Corr3ctHorse", "C3#a"])(
    "password %s",
    (password) => {
      const { allOf, minLength } = passwordSchema;
      const isDocumented =
        password.length >= minLength && allOf.every(({ pattern }) => new RegExp(pattern, "u").test(password));
      const check = () => checkPassword(password);
      if (isDocumented) expect(check).not.toThrow();
      else expect(check).toThrow("password must have");
    },
  );

  test.each([
    "2026-03-01",
    "2026-03-01T12:34",
    "2026-03-01T12:34:56.789Z",
    "2026-03-01T12:34:56+01:00",
    "2026-03",
    "20260301",
    "2026-03-01 12:34",
    "2026-03-01T12:34:56,789Z",
    "yesterday",
  ])("time %s", (time) => {
    expect(new RegExp(isoTimeForm, "u").test(time)).toBe(parseIso(time, "start") !== null);
  });
});

test("the document says where the server is: first as it was asked, so that the page at /docs may call it", () => {
  expect(document.servers).toEqual([
    { url: "/", description: expect.any(String) },
    { url: expect.stringMatching(/^http:\/\/localhost:\d+$/), description: expect.any(String) },
  ]);
});
