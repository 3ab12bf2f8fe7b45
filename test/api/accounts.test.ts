// biome-ignore-all lint/suspicious/noThenProperty: rows of a scenario table have one
import { beforeAll, expect } from "bun:test";
import { isoPattern } from "../support/api-server.ts";
import type { TestAccount, TestApp } from "../support/test-app.ts";
import { type Scenario, scenarios, useServer } from "./scenario.ts";

/** Specification, "Accounts"; rules, section 4. Paid plans, on a server that takes no payments: 503 after full validation. */

const { any, stringMatching } = expect;

interface World {
  server: TestApp;
  ada: TestAccount;
}

const goodPassword = "Corr3ct#Horse";
const paid = { tier: "pro", name: "Ada Ltd", email: "ada@example.com", password: goodPassword };
const hook = (n: number) => ({ webhook_url: `https://example.com/hooks/${n}` });

const server = useServer();
let ada: TestAccount;

beforeAll(async () => {
  ada = await server().account();
  const taken = { tier: "pro", name: "First", email: "Taken@Example.com", password: goodPassword };
  await operator("POST", "/operator/tenants", taken);
});

const world = (): World => ({ server: server(), ada });

const operator = (method: string, path: string, body?: unknown) =>
  server().request(method, path, { token: server().operatorToken, ...(body !== undefined && { body }) });

const create = (body?: unknown) => server().request("POST", "/v1/tenants", body === undefined ? {} : { body });

const accountsNow = async (): Promise<number> => (await operator("GET", "/operator/tenants")).body.total;

/** 400 with exactly this code and a sentence that names the field; nothing is made. */
function refusal(body: unknown, code: string, message: RegExp): Scenario<World> {
  let before = 0;
  return {
    section: "spec: Accounts",
    async given() {
      before = await accountsNow();
    },
    request: () => create(body),
    status: 400,
    exact: true,
    body: { message: stringMatching(message), code },
    never: () => [goodPassword, "argon2", "valibot"],
    then: async () => expect(await accountsNow()).toBe(before),
  };
}

