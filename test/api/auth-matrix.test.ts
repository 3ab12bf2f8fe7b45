import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { ErasedEndpoint } from "../../src/http/endpoint.ts";
import { operatorTokenFile } from "../../src/secrets.ts";
import { closedPort, ingestOne, register } from "../support/api-server.ts";
import type { Answer, TestAccount } from "../support/test-app.ts";
import { startTestApp, type TestApp } from "../support/test-app.ts";

/**
 * Specification, "Authentication": every endpoint that the server has, with every credential that is not one. A new
 * endpoint is in here by being there.
 */

const { stringMatching } = expect;

const server: TestApp = await startTestApp();
afterAll(() => server.stop());

let ada: TestAccount;
let eve: TestAccount;
/** Tokens and keys that were good once. */
const ended = { loggedOut: "", allEnded: "", passwordChanged: "", deleted: "", rotatedKey: "", deletedKey: "" };
let ids: Record<"webhook" | "event" | "replay", string>;

/** Who has what endpoints ask for; what is not asked for must not help. */
const secretPayload = { secret: "ada's payload" };

beforeAll(async () => {
  ada = await server.account();
  eve = await server.account();
  await register(ada, `http://127.0.0.1:${await closedPort()}/ada-hook`);
  const event = await ingestOne(ada, secretPayload);
  const replay = await ada.post("/v1/events/replays/all", { replayGroupId: "ada-group" });
  ids = {
    webhook: (await ada.get("/v1/tenants/webhooks")).body[0].id,
    event,
    replay: replay.headers.get("Location")?.split("/").at(-1) ?? "",
  };

  const leaving = await server.account();
  ended.loggedOut = leaving.jwt;
  await leaving.post("/v1/tenants/auth/logout");
  const again = await logIn(leaving);
  await again.post("/v1/tenants/auth/logout", { all: true });
  ended.allEnded = again.jwt;
  const third = await logIn(leaving);
  const change = { current_password: leaving.password, new_password: "N3w+Password" };
  await server.request("PUT", "/v1/tenants/password", { token: third.jwt, body: change });
  ended.passwordChanged = third.jwt;

  const gone = await server.account();
  Object.assign(ended, { deleted: gone.jwt, deletedKey: gone.apiKey });
  await gone.delete("/v1/tenants");

  ended.rotatedKey = eve.apiKey;
  const { key } = (await eve.post("/v1/tenants/api-keys/rotate")).body;
  eve = { ...eve, apiKey: key };
});

async function logIn({ id: loginId, password }: TestAccount) {
  const { token: jwt } = (await server.request("POST", "/v1/tenants/auth/login", { body: { loginId, password } })).body;
  return {
    jwt,
    post: (path: string, body?: unknown) =>
      server.request("POST", path, { token: jwt, ...(body !== undefined && { body }) }),
  };
}

// ---------------------------------------------------------------- forged tokens

const secret = readFileSync(join(server.dataDir, "session-secret"), "utf8").trim();
const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
const nowSeconds = () => Math.floor(Date.now() / 1000);

/** Ada's own claims, with changes; undefined takes one away. */
function claims(changes: Record<string, unknown> = {}) {
  const own = JSON.parse(Buffer.from(ada.jwt.split(".")[1] ?? "", "base64url").toString());
  return { ...own, jti: "forged", ...changes };
}

function forge(changes?: Record<string, unknown>, { alg = "HS256", hash = "sha256", key = secret } = {}): string {
  const content = `${encode({ alg, typ: "JWT" })}.${encode(claims(changes))}`;
  return `${content}.${hash === "none" ? "" : createHmac(hash, key).update(content).digest("base64url")}`;
}

const badTokens: Record<string, () => string> = {
  "an expired JWT": () => forge({ exp: nowSeconds() - 1 }),
  "a JWT that expires now": () => forge({ exp: nowSeconds() }),
  "a JWT without exp": () => forge({ exp: undefined }),
  "a JWT whose exp is a text": () => forge({ exp: String(nowSeconds() + 60) }),
  "alg none without a signature": () => forge({}, { alg: "none", hash: "none" }),
  "alg None with a signature": () => forge({}, { alg: "None" }),
  "alg HS256 without a signature": () => forge({}, { hash: "none" }),
  "HS512 with the right secret": () => forge({}, { alg: "HS512", hash: "sha512" }),
  "HS384 with the right secret": () => forge({}, { alg: "HS384", hash: "sha384" }),
  "HS512 that says HS256": () => forge({}, { hash: "sha512" }),
  "RS256 in name": () => forge({}, { alg: "RS256" }),
  "another secret": () => forge({}, { key: secret.toUpperCase() }),
  "an empty secret": () => forge({}, { key: "" }),
  "the secret's bytes instead of its text": () => {
    const content = `${encode({ alg: "HS256" })}.${encode(claims())}`;
    return `${content}.${createHmac("sha256", Buffer.from(secret, "hex")).update(content).digest("base64url")}`;
  },
  "an unknown account": () => forge({ sub: "t0000000000000" }),
  "another account's claims under an old signature": () =>
    [ada.jwt.split(".")[0], encode(claims({ sub: eve.id })), ada.jwt.split(".")[2]].join("."),
  "a JWT that is not valid yet": () => forge({ nbf: nowSeconds() + 3600 }),
  "no subject": () => forge({ sub: undefined }),
  "another session version": () => forge({ ver: 99 }),
  "no session version": () => forge({ ver: undefined }),
  "a token that is logged out": () => ended.loggedOut,
  "a token from before logout of all": () => ended.allEnded,
  "a token from before a change of the password": () => ended.passwordChanged,
  "the token of a deleted account": () => ended.deleted,
  "the operator token": () => server.operatorToken,
  "an API key": () => ada.apiKey,
};

