// biome-ignore-all lint/suspicious/noThenProperty: rows of a scenario table have one
import { afterAll, describe, expect, spyOn, test } from "bun:test";
import { mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createTravelClock, rawRequest } from "../support/api-server.ts";
import { createAuthority } from "../support/certificates.ts";
import { isOnPostgres, testOnSqlite } from "../support/server-data.ts";
import { type Answer, startTestApp, type TestApp } from "../support/test-app.ts";
import { scenarios, useServer } from "./scenario.ts";

/** Rules, section 1: local mode, public mode, closed sign-up; section 4: the limits by address; 13: /metrics. */

const { any, stringMatching } = expect;
const error = (code: string) => ({ message: stringMatching(/\.$/), code });
const goodPassword = "Corr3ct#Horse";

/** Hundreds of accounts are made here: their passwords are hashed as cheaply as argon2id can. */
const hash = Bun.password.hash;
const cheap = spyOn(Bun.password, "hash").mockImplementation((password) =>
  hash(password, { algorithm: "argon2id", memoryCost: 8, timeCost: 1 }),
);
afterAll(() => cheap.mockRestore());

interface World {
  server: TestApp;
}

const paid = (email: string) => ({ tier: "pro", name: "Ada", email, password: goodPassword });

const paidAccount = (server: TestApp, email: string): Promise<Answer> =>
  server.request("POST", "/operator/tenants", { token: server.operatorToken, body: paid(email) });

const publicUrl = { POSTRIDER_PUBLIC_URL: "https://relay.example.com" };

describe("local mode", () => {
  const server = useServer();
  const from = (headers: Record<string, string>, path = "/v1/tenants/t1/status") =>
    rawRequest(server(), "GET", path, { headers });

  const foreign: Record<string, Record<string, string>> = {
    "a foreign Host": { Host: "relay.example.com" },
    "a rebinding name": { Host: "127.0.0.1.nip.io:8080" },
    "a private address as Host": { Host: "192.168.1.10:8080" },
    "a name that ends in localhost": { Host: "evillocalhost" },
    "X-Forwarded-For": { "X-Forwarded-For": "127.0.0.1" },
    "X-Forwarded-Host": { "X-Forwarded-Host": "localhost" },
    "X-Forwarded-Proto": { "X-Forwarded-Proto": "https" },
    Forwarded: { Forwarded: "for=127.0.0.1" },
  };

  test.each(Object.entries(foreign))("%s is 403 on every path", async (_, headers) => {
    for (const path of [
      "/v1/tenants/t1/status",
      "/v1/tenants/me",
      "/nothing",
      "/openapi.json",
      "/metrics",
      "/healthz",
    ]) {
      const answer = await from(headers, path);
      expect([path, answer.status, answer.body]).toEqual([path, 403, error("local_mode")]);
      expect(answer.body.message).toContain("POSTRIDER_PUBLIC_URL");
    }
  });

  test.each(["localhost", "LOCALHOST:8080", "127.0.0.1:80", "127.0.0.2", "[::1]:8080"])(
    "Host %s is us",
    async (Host) => {
      expect((await from({ Host })).status).toBe(404);
    },
  );

  test("nothing is made by a foreign request", async () => {
    const headers = { Host: "relay.example.com", "Content-Length": "0" };
    expect((await rawRequest(server(), "POST", "/v1/tenants", { headers })).status).toBe(403);
    const { operatorToken: token } = server();
    expect((await server().request("GET", "/operator/tenants", { token })).body.total).toBe(0);
  });

  test("/metrics needs no token, and neither accounts nor status checks are counted by address", async () => {
    const metrics = await server().request("GET", "/metrics");
    expect([metrics.status, metrics.headers.get("content-type")]).toEqual([200, stringMatching(/^text\/plain/)]);
    const made = await Promise.all(Array.from({ length: 61 }, () => server().request("POST", "/v1/tenants")));
    expect(made.map(({ status }) => status)).toEqual(Array(61).fill(201));
    const id = made[0]?.body.tenant_id;
    const asked = Array.from({ length: 601 }, () => server().request("GET", `/v1/tenants/${id}/status`));
    expect(new Set((await Promise.all(asked)).map(({ status }) => status))).toEqual(new Set([200]));
  });
});

