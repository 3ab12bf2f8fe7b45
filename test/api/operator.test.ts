// biome-ignore-all lint/suspicious/noThenProperty: rows of a scenario table have one
import { beforeAll, expect, test } from "bun:test";
import { isoPattern } from "../support/api-server.ts";
import type { Answer, TestAccount } from "../support/test-app.ts";
import { useServer } from "./scenario.ts";

/** Rules, section 13: the operator's endpoints. */

const { any, objectContaining, stringMatching } = expect;

const server = useServer();
const goodPassword = "Corr3ct#Horse";
let ada: TestAccount;

beforeAll(async () => {
  ada = await server().account();
});

const operator = (method: string, path: string, body?: unknown): Promise<Answer> =>
  server().request(method, `/operator/tenants${path}`, {
    token: server().operatorToken,
    ...(body !== undefined && { body }),
  });

const logIn = async (loginId: string, password: string): Promise<number> =>
  (await server().request("POST", "/v1/tenants/auth/login", { body: { loginId, password } })).status;

const record = (fields: object = {}) => ({
  tenant_id: any(String),
  tenant_name: any(String),
  email: any(String),
  tier: "free",
  enforced_tier: "free",
  status: "active",
  suspended_by: [],
  created_at: stringMatching(isoPattern),
  ...fields,
});

const error = (code: string, message = /\.$/) => ({ message: stringMatching(message), code });

/** A row: what the operator asks, and the whole answer. These endpoints are not in the public document. */
interface Row {
  section: string;
  request(): Promise<Answer>;
  status: number;
  body: unknown;
  then?(answer: Answer): Promise<unknown>;
}

function operatorScenarios(endpoint: string, rows: Record<string, Row>): void {
  test.each(Object.entries(rows))(`${endpoint}: %s`, async (_, row) => {
    const answer = await row.request();
    expect({ status: answer.status, body: answer.body }).toEqual({ status: row.status, body: row.body });
    for (const secret of ["argon2", "svc_sk_", "whsec_", server().operatorToken])
      expect(answer.text).not.toContain(secret);
    await row.then?.(answer);
  });
}

const refused = (request: () => Promise<Answer>, code: string, message?: RegExp): Row => ({
  section: "rules 13",
  request,
  status: code === "tenant_not_found" ? 404 : 400,
  body: error(code, message),
});

const paid = { tier: "pro", name: "Ada Ltd", email: "Ada@Example.com" };
const hook = (n: number) => ({ webhook_url: `https://example.com/${n}` });

operatorScenarios("POST /operator/tenants", {
  "a free account with nothing given": {
    section: "rules 13",
    request: () => operator("POST", ""),
    status: 201,
    body: { tenant_id: any(String), tier: "free", name: any(String), email: any(String), password: any(String) },
  },
  "a paid account is in force at once, its password generated and shown": {
    section: "rules 13",
    request: () => operator("POST", "", paid),
    status: 201,
    body: { tenant_id: any(String), ...paid, password: any(String) },
    async then({ body: { tenant_id, password } }) {
      expect((await operator("GET", `/${tenant_id}`)).body).toMatchObject({ enforced_tier: "pro", status: "active" });
      expect(await logIn("ada@example.com", password)).toBe(200);
    },
  },
  "an enterprise account with a password and three webhooks": {
    section: "rules 4",
    request: () =>
      operator("POST", "", {
        ...{ tier: "enterprise", name: "Bank", email: "bank@example.com", password: goodPassword },
        webhooks: [hook(1), hook(2), hook(3)],
      }),
    status: 201,
    body: {
      tenant_id: any(String),
      tier: "enterprise",
      name: "Bank",
      email: "bank@example.com",
      password: goodPassword,
    },
  },
  "without a name": refused(() => operator("POST", "", { ...paid, name: undefined }), "field_required", /^name /),
  "without an e-mail": refused(() => operator("POST", "", { ...paid, email: undefined }), "field_required", /^email /),
  "a taken e-mail": refused(
    () => operator("POST", "", { ...paid, email: "ADA@example.com" }),
    "email_taken",
    /^email /,
  ),
  "a weak password": refused(() => operator("POST", "", { password: "short" }), "weak_password", /^password /),
  "too many webhooks": refused(() => operator("POST", "", { webhooks: [hook(1), hook(2)] }), "too_many_webhooks"),
  "an unknown tier": refused(() => operator("POST", "", { tier: "gold" }), "invalid_request", /^tier must/),
});