const generated = {
  tenant_id: stringMatching(/^t[0-9a-hjkmnp-tv-z]{13}$/),
  tier: "free",
  name: stringMatching(/^Sandbox [A-Z][a-z]+ [A-Z][a-z]+ \d\d$/),
  email: stringMatching(/^sandbox\+t[0-9a-z]{13}@postrider\.invalid$/),
  password: stringMatching(/^(?=.*[a-z])(?=.*[A-Z])(?=.*\d)(?=.*[@#$%^&+=!]).{8,}$/),
};

scenarios<World>("POST /v1/tenants", world, {
  "no body makes a free account with everything generated": {
    section: "spec: Tenant",
    request: () => create(),
    status: 201,
    exact: true,
    body: generated,
    headers: { "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff" },
    never: () => ["argon2", "svc_sk_", "whsec_"],
    then: async ({ server }, { body }) => {
      expect(body.email).toBe(`sandbox+${body.tenant_id}@postrider.invalid`);
      const credentials = { loginId: body.tenant_id, password: body.password };
      expect((await server.request("POST", "/v1/tenants/auth/login", { body: credentials })).status).toBe(200);
    },
  },
  "an empty object, too": {
    section: "rules 4",
    request: () => create({}),
    status: 201,
    exact: true,
    body: generated,
  },
  "the free tier by name, too": {
    section: "spec: Accounts",
    request: () => create({ tier: "free" }),
    status: 201,
    exact: true,
    body: generated,
  },
  "what is given is used, and the password is shown": {
    section: "rules 4",
    request: () => create({ name: "Ada's shop", email: "Ada@Shop.example", password: goodPassword }),
    status: 201,
    exact: true,
    body: {
      tenant_id: any(String),
      tier: "free",
      name: "Ada's shop",
      email: "Ada@Shop.example",
      password: goodPassword,
    },
  },
  "a free account's e-mail is contact only: not unique, not a login id": {
    section: "rules 4",
    given: () => create({ email: "shared@example.com", password: goodPassword }),
    request: () => create({ email: "shared@example.com", password: goodPassword }),
    status: 201,
    then: async ({ server }) => {
      const body = { loginId: "shared@example.com", password: goodPassword };
      expect((await server.request("POST", "/v1/tenants/auth/login", { body })).status).toBe(401);
    },
  },
  "a free account may have the e-mail of a paid one": {
    section: "rules 4",
    request: () => create({ email: "taken@example.com" }),
    status: 201,
  },
  "unknown fields are ignored": {
    section: "spec: Accounts",
    request: () => create({ tenant_id: "tmine", enforced_tier: "business", isAdmin: true }),
    status: 201,
    exact: true,
    body: generated,
  },
  "webhooks at creation are registered": {
    section: "spec: Accounts",
    request: () => create({ webhooks: [{ ...hook(1), name: "Orders" }], password: goodPassword }),
    status: 201,
    then: async ({ server }, { body: { tenant_id } }) => {
      const login = { body: { loginId: tenant_id, password: goodPassword } };
      const { token } = (await server.request("POST", "/v1/tenants/auth/login", login)).body;
      expect((await server.request("GET", "/v1/tenants/webhooks", { token })).body).toEqual([
        { id: any(String), url: "https://example.com/hooks/1", name: "Orders" },
      ]);
    },
  },
  "too many webhooks for the plan asked for, and nothing is made": refusal(
    { webhooks: [hook(1), hook(2)] },
    "too_many_webhooks",
    /^webhooks .*1 entry/,
  ),
  "three webhooks on business are too many": refusal(
    { ...paid, tier: "business", webhooks: [hook(1), hook(2), hook(3)] },
    "too_many_webhooks",
    /^webhooks .*2 entries/,
  ),
  "two webhooks on business pass the validation": {
    section: "rules 4",
    request: () => create({ ...paid, tier: "business", webhooks: [hook(1), hook(2)] }),
    status: 503,
  },
  "one bad webhook, and nothing is made": refusal(
    { ...paid, tier: "business", webhooks: [hook(1), { webhook_url: "https://10.0.0.1/" }] },
    "invalid_webhook_url",
    /^webhooks\[1\]\.webhook_url must /,
  ),
  "webhooks that are no array": refusal({ webhooks: hook(1) }, "invalid_request", /^webhooks must be an array/),
  "a webhook without a URL": refusal({ webhooks: [{}] }, "field_required", /^webhooks\[0\]\.webhook_url is required/),
  "enterprise is the operator's to assign": refusal({ ...paid, tier: "enterprise" }, "invalid_request", /^tier must/),
  "an unknown tier": refusal({ tier: "gold" }, "invalid_request", /^tier must/),
  "a tier that is null": refusal({ tier: null }, "invalid_request", /^tier must/),
  "a tier that is an array": refusal({ tier: ["free"] }, "invalid_request", /^tier must/),
  "a paid tier without a name": refusal({ ...paid, name: undefined }, "field_required", /^name is required/),
  "a paid tier without an e-mail": refusal({ ...paid, email: undefined }, "field_required", /^email is required/),
  "a paid tier without a password": refusal(
    { ...paid, password: undefined },
    "field_required",
    /^password is required/,
  ),
  "an e-mail that is taken, in other case": refusal({ ...paid, email: "tAkEn@example.COM" }, "email_taken", /^email /),
  "a name that is empty": refusal({ name: "" }, "invalid_request", /^name must/),
  "a name that is blank": refusal({ name: "   " }, "invalid_request", /^name must/),
  "a name of 201 characters": refusal({ name: "n".repeat(201) }, "invalid_request", /^name must have at most 200/),
  "a name that is a number": refusal({ name: 7 }, "invalid_request", /^name must be a string/),
  "a password that is a number": refusal({ password: 12345678 }, "invalid_request", /^password must be a string/),
  "a password of 1,025 bytes": refusal(
    { password: `${goodPassword}${"x".repeat(1012)}` },
    "weak_password",
    /1,024 bytes/,
  ),
  "a valid paid account, on a server that takes no payments": {
    section: "rules 12",
    request: () => create(paid),
    status: 503,
    exact: true,
    body: { message: any(String), code: "payments_unavailable" },
    headers: { "Retry-After": /^\d+$/ },
    then: async () => expect((await create(paid)).body.code).toBe("payments_unavailable"),
  },
});

/** Specification, "Password rules": one password for each class, which misses that one only. */
const weak = {
  "seven characters": ["Abc12#x", /at least 8 characters\.$/],
  "no uppercase letter": ["abcdef1#", /at least one uppercase letter\.$/],
  "no lowercase letter": ["ABCDEF1#", /at least one lowercase letter\.$/],
  "no digit": ["Abcdefg#", /at least one digit\.$/],
  "no special character": ["Abcdefg1", /at least one special character from @ # \$ % \^ & \+ = !\.$/],
  "a special character that is not in the list": ["Abcdef1*?-_", /at least one special character/],
  "nothing at all": ["", /8 characters.*uppercase.*lowercase.*digit.*special/],
} as const;

scenarios<World>(
  "POST /v1/tenants",
  world,
  Object.fromEntries(
    Object.entries(weak).flatMap(([name, [password, message]]) => [
      [`a pro password with ${name}`, refusal({ ...paid, password }, "weak_password", message)],
      [`a free password with ${name}`, refusal({ password }, "weak_password", message)],
    ]),
  ),
);

scenarios<World>(
  "POST /v1/tenants",
  world,
  Object.fromEntries(
    [..."@#$%^&+=!"].map((special) => [
      `${special} is a special character`,
      {
        section: "spec: Limits",
        request: () => create({ password: `Abcdef1${special}` }),
        status: 201,
        body: { password: `Abcdef1${special}` },
      } satisfies Scenario<World>,
    ]),
  ),
);

const badEmails = ["", "ada", "ada@", "@example.com", "ada@example", "a b@example.com", "a@b@example.com", "ada@.com"];
const wrongEmails: unknown[] = [...badEmails, `${"a".repeat(250)}@b.cc`, 7, null, ["ada@example.com"], {}];

scenarios<World>(
  "POST /v1/tenants",
  world,
  Object.fromEntries(
    wrongEmails.flatMap((email) => [
      [
        `email ${JSON.stringify(email).slice(0, 24)} on pro`,
        refusal({ ...paid, email }, "invalid_request", /^email must/),
      ],
      [`email ${JSON.stringify(email).slice(0, 24)} on free`, refusal({ email }, "invalid_request", /^email must/)],
    ]),
  ),
);

const plans = {
  free: [10_000, 1],
  pro: [5_000_000, 1],
  business: [25_000_000, 2],
  enterprise: [100_000_000, 3],
} as const;

scenarios<World>("GET /v1/tenants/me", world, {
  ...Object.fromEntries(
    Object.entries(plans).map(([tier, [events, webhooks]]) => [
      `the ${tier} account with its limits`,
      {
        section: "spec: Limits",
        given: async ({ ada }) => ada.setTier(tier),
        request: ({ ada }) => ada.get("/v1/tenants/me"),
        status: 200,
        exact: true,
        body: ({ ada }: World) => ({
          tenant_id: ada.id,
          tenant_name: any(String),
          tier,
          max_events_per_month: events,
          email: `sandbox+${ada.id}@postrider.invalid`,
          enforced_tier: tier,
          enforced_events_per_month: events,
          enforced_webhooks: webhooks,
          events_this_month: 0,
          storage_bytes: 0,
          status: "active",
          suspended_by: [],
          created_at: stringMatching(isoPattern),
          retention_seconds: null,
          retention_payloads_seconds: null,
          retention_by_size: false,
          refused_this_month: { quota: 0, inactive: 0, invalid: 0 },
        }),
        never: ({ ada }) => [ada.password, ada.apiKey, "argon2", "whsec_"],
      } satisfies Scenario<World>,
    ]),
  ),
  "says when it was made": {
    section: "rules 2",
    request: ({ ada }) => ada.get("/v1/tenants/me"),
    status: 200,
    async then({ ada }, { body }) {
      const made = (await operator("GET", "/operator/tenants")).body.tenants;
      expect(body.created_at).toBe(
        made.find((tenant: { tenant_id: string }) => tenant.tenant_id === ada.id).created_at,
      );
    },
  },
  "counts the events of this month": {
    section: "rules 4",
    given: ({ ada }) => ada.ingest({ n: 1 }),
    request: ({ ada }) => ada.get("/v1/tenants/me"),
    status: 200,
    body: { events_this_month: 1 },
  },
});

scenarios<World>("GET /v1/tenants/{tenantId}/status", world, {
  "an active tenant, for anybody": {
    section: "spec: Accounts",
    request: ({ server, ada }) => server.request("GET", `/v1/tenants/${ada.id}/status`),
    status: 200,
    exact: true,
    body: { status: "active" },
    headers: { "Cache-Control": "no-store" },
  },
  ...Object.fromEntries(
    ["t0000000000000", "nobody", "__proto__", "%zz", "' or 1=1 --", "taken@example.com"].map((id) => [
      `an unknown tenant ${id}`,
      {
        section: "spec: Errors",
        request: ({ server }: World) => server.request("GET", `/v1/tenants/${id}/status`),
        status: 404,
        exact: true,
        body: { message: any(String), code: "tenant_not_found" },
      },
    ]),
  ),
});
