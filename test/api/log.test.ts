import { afterAll, beforeAll, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gate, type Hooks, outcome, register, startHooks, until } from "../support/api-server.ts";
import { startTestApp, type TestAccount, type TestApp } from "../support/test-app.ts";

/**
 * Rules, section 3, and hazards, section 5, "Logs": whatever happens on a server, its log has no password, token, key,
 * secret or payload. One server lives through all of it, at the level debug.
 */

const secrets = new Map<string, string>();
const chosen = { first: "Ch0sen#Password", second: "Ch4nged#Password", weak: "w3ak-passw0rd", wrong: "Wr0ng#Guess" };

let server: TestApp;
let hooks: Hooks;
let log: string[];

beforeAll(async () => {
  server = await startTestApp();
  hooks = await startHooks();
  for (const [name, password] of Object.entries(chosen)) secrets.set(`the ${name} password`, password);
  secrets.set("the payload", "payl0ad-text").set("a response body", "resp0nse-body").set("a query", "qu3ry-secret");
  await liveThroughEverything();
  for (const file of ["master-key", "session-secret", "operator-token"]) {
    secrets.set(file, readFileSync(join(server.dataDir, file), "utf8").trim());
  }
  await server.stop();
  log = server.log;
});
afterAll(() => hooks.stop());

const logIn = (loginId: string, password: string) =>
  server.request("POST", "/v1/tenants/auth/login", { body: { loginId, password } });

async function collect(who: string, account: TestAccount): Promise<void> {
  secrets.set(`${who}'s password`, account.password);
  secrets.set(`${who}'s JWT`, account.jwt).set(`${who}'s JWT signature`, account.jwt.split(".")[2] ?? "");
  secrets.set(`${who}'s API key`, account.apiKey);
  secrets.set(`${who}'s signing secret`, (await account.get("/v1/tenants/signing-secret")).body.secret);
}

