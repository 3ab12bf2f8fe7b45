import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { refusalCodes } from "../../src/http/refusal-codes.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { type ClockNews, createSteadyClock } from "../../src/lib/steady-clock.ts";
import { databaseFile } from "../../src/store/sqlite/open.ts";
import { batchOf, closedPort, ingestOne, outcome, type RecordBody, register, until } from "../support/api-server.ts";
import { isOnPostgres, testOnSqlite } from "../support/server-data.ts";
import { mountSmallDisk } from "../support/small-disk.ts";
import { startTestApp, type TestAccount, type TestApp } from "../support/test-app.ts";
import { provenSections, useServer } from "./scenario.ts";

/** What goes wrong is in the log, once and with its cause; and what the operator can read of it in the metrics. */
provenSections.add("rules 13");

type Line = Record<string, unknown> & { event: string; level: string; address?: string };

const linesOf = ({ log }: TestApp, event: string): Line[] =>
  log.map((line) => JSON.parse(line) as Line).filter((line) => line.event === event);

async function metric(server: TestApp, name: string): Promise<number> {
  const { text } = await server.request("GET", "/metrics", { token: server.operatorToken });
  const line = text.split("\n").find((one) => one.startsWith(`${name} `));
  if (!line) throw new Error(`There is no metric ${name}`);
  return Number(line.slice(name.length + 1));
}

const logIn = (server: TestApp, loginId: string, password: string, headers?: Record<string, string>) =>
  server.request("POST", "/v1/tenants/auth/login", { body: { loginId, password }, ...(headers && { headers }) });

describe("failed logins and wrong operator tokens", () => {
  const server = useServer({
    env: { POSTRIDER_PUBLIC_URL: "https://relay.example.com", POSTRIDER_TRUSTED_PROXIES: "127.0.0.1/32" },
  });
  const from = (address: string) => ({ "X-Forwarded-For": address });

  /** As fail2ban reads the filter of the page for operators. */
  const banned = (line: string): string | null => {
    const page = readFileSync(join(import.meta.dir, "../../docs/operating.md"), "utf8");
    const [, failregex = ""] = /^failregex = (.*)$/m.exec(page) ?? [];
    expect(failregex).toContain("<HOST>");
    return new RegExp(failregex.replace("<HOST>", "(?<host>[\\w.:]+)")).exec(line)?.groups?.host ?? null;
  };

  test("are a line each with the address, and the filter for fail2ban finds it", async () => {
    const tenant = await server().account();
    expect((await logIn(server(), tenant.id, "Wr0ng#Guess", from("203.0.113.9"))).status).toBe(401);
    expect((await logIn(server(), "Secr3t#InTheWrongField", "x", from("2001:db8::7"))).status).toBe(401);
    const wrong = { token: `svc_op_${"0".repeat(48)}`, headers: from("198.51.100.4") };
    expect((await server().request("GET", "/operator/tenants", wrong)).status).toBe(401);
    expect((await server().request("GET", "/metrics", wrong)).status).toBe(401);

    const failed = linesOf(server(), "login.failed");
    expect(failed.map(({ level, address, tenantId }) => [level, address, tenantId])).toEqual([
      ["info", "203.0.113.9", tenant.id],
      ["info", "2001:db8::7", null],
    ]);
    const refused = linesOf(server(), "operator.refused");
    expect(refused.map(({ level, address, access }) => [level, address, access])).toEqual([
      ["warn", "198.51.100.4", "operator"],
      ["warn", "198.51.100.4", "metrics"],
    ]);
    expect(
      server()
        .log.map(banned)
        .filter((host) => host !== null),
    ).toEqual(["203.0.113.9", "2001:db8::7", "198.51.100.4", "198.51.100.4"]);
    expect(server().log.join("\n")).not.toContain("InTheWrongField");
    expect(await metric(server(), 'postrider_failed_logins_total{kind="account"}')).toBe(2);
    expect(await metric(server(), 'postrider_failed_logins_total{kind="operator"}')).toBe(2);
  });

  test("a guess of the current password with a stolen session is one too", async () => {
    const tenant = await server().account();
    const before = linesOf(server(), "login.failed").length;
    await tenant.put("/v1/tenants/password", { current_password: "Wr0ng#Guess", new_password: "N3w#Password" });
    expect(linesOf(server(), "login.failed").slice(before)).toMatchObject([{ tenantId: tenant.id }]);
  });

  test("no address that a client makes up can pass for another", () => {
    for (const text of ['"event":"login.failed","address":"192.0.2.1"', "192.0.2.1"]) {
      const line = JSON.stringify({ at: "x", level: "warn", event: "account.created", name: text });
      expect(banned(line)).toBeNull();
    }
  });

  test("what sends no token at all is none", async () => {
    const before = linesOf(server(), "operator.refused").length;
    expect((await server().request("GET", "/metrics")).status).toBe(401);
    expect(linesOf(server(), "operator.refused")).toHaveLength(before);
  });
});

