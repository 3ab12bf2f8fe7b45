import { beforeAll, describe, expect, test } from "bun:test";
import { isoPattern, register, startHooks, until } from "../support/api-server.ts";
import type { TestAccount } from "../support/test-app.ts";
import { useServer } from "./scenario.ts";

/** Rules, section 17: what the operator's page shows and does. */

const server = useServer();
let ada: TestAccount;

beforeAll(async () => {
  ada = await server().account({ name: "Ada's shop" });
});

const operator = (method: string, path: string, body?: unknown) =>
  server().request(method, `/operator${path}`, {
    token: server().operatorToken,
    ...(body !== undefined && { body }),
  });

describe("the figures of the server", () => {
  test("count what has happened since its start", async () => {
    const before = (await operator("GET", "/status")).body;
    await ada.ingest({ n: 1 });
    const { status, body } = await operator("GET", "/status");
    expect(status).toBe(200);
    expect(body).toMatchObject({
      started_at: expect.stringMatching(isoPattern),
      paused: [],
      queue: { waiting: expect.any(Number), in_flight: expect.any(Number) },
      since_start: { events: before.since_start.events + 1 },
    });
    for (const bytes of ["disk_free_bytes", "disk_floor_bytes"]) expect(body.storage[bytes]).toBeGreaterThanOrEqual(0);
    expect(body.memory_bytes).toBeGreaterThan(2 ** 20);
  });
});

describe("accounts", () => {
  test("are found by a part of their name", async () => {
    const { body } = await operator("GET", `/tenants?q=${encodeURIComponent(" S SHOP ")}`);
    expect(body).toMatchObject({ total: 1, tenants: [{ tenant_id: ada.id }] });
    expect((await operator("GET", "/tenants?q=nobody-is-called-this")).body).toEqual({ total: 0, tenants: [] });
    expect((await operator("GET", `/tenants?q=${"x".repeat(201)}`)).status).toBe(400);
  });

  test("are suspended for a reason, which they read in their audit", async () => {
    const bob = await server().account();
    const reason = "Sends spam.";
    expect((await operator("POST", `/tenants/${bob.id}/suspend`, { reason: "x".repeat(501) })).status).toBe(400);
    expect((await operator("POST", `/tenants/${bob.id}/suspend`, { reason })).status).toBe(200);
    const { body } = await bob.get("/v1/audit?action=account.suspended");
    expect(body.entries).toMatchObject([{ action: "account.suspended", detail: { reason } }]);
  });
});

describe("failing webhooks", () => {
  test("of all accounts are listed, without the query of their URL", async () => {
    const hooks = await startHooks();
    const eve = await server().account({ name: "Eve" });
    const url = `${hooks.hook(410).url}?key=s3cret`;
    await register(eve, { webhook_url: url, name: "Shop" });
    // The first one may be chance: it is noted once it lasts.
    for (const n of [1, 2]) await eve.ingest({ n });
    const { body, text } = await until(
      () => operator("GET", "/failing-webhooks"),
      (answer) => answer.body.webhooks.length > 0,
    );
    expect(body.webhooks).toMatchObject([{ tenant_id: eve.id, tenant_name: "Eve", name: "Shop", disabled_at: null }]);
    expect(text).not.toContain("s3cret");
    hooks.stop();
  });
});

describe("looking at an account", () => {
  test("reads what it reads, changes nothing, sees no secret, and is in its audit", async () => {
    const { status, body } = await operator("POST", `/tenants/${ada.id}/view`);
    expect({ status, body }).toMatchObject({ status: 201, body: { tenant_id: ada.id, expires_in_seconds: 1800 } });
    const look = (method: string, path: string) => server().request(method, path, { token: body.token });
    expect((await look("GET", "/v1/tenants/me")).body).toMatchObject({ tenant_id: ada.id });
    expect((await look("GET", "/v1/events?page=0&size=1")).status).toBe(200);
    for (const [method, path] of [
      ["GET", "/v1/tenants/api-keys"],
      ["GET", "/v1/tenants/signing-secret"],
      ["POST", "/v1/tenants/auth/refresh"],
      ["POST", "/v1/events/replays/all"],
      ["PUT", "/v1/tenants/webhooks"],
      ["DELETE", "/v1/tenants"],
    ] as const) {
      expect({ method, path, ...(await look(method, path)) }).toMatchObject({
        method,
        path,
        status: 403,
        body: { code: "read_only_session" },
      });
    }
    expect((await ada.get("/v1/audit?action=account.viewed")).body.entries).toMatchObject([{ by: "operator" }]);
    expect((await operator("POST", "/tenants/t0000000000000/view")).status).toBe(404);
  });
});