const badKeys: Record<string, () => string> = {
  "a JWT": () => ada.jwt,
  "a rotated key": () => ended.rotatedKey,
  "the key of a deleted account": () => ended.deletedKey,
  "a key that is cut": () => ada.apiKey.slice(0, -1),
  "a key with a letter more": () => `${ada.apiKey}0`,
  "a key in capitals": () => ada.apiKey.toUpperCase(),
  "an unknown key": () => `svc_sk_${"0".repeat(40)}`,
  "the operator token": () => server.operatorToken,
};

const badOperatorTokens: Record<string, () => string> = {
  "a tenant's JWT": () => ada.jwt,
  "a tenant's API key": () => ada.apiKey,
  "a token that is cut": () => server.operatorToken.slice(0, -1),
  "the session secret": () => secret,
};

const badCredentials: Record<ErasedEndpoint["access"], Record<string, () => string>> = {
  none: {},
  session: badTokens,
  api_key: badKeys,
  operator: badOperatorTokens,
  metrics: badOperatorTokens,
};

/** What no endpoint with a credential takes: whole values of the header. */
const badHeaders: Record<string, (good: string) => string | undefined> = {
  "no credential": () => undefined,
  "an empty header": () => "",
  "Bearer alone": () => "Bearer",
  "Bearer and a space": () => "Bearer ",
  garbage: () => "Bearer garbage",
  "dots alone": () => "Bearer ..",
  "a quote": () => "Bearer ' or 1=1 --",
  "4,000 characters": () => `Bearer ${"x".repeat(4000)}`,
  "the Basic scheme": (good) => `Basic ${Buffer.from(`${ada.id}:${good}`).toString("base64")}`,
  "the Basic scheme with the password": () => `Basic ${Buffer.from(`${ada.id}:${ada.password}`).toString("base64")}`,
  "the credential without a scheme": (good) => good,
  "another scheme": (good) => `Token ${good}`,
  "two credentials": (good) => `Bearer ${good}, Bearer ${good}`,
};

// ---------------------------------------------------------------- the matrix

/** From its file: one of the endpoints rotates it. */
const operatorToken = () => readFileSync(join(server.dataDir, operatorTokenFile), "utf8").trim();

const goodToken = (access: ErasedEndpoint["access"]): string =>
  ({ none: "", session: ada.jwt, api_key: ada.apiKey, operator: operatorToken(), metrics: operatorToken() })[access];

const pathOf = ({ path }: ErasedEndpoint): string =>
  path
    .replace("/webhooks/:id", `/webhooks/${ids.webhook}`)
    .replace("/replays/:id", `/replays/${ids.replay}`)
    .replace("/events/:id", `/events/${ids.event}`)
    .replace("/tenants/:id", "/tenants/t0000000000000")
    .replace(":tenantId", ada.id)
    .replace(":state", "FAILED");

/** A request without a body. Of a stream only the head is read. */
async function send(endpoint: ErasedEndpoint, authorization: string | undefined): Promise<Omit<Answer, "body">> {
  const response = await fetch(`${server.url}${pathOf(endpoint)}`, {
    method: endpoint.method,
    headers: { ...(authorization !== undefined && { Authorization: authorization }) },
  });
  const isStream = response.headers.get("content-type") === "text/event-stream";
  if (isStream) await response.body?.cancel();
  return { status: response.status, headers: response.headers, text: isStream ? "" : await response.text() };
}

const name = ({ method, path }: ErasedEndpoint) => `${method} ${path}`;
const guarded = server.app.endpoints.filter(({ access }) => access !== "none");