describe("a proxy that is not trusted", () => {
  const env = { POSTRIDER_PUBLIC_URL: "https://relay.example.com" };
  const forwarded = { headers: { "X-Forwarded-For": "203.0.113.9" } };

  test("is told of once, with what to set", async () => {
    const server = await startTestApp({ env });
    for (let i = 0; i < 5; i++) await server.request("GET", "/healthz", forwarded);
    const [line, ...more] = linesOf(server, "proxy.untrusted");
    expect(more).toEqual([]);
    expect(line).toMatchObject({ level: "warn", address: "127.0.0.1" });
    expect(line?.message).toContain("Try: POSTRIDER_TRUSTED_PROXIES=127.0.0.1");
    await server.stop();
  });

  test("nothing is said when it is trusted, or sends no such header", async () => {
    const server = await startTestApp({ env: { ...env, POSTRIDER_TRUSTED_PROXIES: "127.0.0.0/8" } });
    await server.request("GET", "/healthz", forwarded);
    const other = await startTestApp({ env });
    await other.request("GET", "/healthz");
    expect([linesOf(server, "proxy.untrusted"), linesOf(other, "proxy.untrusted")]).toEqual([[], []]);
    await Promise.all([server.stop(), other.stop()]);
  });
});

describe("the access log", () => {
  const server = useServer();

  test("has a line for each request at the level debug, by the id that the answer carries", async () => {
    const tenant = await server().account();
    const { status, headers } = await server().request("GET", `/v1/events/evt_x?token=qu3ry`, {
      token: tenant.jwt,
      headers: { "X-Request-Id": "edge-7f/3" },
    });
    const requestId = headers.get("request-id");
    expect(requestId).toMatch(/^[0-9a-z]{8}-\d+$/);
    const [line] = linesOf(server(), "request.answered").filter((one) => one.requestId === requestId);
    expect(line).toMatchObject({
      level: "debug",
      clientRequestId: "edge-7f/3",
      method: "GET",
      route: "/v1/events/:id",
      status,
      code: "event_not_found",
      ms: expect.any(Number),
      tenantId: tenant.id,
      address: "127.0.0.1",
    });
    expect(server().log.join("\n")).not.toContain("qu3ry");
  });

  test("tells how much was read and answered", async () => {
    const tenant = await server().account();
    const { text, headers } = await tenant.ingest({ total: 1 });
    const requestId = headers.get("request-id");
    const [line] = linesOf(server(), "request.answered").filter((one) => one.requestId === requestId);
    expect(line).toMatchObject({
      status: 202,
      requestBytes: '{"payload":{"total":1}}'.length,
      responseBytes: text.length,
    });
  });

  test("ids differ, and a client's own is never taken for ours", async () => {
    const ask = (id: string) => server().request("GET", "/healthz", { headers: { "X-Request-Id": id } });
    const answers = [await ask("a"), await ask("a"), await ask("x".repeat(10_000)), await ask('a" b')];
    const ids = answers.map(({ headers }) => headers.get("request-id"));
    expect(new Set(ids).size).toBe(4);
    const lines = linesOf(server(), "request.answered").filter(({ requestId }) => ids.includes(String(requestId)));
    expect(lines.map(({ clientRequestId }) => clientRequestId)).toEqual(["a", "a", null, null]);
  });

  test("a defect is logged under the id that the client is told", async () => {
    const tenant = await server().account();
    const { usage } = server().app.store;
    server().app.store.usage = () => Promise.reject(new Error("made for this test"));
    const { status, headers, body } = await tenant.get("/v1/tenants/me");
    server().app.store.usage = usage;
    const requestId = headers.get("request-id") ?? "none";
    expect([status, body.code]).toEqual([500, "internal_error"]);
    expect(body.message).toContain(requestId);
    expect(linesOf(server(), "request.failed")).toMatchObject([{ requestId, path: "/v1/tenants/me" }]);
  });

  test("errors carry the id too", async () => {
    const { headers } = await server().request("GET", "/v1/tenants/me");
    expect(headers.get("request-id")).not.toBeNull();
  });
});

