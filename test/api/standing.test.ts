import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  createTravelClock,
  gate,
  type Hook,
  type Hooks,
  ingestOne,
  isoPattern,
  register,
  seedTenant,
  startHooks,
  until,
} from "../support/api-server.ts";
import { edit } from "../support/server-data.ts";
import type { Answer, TestAccount } from "../support/test-app.ts";
import { useServer } from "./scenario.ts";

/** Rules, section 4: what an account may do while it is suspended or its card is not verified. */

const { any, stringMatching } = expect;

const clock = createTravelClock();
const server = useServer({ clock });
const goodPassword = "Corr3ct#Horse";
let hooks: Hooks;

beforeAll(async () => {
  hooks = await startHooks();
});
afterAll(() => hooks.stop());

const operator = (method: string, path: string): Promise<Answer> =>
  server().request(method, `/operator/tenants${path}`, { token: server().operatorToken });

const logIn = (loginId: string, password: string): Promise<Answer> =>
  server().request("POST", "/v1/tenants/auth/login", { body: { loginId, password } });

const tenantKey = async (id: string): Promise<number> => (await server().app.store.findTenant(id))?.key ?? -1;

const error = (code: string, message = /\.$/) => ({ message: stringMatching(message), code });

// ---------------------------------------------------------------- suspension

const causes = {
  operator: { status: 403, suspend: (id: string) => operator("POST", `/${id}/suspend`) },
  payment: {
    status: 402,
    suspend: async (id: string) => server().app.store.suspend(await tenantKey(id), "payment", clock.now()),
  },
} as const;

describe.each(Object.entries(causes))("an account suspended by %s", (cause, { status, suspend }) => {
  let account: TestAccount;
  let eventId: string;
  let target: Hook;

  beforeAll(async () => {
    target = hooks.hook();
    account = await server().account();
    await account.setTier("pro");
    await register(account, target.url);
    eventId = await ingestOne(account, { n: 1 });
    await target.whenReceived(1);
    await suspend(account.id);
  });

  const fields: Record<string, object> = {
    timeline: { startTime: "2026-01-01", endTime: "2026-12-31" },
    all: {},
    failed: {},
  };
  const work: Record<string, { section: string; request(): Promise<Answer> }> = {
    ingestion: { section: "rules 4", request: () => account.ingest({}) },
    "a batch": {
      section: "rules 4",
      request: () =>
        server().request("POST", "/v1/ingest/batch", { token: account.apiKey, body: { events: [{ payload: {} }] } }),
    },
    "a single replay": {
      section: "rules 4",
      request: () => account.post("/v1/events/replays/single", { eventId, replayGroupId: "g" }),
    },
    ...Object.fromEntries(
      Object.entries(fields).map(([kind, needed]) => [
        `a replay of ${kind}`,
        {
          section: "rules 4",
          request: () => account.post(`/v1/events/replays/${kind}`, { replayGroupId: "g", ...needed }),
        },
      ]),
    ),
    "a webhook test": {
      section: "rules 4",
      request: async () =>
        account.post(`/v1/tenants/webhooks/${(await account.get("/v1/tenants/webhooks")).body[0].id}/test`),
    },
    "an upgrade": {
      section: "rules 4",
      request: () => account.post("/v1/tenants/upgrade", { tier: "business" }),
    },
  };

  test.each(Object.entries(work))("%s is refused", async (_, { request }) => {
    const answer = await request();
    expect({ status: answer.status, body: answer.body }).toEqual({ status, body: error("account_suspended") });
    expect(target.received).toHaveLength(1);
  });

  const readable = ["tenants/me", "tenants/webhooks", "tenants/api-keys", "tenants/signing-secret", "events", "stats"];

  test.each([...readable, "events/replays", "events/state/DELIVERED"])("GET /v1/%s works", async (path) => {
    expect((await account.get(`/v1/${path}`)).status).toBe(200);
  });

  test("where nothing is sold, is sent to the operator and to no card", async () => {
    expect((await account.ingest({})).body.message).toMatch(
      /suspended.*; ask (?:the operator of this server|them to resume it)\.$/,
    );
  });

  test("says so, and to the operator why", async () => {
    expect((await account.get("/v1/tenants/me")).body.status).toBe("suspended");
    const shown = await server().request("GET", `/v1/tenants/${account.id}/status`);
    expect(shown.body).toEqual({ status: "suspended" });
    expect((await operator("GET", `/${account.id}`)).body.suspended_by).toEqual([cause]);
  });

  test("payment-method, login and deletion work", async () => {
    expect((await account.post("/v1/tenants/payment-method")).body.code).toBe("payments_unavailable");
    expect((await logIn(account.id, account.password)).status).toBe(200);
    expect((await account.delete("/v1/tenants")).status).toBe(204);
  });
});

