import { describe, expect, test } from "bun:test";
import { ingestOne } from "../support/api-server.ts";
import { testOnSqlite } from "../support/server-data.ts";
import { startTestApp } from "../support/test-app.ts";
import { provenSections, scenarios, useServer } from "./scenario.ts";

provenSections.add("rules 3").add("rules 6").add("rules 13");

const server = useServer();
const world = () => ({ server: server() });

scenarios("GET /healthz", world, {
  "the process answers": {
    section: "rules 3",
    request: ({ server: { request } }) => request("GET", "/healthz"),
    status: 200,
    exact: true,
    body: { status: "ok" },
  },
});

scenarios("GET /readyz", world, {
  "the server can take events": {
    section: "rules 3",
    request: ({ server: { request } }) => request("GET", "/readyz"),
    status: 200,
    exact: true,
    body: { status: "ok" },
  },
});

describe("below the floor of the disk", () => {
  const full = useServer({ env: { POSTRIDER_MIN_FREE_DISK: "900000GiB" } });
  const refusal = { message: expect.stringMatching(/disk/), code: "storage_full" };

  // A database elsewhere takes no room here.
  testOnSqlite("/readyz and ingestion are 503, everything else works", async () => {
    const ready = await full().request("GET", "/readyz");
    expect([ready.status, ready.body]).toEqual([503, refusal]);
    expect(Number(ready.headers.get("retry-after"))).toBeGreaterThan(0);
    expect((await full().request("GET", "/healthz")).status).toBe(200);

    const tenant = await full().account();
    const refused = await tenant.ingest({});
    expect([refused.status, refused.body]).toEqual([503, refusal]);
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
    expect((await tenant.get("/v1/events")).body).toEqual({ events: [], total: 0, totalEvents: 0 });
    expect((await tenant.get("/v1/tenants/me")).body.events_this_month).toBe(0);
  });
});

describe("the metrics", () => {
  test("are plain text for Prometheus and name no account", async () => {
    const tenant = await server().account();
    const eventId = await ingestOne(tenant);
    const { status, headers, text } = await server().request("GET", "/metrics");
    expect([status, headers.get("content-type")]).toEqual([200, expect.stringMatching(/^text\/plain/)]);
    expect(text).not.toContain(tenant.id);
    expect(text).not.toContain(eventId);
  });

  test("take the operator token in public mode", async () => {
    const app = await startTestApp({ env: { POSTRIDER_PUBLIC_URL: "https://relay.example.com" } });
    expect((await app.request("GET", "/metrics")).status).toBe(401);
    expect((await app.request("GET", "/metrics", { token: "svc_op_0" })).status).toBe(401);
    expect((await app.request("GET", "/metrics", { token: app.operatorToken })).status).toBe(200);
    await app.stop();
  });
});