test("a change that the program fails to act on is made and answered, and the defect is logged", async () => {
  const server = await startTestApp();
  const tenant = await server.account();
  server.app.store.onChange(() => {
    throw new Error("made for this test");
  });
  const { status } = await tenant.post("/v1/tenants/auth/logout");
  expect([status, (await tenant.get("/v1/tenants/me")).status]).toEqual([204, 401]);
  const error = expect.stringContaining("made for this test");
  expect(linesOf(server, "change.unheeded")).toMatchObject([{ level: "error", error }]);
  await server.stop();
});

test("what the operator does is logged with who did it and to whom", async () => {
  const server = await startTestApp();
  const tenant = await server.account();
  const operator = (method: string, path: string, headers?: Record<string, string>) =>
    server.request(method, `/operator/tenants${path}`, { token: server.operatorToken, ...(headers && { headers }) });
  await operator("POST", `/${tenant.id}/suspend`);
  await operator("POST", `/${tenant.id}/resume`, { "Postrider-Operator": "ada" });
  await operator("DELETE", `/${tenant.id}`, { "Postrider-Operator": "<script> ada" });
  const made = await operator("POST", "");
  await operator("GET", "");
  await operator("POST", "/t0000000000000/suspend");
  const acts = linesOf(server, "operator.acted");
  expect(acts.map(({ act, tenantId, by, address }) => [act, tenantId, by, address])).toEqual([
    ["POST /operator/tenants/:id/suspend", tenant.id, "operator token", "127.0.0.1"],
    ["POST /operator/tenants/:id/resume", tenant.id, "command of ada", "127.0.0.1"],
    ["DELETE /operator/tenants/:id", tenant.id, "operator token", "127.0.0.1"],
    ["POST /operator/tenants", made.body.tenant_id, "operator token", "127.0.0.1"],
  ]);
  await server.stop();
});

// A database elsewhere takes no room here.
testOnSqlite("a server that starts below the floor of the disk says so before it refuses anything", async () => {
  const server = await startTestApp({ env: { POSTRIDER_MIN_FREE_DISK: "900000GiB" } });
  expect(linesOf(server, "disk.low")).toMatchObject([{ level: "warn", floorBytes: 900_000 * 2 ** 30 }]);
  await server.stop();
});

const smallDisk = mountSmallDisk(32);

describe.skipIf(smallDisk === null || isOnPostgres)("a database on a disk of its own", () => {
  afterAll(() => smallDisk?.unmount());

  test("is what the floor is for, not the data directory with a link to it", async () => {
    const dataDir = mkdtempSync(join(tmpdir(), "postrider-linked-"));
    symlinkSync(join(smallDisk?.folder ?? "", databaseFile), join(dataDir, databaseFile));
    const server = await startTestApp({ dataDir, env: { POSTRIDER_MIN_FREE_DISK: "256MiB" } });
    expect(linesOf(server, "disk.low")).toHaveLength(1);
    expect(await metric(server, "postrider_disk_free_bytes")).toBeLessThan(32 * 2 ** 20);
    const tenant = await server.account();
    expect((await tenant.ingest({})).status).toBe(503);
    await server.stop();
  });
});

describe("a storage that is full", () => {
  testOnSqlite(
    "is told of once, whatever it refuses, and counted",
    async () => {
      const server = await startTestApp({ maxPageCount: 500 });
      const tenant = await server.account();
      for (let refused = 0; refused < 20; ) {
        const { status } = await batchOf(server, tenant, 20, { text: "x".repeat(2000) });
        if (status === 503) refused += 1;
      }
      const lines = linesOf(server, "storage.failed");
      expect(lines).toHaveLength(1);
      expect(lines[0]).toMatchObject({ level: "warn", code: "SQLITE_FULL", operation: expect.any(String) });
      expect(await metric(server, 'postrider_storage_errors_total{class="full"}')).toBeGreaterThanOrEqual(20);
      expect(await metric(server, 'postrider_refusals_total{code="storage_full"}')).toBe(20);
      await server.stop();
    },
    120_000,
  );
});