async function expectRefusal(endpoint: ErasedEndpoint, why: string, authorization: string | undefined): Promise<void> {
  const { status, headers, text } = await send(endpoint, authorization);
  const about = `${name(endpoint)} with ${why}`;
  expect([about, status, headers.get("WWW-Authenticate")]).toEqual([about, 401, "Bearer"]);
  expect(JSON.parse(text)).toEqual({
    message: stringMatching(/^Authorization must be `Bearer .*\.$/),
    code: "unauthenticated",
  });
  for (const leak of [ada.id, eve.id, "ada-hook", "ada's payload", ada.apiKey, server.operatorToken, secret]) {
    expect(text).not.toContain(leak);
  }
}

test("the matrix covers what the specification lists", () => {
  const names = server.app.endpoints.map(name);
  for (const listed of [
    "GET /v1/tenants/me",
    "POST /v1/tenants/upgrade",
    "DELETE /v1/tenants",
    "GET /v1/tenants/api-keys",
  ]) {
    expect(names).toContain(listed);
  }
  expect(guarded.length).toBeGreaterThan(35);
  // Authentication, rule 2, with what joins it: the JWK set, what the server offers, and what lies outside of /v1.
  expect(
    server.app.endpoints.filter(({ access, path }) => access === "none" && path.startsWith("/v1")).map(name),
  ).toEqual([
    "GET /v1/about",
    "POST /v1/tenants",
    "GET /v1/tenants/:tenantId/status",
    "POST /v1/tenants/auth/login",
    "POST /v1/tenants/auth/forgot-password",
    "POST /v1/tenants/auth/reset-password",
    "GET /v1/tenants/:tenantId/jwks.json",
  ]);
  expect(server.app.endpoints.filter(({ access }) => access === "api_key").map(name)).toEqual([
    "POST /v1/ingest",
    "POST /v1/ingest/batch",
  ]);
  const operators = server.app.endpoints.filter(({ path }) => path.startsWith("/operator"));
  // Its page is for everybody, and says nothing; the others are how one signs in and out there.
  expect(operators.filter(({ access }) => access !== "operator").map(name)).toEqual([
    "POST /operator/session",
    "DELETE /operator/session",
    "GET /operator",
  ]);
});

describe.each(guarded.map((endpoint) => [name(endpoint), endpoint] as const))("%s", (_, endpoint) => {
  const bad = badCredentials[endpoint.access];

  test("is 401 for every header that is no credential", async () => {
    for (const [why, header] of Object.entries(badHeaders)) {
      await expectRefusal(endpoint, why, header(goodToken(endpoint.access)));
    }
  });

  test("is 401 for every credential that is not valid here", async () => {
    for (const [why, token] of Object.entries(bad)) await expectRefusal(endpoint, why, `Bearer ${token()}`);
  });

  test("is not 401 for the right one, whatever the case of the scheme", async () => {
    // Without a body most of these are 400 or have no effect; those that end things get an account of their own.
    const ends =
      endpoint.access === "session" && /^(DELETE \/v1\/tenants$|POST .*\/(logout|rotate)$)/.test(name(endpoint));
    for (const scheme of ["Bearer", "bearer", "BEARER"]) {
      const token = ends ? (await server.account()).jwt : goodToken(endpoint.access);
      const { status } = await send(endpoint, `${scheme} ${token}`);
      // This server takes no payments.
      const isUnsold = /\/tenants\/(billing|payment-method)$/.test(endpoint.path);
      expect(isUnsold ? [503] : [200, 201, 202, 204, 400, 404]).toContain(status);
    }
  });
});

test("the forged token is refused for its fault alone: without one it is taken", async () => {
  expect((await server.request("GET", "/v1/tenants/me", { token: forge() })).body.tenant_id).toBe(ada.id);
});

test("a token in the query is none", async () => {
  for (const name of ["token", "access_token", "jwt", "authorization"]) {
    expect((await server.request("GET", `/v1/tenants/me?${name}=${ada.jwt}`)).status).toBe(401);
  }
});

// ---------------------------------------------------------------- other tenants

const withResource = server.app.endpoints.filter(({ access, path }) => access === "session" && path.includes(":id"));

test.each(withResource.map((endpoint) => [name(endpoint), endpoint] as const))(
  "%s of another tenant is 404",
  async (_, endpoint) => {
    const { status, text } = await send(endpoint, `Bearer ${eve.jwt}`);
    expect([status, JSON.parse(text)]).toEqual([
      404,
      { message: stringMatching(/\.$/), code: stringMatching(/_not_found$/) },
    ]);
    for (const leak of [ada.id, "ada-hook", "ada's payload", "ada-group"]) expect(text).not.toContain(leak);
  },
);

test("a single replay of another tenant's event is 403", async () => {
  const body = { eventId: ids.event, replayGroupId: "eve-group" };
  const { status, text, body: answer } = await eve.post("/v1/events/replays/single", body);
  expect([status, answer]).toEqual([403, { message: stringMatching(/\.$/), code: "event_of_another_account" }]);
  for (const leak of [ada.id, "ada-hook", "ada's payload"]) expect(text).not.toContain(leak);
});

const lists = [
  "tenants/me",
  "tenants/webhooks",
  "tenants/webhooks/health",
  "tenants/api-keys",
  "events",
  "events/state/FAILED",
  "events/replays",
  "inbox",
  "stats",
];

test.each(lists)("GET /v1/%s shows nothing of another tenant", async (path) => {
  const { status, text } = await eve.get(`/v1/${path}`);
  expect(status).toBe(200);
  for (const leak of [
    ada.id,
    ids.event,
    ids.webhook,
    ids.replay,
    "ada-hook",
    "ada's payload",
    "ada-group",
    ada.apiKey,
  ]) {
    expect(text).not.toContain(leak);
  }
});