operatorScenarios("GET /operator/tenants", {
  "a page, the newest first": {
    section: "rules 13",
    request: () => operator("GET", "?page=0&size=2"),
    status: 200,
    body: {
      tenants: [
        record({ tier: "enterprise", enforced_tier: "enterprise" }),
        record({ tier: "pro", enforced_tier: "pro" }),
      ],
      total: 4,
    },
  },
  "a page behind the last": {
    section: "rules 13",
    request: () => operator("GET", "?page=9"),
    status: 200,
    body: { tenants: [], total: 4 },
  },
  "a size of 0": refused(() => operator("GET", "?size=0"), "invalid_request", /^size must be at least 1\.$/),
  "a size of 1,001": refused(() => operator("GET", "?size=1001"), "invalid_request", /^size must be at most 1000\.$/),
  "a page of -1": refused(() => operator("GET", "?page=-1"), "invalid_request", /^page must be at least 0\.$/),
});

const noLimits = {
  ...{ events_per_month: null, webhooks: null },
  ...{ retention_days: null, retention_payloads_days: null, storage_bytes: null },
};
const detail = {
  ...{ max_events_per_month: 10_000, max_webhooks: 1, events_this_month: 0, storage_bytes: 0, webhooks: 0 },
  limits: noLimits,
  refused_this_month: expect.any(Object),
};
const limited = { max_events_per_month: 2, max_webhooks: 5, limits: { ...noLimits, events_per_month: 2, webhooks: 5 } };
const kept = { retention_days: 30, retention_payloads_days: 0, storage_bytes: 1_000_000 };
/** To be refused, when that is not for what is in it. */
const oneWebhook = { webhooks: 1 };
const unknown = "/t0000000000000";

