// biome-ignore-all lint/suspicious/noThenProperty: rows of a scenario table have one
import { beforeAll, describe, expect, test } from "bun:test";
import { ingestOne, register, startHooks } from "../support/api-server.ts";
import type { Answer, TestAccount, TestApp } from "../support/test-app.ts";
import { type Scenario, scenarios, useServer } from "./scenario.ts";

/**
 * Specification, "Tenant tier and activation moves"; rules, sections 4 and 12: upgrade, payment method,
 * deletion, on a server that takes no payments.
 */

const { any, stringMatching } = expect;

interface World {
  server: TestApp;
  /** One account for each tier. */
  of: Record<(typeof tiers)[number], TestAccount>;
}

const tiers = ["free", "pro", "business", "enterprise"] as const;
const goodPassword = "Corr3ct#Horse";
const server = useServer();
const of = {} as World["of"];

beforeAll(async () => {
  for (const tier of tiers) {
    of[tier] = await server().account();
    await of[tier].setTier(tier);
  }
  await makePaid("taken@example.com");
});

const world = (): World => ({ server: server(), of });

const makePaid = (email: string): Promise<Answer> =>
  server().request("POST", "/operator/tenants", {
    token: server().operatorToken,
    body: { tier: "pro", name: "Ada Ltd", email, password: goodPassword },
  });

const target = { tier: "pro", email: "new@example.com", password: goodPassword };

/** Whatever is asked, nothing of the account changes. */
function row(
  tier: keyof World["of"],
  body: unknown,
  answer: Pick<Scenario<World>, "status" | "body">,
): Scenario<World> {
  let before: unknown;
  return {
    section: "spec: Tenant tier and activation moves",
    async given({ of }) {
      before = (await of[tier].get("/v1/tenants/me")).body;
    },
    request: ({ of }) => of[tier].post("/v1/tenants/upgrade", body),
    ...answer,
    exact: true,
    never: () => [goodPassword, "argon2"],
    then: async ({ of }) => expect((await of[tier].get("/v1/tenants/me")).body).toEqual(before),
  };
}

const refusal = (tier: keyof World["of"], body: unknown, code: string, message: RegExp) =>
  row(tier, body, { status: 400, body: { message: stringMatching(message), code } });

const noPayments = { status: 503, body: { message: any(String), code: "payments_unavailable" } };

scenarios<World>("POST /v1/tenants/upgrade", world, {
  "free to pro": { ...row("free", target, noPayments), headers: { "Retry-After": /^\d+$/ } },
  "free to business": row("free", { ...target, tier: "business" }, noPayments),
  "pro to business needs neither e-mail nor password": row("pro", { tier: "business" }, noPayments),
  "pro to pro": refusal("pro", { tier: "pro" }, "not_an_upgrade", /^tier must be higher than "pro"/),
  "business to pro": refusal("business", { tier: "pro" }, "not_an_upgrade", /downgrades are not supported/),
  "business to business": refusal("business", { tier: "business" }, "not_an_upgrade", /^tier must be higher/),
  "enterprise to business": refusal("enterprise", { tier: "business" }, "not_an_upgrade", /^tier must be higher/),
  "without a tier": refusal("free", { ...target, tier: undefined }, "field_required", /^tier is required/),
  "to free": refusal("pro", { tier: "free" }, "invalid_request", /^tier must be "pro" or "business"/),
  "to enterprise": refusal("free", { ...target, tier: "enterprise" }, "invalid_request", /^tier must/),
  "to an unknown tier": refusal("free", { ...target, tier: "gold" }, "invalid_request", /^tier must/),
  "to a number": refusal("free", { ...target, tier: 2 }, "invalid_request", /^tier must/),
  "from free without an e-mail": refusal(
    "free",
    { ...target, email: undefined },
    "field_required",
    /^email is required/,
  ),
  "from free without a password": refusal("free", { ...target, password: undefined }, "field_required", /^password is/),
  "with a bad e-mail": refusal("free", { ...target, email: "ada" }, "invalid_request", /^email must/),
  "with a taken e-mail": refusal("free", { ...target, email: "TAKEN@example.com" }, "email_taken", /^email /),
  "with a list": refusal("free", [target], "invalid_request", /^The body must be a JSON object/),
  ...Object.fromEntries(
    Object.entries({
      "8 characters": "Abc12#x",
      uppercase: "abcdef1#",
      lowercase: "ABCDEF1#",
      digit: "Abcdefg#",
      special: "Abcdefg1",
    }).map(([rule, password]) => [
      `with a password that misses ${rule}`,
      refusal("free", { ...target, password }, "weak_password", new RegExp(`^password must have .*${rule}`)),
    ]),
  ),
});

test("at most ten times a minute an account is told that an e-mail is taken (rules, section 4)", async () => {
  const account = await server().account();
  const ask = () => account.post("/v1/tenants/upgrade", { ...target, email: "taken@example.com" });
  for (let n = 0; n < 10; n += 1) expect((await ask()).body.code).toBe("email_taken");
  const { status, body } = await ask();
  expect([status, body.code]).toEqual([429, "too_many_upgrades"]);
});

/** What is sent is judged, whether it is needed or not. */
scenarios<World>("POST /v1/tenants/upgrade of a paid account", world, {
  "with a weak password": refusal(
    "pro",
    { tier: "business", password: "abc" },
    "weak_password",
    /^password must have .*uppercase/,
  ),
  "with a bad e-mail": refusal("pro", { tier: "business", email: "ada" }, "invalid_request", /^email must/),
});