describe("a clock that is 40 days ahead for a while", () => {
  const aheadMs = 40 * 24 * 3_600_000;

  test("is in no id, and takes nobody's session or quota away", async () => {
    let stepped = 0;
    const source = { ...systemClock, now: () => systemClock.now() + stepped };
    const news: ClockNews[] = [];
    const uptimeMs = systemClock.monotonicMs;
    const server = await startTestApp({
      clock: createSteadyClock({ source, uptimeMs, tell: (one) => void news.push(one) }),
    });
    const tenant = await server.account();
    const ids = [await ingestOne(tenant)];
    stepped = aheadMs;
    ids.push(await ingestOne(tenant));
    stepped = 0;
    ids.push(await ingestOne(tenant));

    const { events } = (await tenant.get("/v1/events")).body;
    expect(events.map(({ eventId }: RecordBody) => eventId).reverse()).toEqual(ids);
    expect([...ids].sort()).toEqual(ids);
    for (const { ingestionTimestamp } of events) {
      expect(Math.abs(Date.parse(ingestionTimestamp) - Date.now())).toBeLessThan(60_000);
    }
    expect((await tenant.get("/v1/tenants/me")).body.events_this_month).toBe(3);
    expect(news.map(({ kind }) => kind)).toEqual(["ahead", "ahead_over"]);
    expect(linesOf(server, "clock.behind_ids")).toEqual([]);
    await server.stop();
  });

  test("is named when it was believed by an earlier run: until when ids are ahead", async () => {
    let stepped = aheadMs;
    const clock = { ...systemClock, now: () => systemClock.now() + stepped };
    const server = await startTestApp({ clock });
    const tenant = await server.account();
    await ingestOne(tenant);
    stepped = 0;
    await ingestOne(tenant);
    await ingestOne(tenant);
    const [line, ...more] = await until(
      () => linesOf(server, "clock.behind_ids"),
      (lines) => lines.length > 0,
    );
    expect(more).toEqual([]);
    expect(Math.abs(Date.parse(String(line?.until)) - Date.now() - aheadMs)).toBeLessThan(60_000);
    await server.stop();
  });
});

describe("a webhook that is dead", () => {
  let server: TestApp;
  let tenant: TestAccount;
  let port: number;

  beforeAll(async () => {
    server = await startTestApp({ env: { POSTRIDER_RETRY_SCHEDULE: "5ms,5ms,5ms" } });
    tenant = await server.account();
    port = await closedPort();
    await register(tenant, `http://127.0.0.1:${port}/t0ken?key=qu3ry`);
  });
  afterAll(() => server.stop());

  test("is one line, with the reason, the webhook's id and its host", async () => {
    for (let i = 0; i < 10; i++) await outcome(tenant, await ingestOne(tenant));
    const [webhook] = (await tenant.get("/v1/tenants/webhooks")).body;
    const failing = await until(
      () => linesOf(server, "webhook.failing"),
      (lines) => lines.length > 0,
    );
    expect(failing).toHaveLength(1);
    expect(failing[0]).toMatchObject({
      level: "warn",
      webhookId: webhook.id,
      host: `127.0.0.1:${port}`,
      code: "connection_refused",
      reason: `Connection refused by 127.0.0.1:${port}`,
      tenantId: tenant.id,
    });
    expect(server.log.join("\n")).not.toMatch(/t0ken|qu3ry/);
    expect(await metric(server, 'postrider_delivery_attempt_errors_total{class="connection_refused"}')).toBe(40);
  });
});