operatorScenarios("/operator/tenants/{id}", {
  "GET shows it": {
    section: "rules 13",
    request: () => operator("GET", `/${ada.id}`),
    status: 200,
    body: record(detail),
  },
  "GET of an unknown one": refused(() => operator("GET", unknown), "tenant_not_found"),
  "PUT tier": {
    section: "rules 4",
    request: () => operator("PUT", `/${ada.id}/tier`, { tier: "enterprise" }),
    status: 200,
    body: record({ tier: "enterprise", enforced_tier: "enterprise" }),
  },
  "PUT tier free again, and webhooks beyond its limit stay": {
    section: "rules 13",
    async request() {
      await ada.put("/v1/tenants/webhooks", [hook(1), hook(2), hook(3)]);
      return operator("PUT", `/${ada.id}/tier`, { tier: "free" });
    },
    status: 200,
    body: record(),
    then: async () => expect((await operator("GET", `/${ada.id}`)).body).toEqual(record({ ...detail, webhooks: 3 })),
  },
  "PUT tier when its e-mail is another's login": {
    section: "rules 4",
    async request() {
      const { id } = await server().account({ email: "ada@EXAMPLE.com", password: goodPassword });
      return operator("PUT", `/${id}/tier`, { tier: "pro" });
    },
    status: 400,
    body: error("email_taken"),
  },
  "PUT tier makes the e-mail a login, and free unmakes it": {
    section: "rules 4",
    async request() {
      const { id } = await server().account({ email: "Eve@example.com", password: goodPassword });
      await operator("PUT", `/${id}/tier`, { tier: "pro" });
      expect(await logIn("eve@EXAMPLE.com", goodPassword)).toBe(200);
      return operator("PUT", `/${id}/tier`, { tier: "free" });
    },
    status: 200,
    body: record(),
    then: async () => expect(await logIn("eve@example.com", goodPassword)).toBe(401),
  },
  "PUT an unknown tier": refused(
    () => operator("PUT", `/${ada.id}/tier`, { tier: "x" }),
    "invalid_request",
    /^tier must/,
  ),
  "PUT no tier": refused(() => operator("PUT", `/${ada.id}/tier`, {}), "field_required", /^tier is required/),
  "PUT tier of an unknown one": refused(() => operator("PUT", `${unknown}/tier`, { tier: "pro" }), "tenant_not_found"),
  "PUT limits are in force at once and whatever the tier": {
    section: "rules 4",
    async request() {
      await operator("PUT", `/${ada.id}/limits`, { events_per_month: 2, webhooks: 5 });
      await ada.setTier("pro");
      await ada.put("/v1/tenants/webhooks", [1, 2, 3, 4, 5].map(hook));
      return operator("GET", `/${ada.id}`);
    },
    status: 200,
    body: record({ ...detail, ...limited, tier: "pro", enforced_tier: "pro", webhooks: 5 }),
    async then() {
      const shown = { max_events_per_month: 2, enforced_events_per_month: 2, enforced_webhooks: 5 };
      expect((await ada.get("/v1/tenants/me")).body).toMatchObject(shown);
      const six = await ada.put("/v1/tenants/webhooks", [1, 2, 3, 4, 5, 6].map(hook));
      expect(six.body).toMatchObject({ code: "too_many_webhooks" });
      const submitted = [await ada.ingest({}), await ada.ingest({}), await ada.ingest({})];
      expect(submitted.map(({ status }) => status)).toEqual([202, 202, 429]);
    },
  },
  "PUT limits leaves those that it does not name, and null resets": {
    section: "rules 4",
    request: () => operator("PUT", `/${ada.id}/limits`, { events_per_month: null }),
    status: 200,
    body: objectContaining({
      max_events_per_month: 5_000_000,
      max_webhooks: 5,
      limits: { ...noLimits, webhooks: 5 },
    }),
    then: async () => void (await operator("PUT", `/${ada.id}/limits`, { webhooks: null })),
  },
  "PUT limits of what is kept": {
    section: "rules 16",
    request: () => operator("PUT", `/${ada.id}/limits`, kept),
    status: 200,
    body: objectContaining({ limits: { ...noLimits, ...kept } }),
    async then() {
      const shown = { retention_seconds: 30 * 86_400, retention_payloads_seconds: 30 * 86_400 };
      expect((await ada.get("/v1/tenants/me")).body).toMatchObject(shown);
      await operator("PUT", `/${ada.id}/limits`, noLimits);
    },
  },
  "PUT limits of what is kept, beyond ten years": refused(
    () => operator("PUT", `/${ada.id}/limits`, { retention_days: 3_651 }),
    "invalid_request",
    /^retention_days must be a whole number from 0 to 3650, 0 for ever, or null/,
  ),
  "PUT limits of an unknown one": refused(() => operator("PUT", `${unknown}/limits`, oneWebhook), "tenant_not_found"),
  "PUT no limits": refused(
    () => operator("PUT", `/${ada.id}/limits`, {}),
    "invalid_request",
    /must name at least one of events_per_month, webhooks/,
  ),
  "PUT 101 webhooks": refused(
    () => operator("PUT", `/${ada.id}/limits`, { webhooks: 101 }),
    "invalid_request",
    /^webhooks must be a whole number from 0 to 100, or null/,
  ),
  "PUT half an event": refused(
    () => operator("PUT", `/${ada.id}/limits`, { events_per_month: 0.5 }),
    "invalid_request",
    /^events_per_month must be a whole number/,
  ),
  "POST suspend an unknown one": refused(() => operator("POST", `${unknown}/suspend`), "tenant_not_found"),
  "POST resume an unknown one": refused(() => operator("POST", `${unknown}/resume`), "tenant_not_found"),
  "POST reset-password of an unknown one": refused(
    () => operator("POST", `${unknown}/reset-password`),
    "tenant_not_found",
  ),
  "DELETE an unknown one": refused(() => operator("DELETE", unknown), "tenant_not_found"),
  "POST reset-password ends every session": {
    section: "rules 4",
    request: () => operator("POST", `/${ada.id}/reset-password`),
    status: 200,
    body: { tenant_id: any(String), password: any(String) },
    async then({ body: { password } }) {
      expect((await ada.get("/v1/tenants/me")).status).toBe(401);
      expect([await logIn(ada.id, ada.password), await logIn(ada.id, password)]).toEqual([401, 200]);
    },
  },
  "DELETE deletes it": {
    section: "rules 13",
    request: () => operator("DELETE", `/${ada.id}`),
    status: 204,
    body: undefined,
    async then() {
      expect((await operator("GET", `/${ada.id}`)).status).toBe(404);
      expect((await server().request("GET", `/v1/tenants/${ada.id}/status`)).status).toBe(404);
      expect((await ada.ingest({})).status).toBe(401);
    },
  },
});

test("none of it is in the public document", async () => {
  const { paths } = (await server().request("GET", "/openapi.json")).body;
  expect(Object.keys(paths).filter((path) => path.startsWith("/operator"))).toEqual([]);
});