async function liveThroughEverything(): Promise<void> {
  const { operatorToken } = server;
  const operator = (method: string, path: string, body?: unknown) =>
    server.request(method, `/operator/tenants${path}`, { token: operatorToken, ...(body !== undefined && { body }) });

  const ada = await server.account({ name: "Ada", email: "ada@example.com", password: chosen.first });
  await collect("ada", ada);
  await collect("eve", await server.account());

  // Requests that fail, with secrets where they do and do not belong.
  await logIn(ada.id, chosen.wrong);
  await logIn(chosen.wrong, chosen.first);
  await server.request("POST", "/v1/tenants", { body: { password: chosen.weak, email: chosen.first } });
  await server.request("POST", "/v1/tenants", { body: `{"password": "${chosen.first}"` });
  await server.request("POST", "/v1/tenants/auth/login", {
    body: chosen.first,
    headers: { "Content-Type": "text/plain" },
  });
  await server.request("GET", `/v1/tenants/${ada.jwt}/status?token=qu3ry-secret`);
  await server.request("GET", `/v1/${ada.apiKey}?payload=payl0ad-text`);
  await server.request("PATCH", `/v1/tenants/me?key=${ada.apiKey}`);
  await server.request("GET", "/v1/tenants/me", { token: `${ada.jwt}x` });
  await server.request("POST", "/v1/ingest", { token: ada.apiKey, body: '{"payload": "payl0ad-text' });
  await ada.post("/v1/tenants/upgrade", { tier: "pro", email: "a@b.cc", password: chosen.first });
  for (let i = 0; i < 11; i++) await logIn("t0000000000000", chosen.wrong);

  // Deliveries that succeed, fail, are retried, tested, replayed.
  const hook = hooks.hook((response) => response.writeHead(503).end("resp0nse-body"));
  await register(ada, `${hook.url}`);
  const { eventId } = (await ada.ingest({ text: "payl0ad-text" }, { "Idempotency-Key": "qu3ry-secret" })).body;
  await outcome(ada, eventId);
  hook.answer = 200;
  const [{ id: webhookId }] = (await ada.get("/v1/tenants/webhooks")).body;
  await ada.post(`/v1/tenants/webhooks/${webhookId}/test`);
  await ada.post("/v1/events/replays/single", { eventId, replayGroupId: "single" });
  await ada.post("/v1/events/replays/all", { replayGroupId: "all" });
  await until(
    async () => (await ada.get("/v1/events/replays")).body.replays,
    (replays: { status: string }[]) => replays.every(({ status }) => status === "completed"),
  );
  await server.app.whenIdle();
  for (const path of ["attempts", "delivery"]) await ada.get(`/v1/events/${eventId}/${path}`);
  const preview = (await ada.get(`/v1/events/${eventId}/delivery`)).body.headers;
  secrets.set("a signature", preview["Service-Signature"]);

  // A defect in the middle of a request.
  const { usage } = server.app.store;
  server.app.store.usage = () => Promise.reject(new Error("made for this test"));
  await ada.get("/v1/tenants/me");
  server.app.store.usage = usage;

  // A stream, rotations, sessions and their ends.
  const stream = await fetch(`${server.url}/v1/stream`, { headers: { Authorization: `Bearer ${ada.jwt}` } });
  const { key } = (await ada.post("/v1/tenants/api-keys/rotate", { grace_period_seconds: 60 })).body;
  secrets.set("the new API key", key);
  await ada.post("/v1/tenants/signing-keys/rotate");
  secrets.set("the new signing secret", (await ada.post("/v1/tenants/signing-secret/rotate")).body.secret);
  const renewed = (await ada.post("/v1/tenants/auth/refresh")).body.token;
  secrets.set("the renewed JWT", renewed);
  const change = { current_password: chosen.first, new_password: chosen.second };
  const changed = (await server.request("PUT", "/v1/tenants/password", { token: renewed, body: change })).body.token;
  secrets.set("the JWT after the change", changed);
  await stream.text();

  // The operator, and the end.
  await operator("PUT", `/${ada.id}/tier`, { tier: "business" });
  await operator("POST", `/${ada.id}/suspend`);
  await operator("POST", `/${ada.id}/resume`);
  secrets.set("the reset password", (await operator("POST", `/${ada.id}/reset-password`)).body.password);
  const made = await operator("POST", "", { tier: "pro", name: "P", email: "p@example.com", password: chosen.first });
  await operator("DELETE", `/${made.body.tenant_id}`);
  await server.request("GET", "/metrics");
  const held = gate();
  const slow = hooks.hook(held.answer);
  const eve = await server.account();
  await register(eve, slow.url);
  await eve.ingest({ text: "payl0ad-text" });
  await slow.whenReceived(1);
  await eve.delete("/v1/tenants");
  held.open();
}

test("the log tells what happened, one JSON object a line", () => {
  const events = new Set(log.map((line) => JSON.parse(line).event));
  for (const event of ["server.started", "account.created", "account.suspended", "account.deleted", "request.failed"]) {
    expect(events).toContain(event);
  }
  expect(log.join("\n")).toContain("made for this test");
});

test("every attempt of a delivery is one line, whatever became of it", () => {
  const attempts = log.map((line) => JSON.parse(line)).filter(({ event }) => event === "delivery.attempted");
  expect(new Set(attempts.map(({ outcome }) => outcome))).toContain("delivered");
  for (const attempt of attempts) {
    expect(attempt).toMatchObject({
      level: "debug",
      eventId: expect.stringMatching(/^evt_/),
      host: expect.stringMatching(/^127\.0\.0\.1:\d+$/),
      attempt: expect.any(Number),
      durationMs: expect.any(Number),
      sinceAcceptedMs: expect.any(Number),
      errorCode: attempt.outcome === "delivered" ? null : "http_status",
    });
  }
});

test("no line has a secret", () => {
  expect(secrets.size).toBeGreaterThan(20);
  for (const [name, secret] of secrets) {
    expect([name, secret.length >= 8]).toEqual([name, true]);
    expect({ secret: name, lines: log.filter((line) => line.includes(secret)) }).toEqual({ secret: name, lines: [] });
  }
});

test("no line has what looks like one", () => {
  for (const pattern of [
    /svc_sk_/,
    /svc_op_/,
    /whsec_/,
    /\$argon2/,
    /eyJ[\w-]{10}/,
    /Bearer /,
    /PRIVATE KEY/,
    /"password"/,
  ]) {
    expect({ pattern, lines: log.filter((line) => pattern.test(line)) }).toEqual({ pattern, lines: [] });
  }
});