describe("public mode", () => {
  const clock = createTravelClock();
  const server = useServer({ clock, env: { ...publicUrl, POSTRIDER_TRUSTED_PROXIES: "127.0.0.1/32,10.9.0.0/16" } });
  const world = (): World => ({ server: server() });

  /** A request as the trusted proxy passes it on. */
  const from = (forwarded: string, method: string, path: string, body?: unknown): Promise<Answer> =>
    server().request(method, path, { headers: { "X-Forwarded-For": forwarded }, ...(body !== undefined && { body }) });

  const all = (n: number, request: (n: number) => Promise<Answer>) =>
    Promise.all(Array.from({ length: n }, (_, i) => request(i))).then((answers) => answers.map(({ status }) => status));

  scenarios<World>("POST /v1/tenants", world, {
    "60 accounts an hour for one address, IPv6 by /64": {
      section: "rules 4",
      given: async () => {
        const made = await all(60, (n) => from(`2001:db8:1:2::${n.toString(16)}`, "POST", "/v1/tenants"));
        expect(made).toEqual(Array(60).fill(201));
      },
      request: () => from("2001:db8:1:2:ffff::1", "POST", "/v1/tenants", { tier: "not judged" }),
      status: 429,
      exact: true,
      body: error("too_many_accounts"),
      headers: { "Retry-After": /^(3600|3[0-5][0-9][0-9])$/ },
      async then(_, { headers }) {
        const again = () => from("2001:db8:1:2::1", "POST", "/v1/tenants");
        expect((await from("2001:db8:1:3::1", "POST", "/v1/tenants")).status).toBe(201);
        expect((await again()).status).toBe(429);
        clock.travel(Number(headers.get("Retry-After")) * 1000);
        expect((await again()).status).toBe(201);
      },
    },
    "an answer that an e-mail is taken counts like an account: nobody can go through a list of them": {
      section: "rules 4",
      given: async () => {
        await paidAccount(server(), "taken@example.com");
        const ask = (n: number) => from(`192.0.2.${n % 2}`, "POST", "/v1/tenants", paid("taken@example.com"));
        expect(new Set(await all(120, ask))).toEqual(new Set([400]));
      },
      request: () => from("192.0.2.1", "POST", "/v1/tenants", paid("TAKEN@example.com")),
      status: 429,
      exact: true,
      body: error("too_many_accounts"),
      then: async () => expect((await from("192.0.2.2", "POST", "/v1/tenants")).status).toBe(201),
    },
    "an http webhook is refused, on loopback too": {
      section: "rules 1",
      request: ({ server }) =>
        server.request("POST", "/v1/tenants", { body: { webhooks: [{ webhook_url: "http://127.0.0.1:9000/" }] } }),
      status: 400,
      exact: true,
      body: error("invalid_webhook_url"),
    },
  });

  scenarios<World>("GET /v1/tenants/{tenantId}/status", world, {
    "600 times a minute for one address, IPv6 by /64, known ids and unknown ones": {
      section: "rules 4",
      given: async () => {
        const { id } = await server().account();
        const status = (n: number) => `/v1/tenants/${n % 2 === 0 ? id : `t${n}`}/status`;
        const asked = await all(600, (n) => from(`2001:db8:2:1::${n.toString(16)}`, "GET", status(n)));
        expect(new Set(asked)).toEqual(new Set([200, 404]));
      },
      request: () => from("2001:db8:2:1:ffff::1", "GET", "/v1/tenants/t1/status"),
      status: 429,
      exact: true,
      body: error("too_many_requests"),
      headers: { "Retry-After": /^(60|[1-5]?[0-9])$/ },
      async then(_, { headers }) {
        const again = (address: string) => from(address, "GET", "/v1/tenants/t1/status");
        expect((await again("2001:db8:2:2::1")).status).toBe(404);
        expect((await from("2001:db8:2:1::1", "GET", "/v1/tenants/t1/jwks.json")).status).toBe(404);
        clock.travel(Number(headers.get("Retry-After")) * 1000);
        expect((await again("2001:db8:2:1::1")).status).toBe(404);
      },
    },
  });

  test("the right-most address outside the proxies counts, whatever a client writes before it", async () => {
    const account = await server().account();
    const logIn = (forwarded: string, password: string) =>
      from(forwarded, "POST", "/v1/tenants/auth/login", { loginId: account.id, password });
    const guesses = await all(10, (n) => logIn(`198.51.100.${n}, 203.0.113.7, 10.9.0.1`, "Wr0ng#Password"));
    expect(guesses).toEqual(Array(10).fill(401));
    expect((await logIn("203.0.113.7", account.password)).status).toBe(429);
    expect((await logIn("203.0.113.8", account.password)).status).toBe(200);
  });

  test("50 failed logins from one address, and 100 for one account, but not from where it has logged in", async () => {
    const account = await server().account();
    const logIn = (address: string, loginId: string, password: string) =>
      from(address, "POST", "/v1/tenants/auth/login", { loginId, password });
    await logIn("192.0.2.200", account.id, account.password);

    // Ten of each account: an unknown one would cost a whole hash.
    const others = await Promise.all(Array.from({ length: 5 }, () => server().request("POST", "/v1/tenants")));
    const guess = (n: number) => logIn("192.0.2.201", others[n % 5]?.body.tenant_id, "x");
    expect(await all(50, guess)).toEqual(Array(50).fill(401));
    expect((await logIn("192.0.2.201", account.id, account.password)).status).toBe(429);
    // Before the body is looked at.
    expect((await logIn("192.0.2.201", "", "")).status).toBe(429);

    expect(await all(100, (n) => logIn(`192.0.2.${n}`, account.id, "x"))).toEqual(Array(100).fill(401));
    const stopped = await logIn("192.0.2.202", account.id, account.password);
    expect([stopped.status, stopped.body]).toEqual([429, error("too_many_logins")]);
    expect((await logIn("192.0.2.200", account.id, account.password)).status).toBe(200);
  });

  const refused = [
    "http://localhost/",
    "https://localhost/",
    "https://127.0.0.1/",
    "https://relay.example.com/v1/ingest",
  ];

  test.each(refused)("a webhook to %s is refused", async (webhook_url) => {
    const account = await server().account();
    const answer = await account.put("/v1/tenants/webhooks", [{ webhook_url }]);
    expect([answer.status, answer.body]).toEqual([400, error("invalid_webhook_url")]);
  });

  test("any Host is answered", async () => {
    const headers = { Host: "relay.example.com", "X-Forwarded-Proto": "https" };
    expect((await rawRequest(server(), "GET", "/healthz", { headers })).status).toBe(200);
  });

  test("/metrics needs the operator token", async () => {
    const { jwt, apiKey } = await server().account();
    for (const token of [undefined, jwt, apiKey, "svc_op_0"]) {
      const answer = await server().request("GET", "/metrics", token === undefined ? {} : { token });
      expect([answer.status, answer.body]).toEqual([401, error("unauthenticated")]);
    }
    const answer = await server().request("GET", "/metrics", { token: server().operatorToken });
    expect([answer.status, answer.text]).toEqual([200, stringMatching(/^# HELP postrider_/)]);
  });
});

test("in public mode, without trusted proxies, X-Forwarded-For is not believed", async () => {
  const server = await startTestApp({ env: publicUrl });
  const create = (n: number) =>
    server.request("POST", "/v1/tenants", { headers: { "X-Forwarded-For": `203.0.113.${n}` } });
  await Promise.all(Array.from({ length: 60 }, (_, n) => create(n)));
  expect((await create(61)).status).toBe(429);
  await server.stop();
});

describe("closed sign-up", () => {
  const server = useServer({ env: { POSTRIDER_SIGNUP: "closed" } });
  const world = (): World => ({ server: server() });
  const create = (body?: unknown) => server().request("POST", "/v1/tenants", body === undefined ? {} : { body });

  scenarios<World>("POST /v1/tenants", world, {
    "is 403": {
      section: "rules 1",
      request: () => create(),
      status: 403,
      exact: true,
      body: error("signup_closed"),
    },
    "for a paid tier, too": {
      section: "rules 1",
      request: () => create(paid("ada@example.com")),
      status: 403,
      exact: true,
      body: error("signup_closed"),
    },
    "whether or not its e-mail is taken: who has an account is told to nobody": {
      section: "rules 4",
      given: () => paidAccount(server(), "taken@example.com"),
      request: () => create(paid("taken@example.com")),
      status: 403,
      exact: true,
      body: error("signup_closed"),
    },
    "a bad body is 400 first": {
      section: "rules 3",
      request: () => create({ tier: "enterprise" }),
      status: 400,
      exact: true,
      body: error("invalid_request"),
    },
  });

  test("the operator makes accounts, and they work", async () => {
    const { operatorToken: token } = server();
    const { status, body } = await server().request("POST", "/operator/tenants", { token, body: {} });
    expect(status).toBe(201);
    const login = { loginId: body.tenant_id, password: body.password };
    expect((await server().request("POST", "/v1/tenants/auth/login", { body: login })).status).toBe(200);
  });
});

describe("the start (rules, section 1)", () => {
  const stops: Record<string, [env: Record<string, string>, words: RegExp]> = {
    "an open listener without a public URL": [{ POSTRIDER_HOST: "0.0.0.0" }, /POSTRIDER_PUBLIC_URL=https:/],
    "a malformed port": [{ POSTRIDER_PORT: "http" }, /POSTRIDER_PORT .*Try: POSTRIDER_PORT=8080/],
    "an unknown setting": [{ POSTRIDER_PROT: "8080" }, /^POSTRIDER_PROT /],
    "a malformed public URL": [{ POSTRIDER_PUBLIC_URL: "relay.example.com" }, /Try: POSTRIDER_PUBLIC_URL=https:/],
    "half a certificate": [{ POSTRIDER_TLS_CERT: "/cert.pem" }, /POSTRIDER_TLS_KEY/],
    "inside targets with open sign-up": [
      { ...publicUrl, POSTRIDER_ALLOW_TARGETS: "10.0.0.0/8" },
      /POSTRIDER_SIGNUP=closed/,
    ],
    "a malformed retry schedule": [{ POSTRIDER_RETRY_SCHEDULE: "soon" }, /POSTRIDER_RETRY_SCHEDULE=5s,5m,30m/],
  };

  test.each(Object.entries(stops))("%s stops it with one line", async (_, [env, words]) => {
    const failed = await startTestApp({ env }).then(
      (server) => server.stop().then(() => "started"),
      ({ message }: Error) => message,
    );
    expect(failed).toMatch(words);
    expect(failed).not.toContain("\n");
  });

  test("one server for a data directory, whose secrets are the user's alone", async () => {
    const dataDir = mkdtempSync(join(tmpdir(), "postrider-test-"));
    const server = await startTestApp({ dataDir });
    await expect(startTestApp({ dataDir })).rejects.toThrow(new RegExp(`process ${process.pid}\\b`));
    for (const name of ["master-key", "session-secret", "operator-token"]) {
      expect([name, statSync(join(dataDir, name)).mode & 0o777]).toEqual([name, 0o600]);
    }
    expect(readdirSync(dataDir).includes("postrider.db")).toBe(!isOnPostgres);
    await server.stop();
  });

  test("inside targets with closed sign-up may be http", async () => {
    const env = { ...publicUrl, POSTRIDER_ALLOW_TARGETS: "10.1.0.0/16", POSTRIDER_SIGNUP: "closed" };
    const server = await startTestApp({ env });
    const { operatorToken: token } = server;
    const create = async (webhook_url: string) =>
      (await server.request("POST", "/operator/tenants", { token, body: { webhooks: [{ webhook_url }] } })).status;
    expect(await create("http://10.1.2.3/hook")).toBe(201);
    expect(await create("http://10.2.2.3/hook")).toBe(400);
    expect(await create("http://169.254.169.254/")).toBe(400);
    await server.stop();
  });

  test("a certificate makes it HTTPS", async () => {
    const authority = createAuthority("Test authority");
    const { cert, key } = authority.issue({ hosts: ["localhost", "127.0.0.1"] });
    const folder = mkdtempSync(join(tmpdir(), "postrider-tls-"));
    await Promise.all([Bun.write(join(folder, "cert.pem"), cert), Bun.write(join(folder, "key.pem"), key)]);
    const env = { POSTRIDER_TLS_CERT: join(folder, "cert.pem"), POSTRIDER_TLS_KEY: join(folder, "key.pem") };
    const server = await startTestApp({ env });
    const response = await fetch(`${server.url.replace("http:", "https:")}/healthz`, { tls: { ca: authority.cert } });
    expect([response.status, await response.json()]).toEqual([200, { status: "ok" }]);
    await server.stop();
    rmSync(folder, { recursive: true });
  });
});

test("/readyz says that events can come in", async () => {
  const server = await startTestApp();
  const answer = await server.request("GET", "/readyz");
  expect([answer.status, answer.body]).toEqual([200, { status: "ok" }]);
  await server.stop();
});

// A database elsewhere takes no room here.
testOnSqlite("/readyz says that none can while the disk is below its floor", async () => {
  const full = await startTestApp({ env: { POSTRIDER_MIN_FREE_DISK: "900000GiB" } });
  const refused = await full.request("GET", "/readyz");
  expect([refused.status, refused.body, refused.headers.get("Retry-After")]).toEqual([
    503,
    error("storage_full"),
    any(String),
  ]);
  await full.stop();
});