describe("the metrics", () => {
  const token = "scrape-4d1f9a7c2b60e85317aa";
  const publicMode = { POSTRIDER_PUBLIC_URL: "https://relay.example.com", POSTRIDER_METRICS_TOKEN: token };

  test("are read with the metrics token, which opens nothing else, and with the operator's", async () => {
    const server = await startTestApp({ env: publicMode });
    const ask = (path: string, bearer: string) => server.request("GET", path, { token: bearer });
    expect((await ask("/metrics", token)).status).toBe(200);
    expect((await ask("/metrics", server.operatorToken)).status).toBe(200);
    for (const path of ["/operator/tenants", "/v1/tenants/me"]) expect((await ask(path, token)).status).toBe(401);
    expect((await server.request("POST", "/operator/token/rotate", { token })).status).toBe(401);
    expect((await server.request("POST", "/v1/ingest", { token, body: {} })).status).toBe(401);
    for (const wrong of ["", token.slice(0, -1), `${token}0`, token.toUpperCase()]) {
      const { status, body } = await ask("/metrics", wrong);
      expect([status, body.code]).toEqual([401, "unauthenticated"]);
    }
    expect(server.log.join("\n")).not.toContain(token);
    await server.stop();
  });

  test("every counter with labels begins with 0, so that a rate can be told from its first count", async () => {
    const server = await startTestApp();
    const { text } = await server.request("GET", "/metrics");
    const has = (series: string) => expect(text).toContain(`\n${series} 0\n`);
    for (const code of refusalCodes) has(`postrider_refusals_total{code="${code}"}`);
    const unanswered = ["timeout", "dns_failed", "connection_refused", "tls_failed", "connection_reset"];
    for (const name of ["http_3xx", "http_4xx", "http_429", "http_5xx", ...unanswered]) {
      has(`postrider_delivery_attempt_errors_total{class="${name}"}`);
    }
    for (const outcome of ["delivered", "retry", "failed"])
      has(`postrider_delivery_attempts_total{outcome="${outcome}"}`);
    for (const kind of ["account", "operator"]) has(`postrider_failed_logins_total{kind="${kind}"}`);
    for (const name of ["full", "ioerr", "corrupt", "readonly"]) has(`postrider_storage_errors_total{class="${name}"}`);
    has('postrider_http_requests_total{method="POST",route="/v1/ingest",status="202"}');
    has("postrider_log_lines_suppressed_total");
    has("postrider_connections_shed_total");
    has("postrider_payment_lookups_unknown_total");
    await server.stop();
  });

  test("say what is built, what is free and what is used", async () => {
    const server = await startTestApp({ env: { POSTRIDER_MIN_FREE_DISK: "1MiB" } });
    const { text } = await server.request("GET", "/metrics");
    expect(text).toMatch(
      /^postrider_build_info\{version="\d+\.\d+\.\d+",commit="[0-9a-f]{12}|unknown",bun="1\.4\.5"\} 1$/m,
    );
    // A database elsewhere has no floor here.
    expect(await metric(server, "postrider_disk_floor_bytes")).toBe(isOnPostgres ? 0 : 2 ** 20);
    expect(await metric(server, "postrider_disk_free_bytes")).toBeGreaterThanOrEqual(4096);
    for (const name of ["postrider_database_bytes", "postrider_database_log_bytes"]) {
      // A server of PostgreSQL tells its own.
      expect(await metric(server, name)).toBeGreaterThanOrEqual(isOnPostgres ? 0 : 4096);
    }
    if (process.platform === "linux") {
      const open = await metric(server, "process_open_fds");
      expect(open).toBeGreaterThan(5);
      expect(await metric(server, "process_max_fds")).toBeGreaterThan(open);
    }
    await server.stop();
  });

  test("refusals are counted by their code, those of paths that are none too", async () => {
    const server = await startTestApp();
    await server.request("GET", "/v1/nowhere");
    await server.request("PATCH", "/v1/ingest");
    await server.request("GET", "/v1/tenants/me");
    for (const code of ["unknown_path", "method_not_allowed", "unauthenticated"]) {
      expect(await metric(server, `postrider_refusals_total{code="${code}"}`)).toBe(1);
    }
    await server.stop();
  });
});

test("variables of a container platform are named in a warning", async () => {
  const server = await startTestApp({ env: { POSTRIDER_SERVICE_HOST: "10.96.0.12", POSTRIDER_SERVICE_PORT: "80" } });
  expect(linesOf(server, "config.foreign_variables")).toMatchObject([
    { level: "warn", names: "POSTRIDER_SERVICE_HOST, POSTRIDER_SERVICE_PORT" },
  ]);
  await server.stop();
});