const onEveryTier = (request: (account: TestAccount) => Promise<Answer>): Record<string, Scenario<World>> =>
  Object.fromEntries(
    tiers.map((tier) => [
      `on ${tier}`,
      { section: "rules 4", request: ({ of }) => request(of[tier]), ...noPayments, exact: true, never: () => sold },
    ]),
  );

/** What nothing mentions where payments are off. */
const sold = ["plan", "price", "card", "invoice", "NGN", "charge"];

scenarios<World>(
  "POST /v1/tenants/payment-method",
  world,
  onEveryTier((account) => account.post("/v1/tenants/payment-method")),
);

scenarios<World>(
  "GET /v1/tenants/billing",
  world,
  onEveryTier((account) => account.get("/v1/tenants/billing")),
);

test.each([
  ["8d0f4nq2c6t18d0f4nq2c6t18d", 503],
  ["return?reference=ver-1k2m3n4p5q6r7s8t9v0w1x2y3z", 200],
  ["cancelled", 200],
])("GET /pay/%s: a page that does not say what it is for", async (path, status) => {
  const page = await server().request("GET", `/pay/${path}`);
  expect([page.status, page.text.includes("This page is not in use")]).toEqual([status, true]);
  const main = page.text.slice(page.text.indexOf("<main>"));
  expect([...sold, "pay"].filter((word) => main.includes(word))).toEqual([]);
});

// ---------------------------------------------------------------- deletion

let gone: TestAccount;
let eventId: string;
let webhookId: string;
let secondToken: string;
let streamEnded: Promise<string>;

scenarios<World>("DELETE /v1/tenants", world, {
  "deletes the account at once": {
    section: "spec: Accounts",
    async given({ server }) {
      const { tenant_id: id } = (await makePaid("gone@example.com")).body;
      const logIn = async () =>
        (await server.request("POST", "/v1/tenants/auth/login", { body: { loginId: id, password: goodPassword } })).body
          .token;
      const jwt = await logIn();
      secondToken = await logIn();
      const { body: keys } = await server.request("GET", "/v1/tenants/api-keys", { token: jwt });
      gone = { ...of.free, id, jwt, password: goodPassword, apiKey: keys[0].key };
      gone.ingest = (payload) => server.request("POST", "/v1/ingest", { token: gone.apiKey, body: { payload } });
      eventId = await ingestOne(gone, { secret: "of the deleted" });
      const body = [{ webhook_url: "https://example.com/gone" }];
      await server.request("PUT", "/v1/tenants/webhooks", { token: jwt, body });
      webhookId = (await server.request("GET", "/v1/tenants/webhooks", { token: jwt })).body[0].id;
      const stream = await fetch(`${server.url}/v1/stream`, { headers: { Authorization: `Bearer ${jwt}` } });
      expect(stream.status).toBe(200);
      streamEnded = stream.text();
    },
    request: ({ server }) => server.request("DELETE", "/v1/tenants", { token: gone.jwt }),
    status: 204,
    async then(_, { text }) {
      expect(text).toBe("");
      // Resolves when the server has closed the stream.
      await streamEnded;
    },
  },
});

describe("after the deletion (rules, section 4)", () => {
  test("every endpoint refuses its tokens and its key", async () => {
    for (const { method, path, access } of server().app.endpoints) {
      if (access !== "session" && access !== "api_key") continue;
      const concrete = path
        .replace("webhooks/:id", `webhooks/${webhookId}`)
        .replace(":id", eventId)
        .replace(":state", "FAILED");
      const tokens = access === "session" ? [gone.jwt, secondToken] : [gone.apiKey];
      for (const token of tokens) {
        const { status, text } = await server().request(method, concrete, { token });
        expect([method, path, status]).toEqual([method, path, 401]);
        for (const secret of [gone.id, "of the deleted", "gone@example.com"]) expect(text).not.toContain(secret);
      }
    }
  });

  const notFound: Record<string, () => Promise<Answer>> = {
    status: () => server().request("GET", `/v1/tenants/${gone.id}/status`),
    jwks: () => server().request("GET", `/v1/tenants/${gone.id}/jwks.json`),
    "the event for others": () => of.pro.get(`/v1/events/${eventId}`),
    "a single replay by others": () =>
      of.pro.post("/v1/events/replays/single", { eventId, replayGroupId: "after the deletion" }),
    "the operator's view": () =>
      server().request("GET", `/operator/tenants/${gone.id}`, { token: server().operatorToken }),
  };

  test.each(Object.entries(notFound))("%s is 404", async (_, request) => {
    expect((await request()).status).toBe(404);
  });

  test.each(["id", "e-mail"])("no login with its %s", async (by) => {
    const loginId = by === "id" ? gone.id : "gone@example.com";
    const body = { loginId, password: goodPassword };
    const answer = await server().request("POST", "/v1/tenants/auth/login", { body });
    expect([answer.status, answer.body.code]).toEqual([401, "wrong_credentials"]);
  });

  test("its e-mail is free", async () => {
    expect((await makePaid("gone@example.com")).status).toBe(201);
  });

  test("an attempt in flight is aborted", async () => {
    const hooks = await startHooks();
    const silent = hooks.hook(() => {});
    const account = await server().account();
    await register(account, silent.url);
    await ingestOne(account);
    const [attempt] = await silent.whenReceived(1);
    await account.delete("/v1/tenants");
    await attempt?.broken;
    hooks.stop();
  });

  test("the others stay", async () => {
    for (const account of Object.values(of)) expect((await account.get("/v1/tenants/me")).status).toBe(200);
  });
});
