import { beforeAll, expect, test } from "bun:test";
import type { TestAccount } from "../support/test-app.ts";
import { scenarios, useServer } from "./scenario.ts";

/** Rules, section 16: who did what. */

const server = useServer({
  env: { POSTRIDER_PUBLIC_URL: "https://relay.example", POSTRIDER_TRUSTED_PROXIES: "127.0.0.1" },
});
const webhook = "https://receiver.example/hook?token=s3cret";
let ada: TestAccount;

const from = (address: string) => ({ "X-Forwarded-For": address });
const logIn = (password: string, address: string) =>
  server().request("POST", "/v1/tenants/auth/login", {
    body: { loginId: ada.id, password },
    headers: from(address),
  });

/** The newest first, as the account sees them. */
const entries = async (query = "") => (await ada.get(`/v1/audit?${query}`)).body.entries;

beforeAll(async () => {
  ada = await server().account();
});

const { any } = expect;
const world = () => ({ server: server(), ada });
const entry = (fields: object) => ({ by: "account", via: null, address: "127.0.0.1", times: 1, ...fields });

scenarios("GET /v1/audit", world, {
  "says what the account did, from where, and never what is secret": {
    section: "rules 16",
    async given() {
      await ada.put("/v1/tenants/webhooks", [
        { webhook_url: webhook, webhook_name: "x", headers: { Authorization: "Bearer s3cret" } },
      ]);
      await ada.post("/v1/tenants/api-keys/rotate");
      await ada.post("/v1/tenants/signing-secret/rotate");
      await ada.post("/v1/events/replays/all", { replayGroupId: "again" });
    },
    request: () => ada.get("/v1/audit?size=5"),
    status: 200,
    body: {
      entries: [
        entry({ action: "replay.started", detail: { replay: any(String), kind: "all" } }),
        entry({ action: "signing_secret.rotated", detail: {} }),
        entry({ action: "api_key.rotated", detail: { key: any(String) } }),
        entry({ action: "webhooks.changed", detail: { added: ["https://receiver.example/hook"] } }),
        entry({ action: "api_key.shown", at: any(String), last_at: any(String) }),
      ],
      total: 7,
      total_is_exact: true,
    },
    never: () => ["s3cret", "whsec_", "svc_sk_"],
  },
  "narrows it to an action and a time": {
    section: "rules 16",
    request: () => ada.get("/v1/audit?action=account.created&from=2026-01-01&to=2100-01-01"),
    status: 200,
    body: { entries: [entry({ action: "account.created", detail: { tier: "free" } })], total: 1 },
  },
  "refuses an action that there is not": {
    section: "rules 16",
    request: () => ada.get("/v1/audit?action=nothing"),
    status: 400,
    body: { message: expect.stringMatching(/^action must be the name of an action, such as webhooks\.changed/) },
  },
  "shows nothing of another account, nor from where the operator came": {
    section: "rules 16",
    async given() {
      const eve = await server().account();
      await server().request("POST", `/operator/tenants/${eve.id}/suspend`, { token: server().operatorToken });
      await ada.setTier("pro");
    },
    request: () => ada.get("/v1/audit?size=1"),
    status: 200,
    body: {
      entries: [entry({ action: "tier.set", by: "operator", address: null, detail: { tier: "pro" } })],
      total: 8,
    },
  },
});

test("showing the API keys or the signing secret is counted by address", async () => {
  const eve = await server().account();
  const show = (what: string, address: string) =>
    server().request("GET", `/v1/tenants/${what}`, { token: eve.jwt, headers: from(address) });
  for (const what of ["api-keys", "signing-secret"])
    for (const address of ["203.0.113.1", "203.0.113.2", "203.0.113.1"]) await show(what, address);
  for (const action of ["api_key.shown", "signing_secret.shown"]) {
    const { body } = await eve.get(`/v1/audit?action=${action}`);
    const counts = body.entries.map(({ by, address, times }: Record<string, unknown>) => [by, address, times]);
    expect([action, counts.slice(0, 2)]).toEqual([
      action,
      [
        ["account", "203.0.113.2", 1],
        ["account", "203.0.113.1", 2],
      ],
    ]);
  }
});

test("failed logins are counted by address, with the address that the proxy names", async () => {
  for (let i = 0; i < 3; i++) await logIn("wrong", "203.0.113.7");
  await logIn(ada.password, "203.0.113.8");
  // They are written together, a little later.
  let failed = [];
  while (failed.length === 0) failed = await entries("action=login.failed");
  expect(failed).toMatchObject([{ by: "stranger", address: "203.0.113.7", times: 3 }]);
  expect(await entries("action=login&size=1")).toMatchObject([{ by: "account", address: "203.0.113.8" }]);
});

test("the operator sees what is done with every account, with the server and by whom, also when one is gone", async () => {
  const operator = async (query: string, method = "GET", path = `audit?${query}`) =>
    (await server().request(method, `/operator/${path}`, { token: server().operatorToken })).body;
  const gone = await server().account();
  const tenantIds = async (query: string) =>
    (await operator(query)).entries.map((one: { tenant_id: string }) => one.tenant_id);
  await operator("", "DELETE", `tenants/${gone.id}`);
  expect(await operator(`tenant=${gone.id}&size=1`)).toMatchObject({
    entries: [{ action: "account.deleted", tenant_id: gone.id, by: "operator", via: "operator token" }],
  });
  expect(await tenantIds("action=tier.set")).toEqual([ada.id]);
  await server().request("POST", "/operator/session", { body: { token: server().operatorToken } });
  expect(await operator("tenant=&action=operator.login")).toMatchObject({
    entries: [{ tenant_id: null, via: "operator in a browser", address: "127.0.0.1" }],
    total: 1,
  });
  expect((await server().request("GET", "/operator/audit", { token: "svc_op_wrong" })).status).toBe(401);
  let refused = [];
  while (refused.length === 0) refused = (await operator("action=operator.refused")).entries;
  expect(refused).toMatchObject([{ tenant_id: null, by: "stranger" }]);
});