test("the operator's resume ends the operator's suspension only", async () => {
  const account = await server().account();
  await causes.payment.suspend(account.id);
  await causes.operator.suspend(account.id);
  expect((await account.ingest({})).status).toBe(403);
  const resumed = await operator("POST", `/${account.id}/resume`);
  expect(resumed.body).toMatchObject({ status: "suspended", suspended_by: ["payment"] });
  expect((await account.ingest({})).status).toBe(402);
  await server().app.store.resume(await tenantKey(account.id), "payment");
  expect((await account.ingest({})).status).toBe(202);
});

test("accepted deliveries go on under a suspension for payment, and pause under the operator's", async () => {
  const held = { operator: gate(503), payment: gate(503) };
  const begin = async (cause: "operator" | "payment") => {
    const target = hooks.hook(held[cause].answer);
    const account = await server().account();
    await register(account, target.url);
    const eventId = await ingestOne(account);
    await target.whenReceived(1);
    await causes[cause].suspend(account.id);
    held[cause].open();
    target.answer = 200;
    await until(
      async () => (await account.get(`/v1/events/${eventId}`)).body[0],
      ({ attempts }) => attempts >= 1,
    );
    return { target, account };
  };
  const paused = await begin("operator");
  const going = await begin("payment");
  clock.travel(60_000);
  await going.target.whenReceived(2);
  expect(paused.target.received).toHaveLength(1);
  await operator("POST", `/${paused.account.id}/resume`);
  await paused.target.whenReceived(2);
});

// ---------------------------------------------------------------- card verification

/** An account as billing will make it, with a session. */
async function seedAccount(plan: Parameters<typeof seedTenant>[1]) {
  const { tenant, apiKey } = await seedTenant(server(), plan);
  await server().app.store.setPassword(
    tenant.key,
    await Bun.password.hash(goodPassword, { algorithm: "argon2id", memoryCost: 1024, timeCost: 1 }),
  );
  const { token } = (await logIn(tenant.id, goodPassword)).body;
  const as = (method: string, path: string, body?: unknown) =>
    server().request(method, path, { token, ...(body !== undefined && { body }) });
  const ingest = () => server().request("POST", "/v1/ingest", { token: apiKey, body: { payload: {} } });
  return { id: tenant.id, as, ingest };
}

const twoHooks = [{ webhook_url: "https://example.com/1" }, { webhook_url: "https://example.com/2" }];

test("an account made on a paid tier takes events only once it is active; where nothing is sold, no card is spoken of", async () => {
  const { id, as, ingest } = await seedAccount({ tier: "business", enforcedTier: null });
  const refused = await ingest();
  expect({ status: refused.status, body: refused.body }).toEqual({
    status: 402,
    body: error("card_not_verified", /^The account is not active yet; ask the operator/),
  });
  expect((await server().request("GET", `/v1/tenants/${id}/status`)).body).toEqual({ status: "pending_verification" });
  expect((await as("GET", "/v1/tenants/me")).body).toEqual({
    tenant_id: id,
    tenant_name: any(String),
    tier: "business",
    max_events_per_month: 25_000_000,
    email: any(String),
    enforced_tier: null,
    enforced_events_per_month: 0,
    enforced_webhooks: 2,
    events_this_month: 0,
    status: "pending_verification",
    suspended_by: [],
    created_at: stringMatching(isoPattern),
    retention_seconds: null,
    retention_payloads_seconds: null,
    retention_by_size: false,
    // Written once a second: the one above is still in memory.
    refused_this_month: any(Object),
    storage_bytes: 0,
  });
  expect((await as("PUT", "/v1/tenants/webhooks", twoHooks)).status).toBe(200);
});

test("an account that upgrades never stops, and the old limits stay in force", async () => {
  const { as, ingest } = await seedAccount({ tier: "business", enforcedTier: "free" });
  expect((await ingest()).status).toBe(202);
  expect((await as("GET", "/v1/tenants/me")).body).toMatchObject({
    tier: "business",
    max_events_per_month: 25_000_000,
    enforced_tier: "free",
    enforced_events_per_month: 10_000,
    enforced_webhooks: 1,
    events_this_month: 1,
    status: "pending_verification",
  });
  const refused = await as("PUT", "/v1/tenants/webhooks", twoHooks);
  expect([refused.status, refused.body.code]).toEqual([400, "too_many_webhooks"]);
});

test("past due is shown to the account and not to the public, and stops upgrades alone", async () => {
  const { id, as, ingest } = await seedAccount({ tier: "pro" });
  await edit(server(), `update tenant set past_due_at = ${clock.now()} where id = '${id}'`);
  expect((await server().request("GET", `/v1/tenants/${id}/status`)).body).toEqual({ status: "active" });
  expect((await as("GET", "/v1/tenants/me")).body.status).toBe("past_due");
  expect((await ingest()).status).toBe(202);
  const refused = await as("POST", "/v1/tenants/upgrade", { tier: "business" });
  expect([refused.status, refused.body]).toEqual([402, error("charge_outstanding", /; ask the operator/)]);
});
