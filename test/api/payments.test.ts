// biome-ignore-all lint/suspicious/noThenProperty: rows of a scenario table have one
import { beforeAll, describe, expect, test } from "bun:test";
import { until } from "../support/api-server.ts";
import type { TestApp } from "../support/test-app.ts";
import {
  type Charge,
  type Customer,
  cards,
  createClockAt,
  goodPassword,
  pageBehind,
  pathOf,
  pay,
  post,
  signUp,
  signUpFree,
  subscribe,
  verificationKobo,
  visit,
  withSandbox,
} from "./customers.ts";
import { scenarios, useServer } from "./scenario.ts";

/** Specification, "Accounts" and item 7 of "What the service does"; rules, sections 4 and 12: the card of an account. */

const { any, stringMatching } = expect;

interface World {
  server: TestApp;
  /** Made on pro, and never verified. */
  pending: Customer;
}

const clock = createClockAt("2031-10-10T09:00:00Z");
const server = useServer({ clock, env: withSandbox });
let pending: Awaited<ReturnType<typeof signUp>>;

beforeAll(async () => {
  pending = await signUp(server());
});

const world = (): World => ({ server: server(), pending });

const order = { tier: "pro", name: "Ada Ltd", email: "Ada@Example.com", password: goodPassword };
const create = (body: unknown) => server().request("POST", "/v1/tenants", { body });
const paymentUrl = stringMatching(/^http:\/\/localhost:\d+\/pay\/[0-9a-z]{26}$/);
const hook = (n: number) => ({ webhook_url: `https://example.com/hooks/${n}` });

scenarios<World>("POST /v1/tenants", world, {
  "a paid tier gets a page to verify its card on, and no password": {
    section: "spec: Accounts",
    request: () => create(order),
    status: 201,
    exact: true,
    body: {
      tenant_id: stringMatching(/^t[0-9a-hjkmnp-tv-z]{13}$/),
      tier: "pro",
      name: "Ada Ltd",
      email: "Ada@Example.com",
      payment_url: paymentUrl,
      payment_note: stringMatching(/100 NGN/),
    },
    headers: { "Cache-Control": "no-store" },
    never: () => [goodPassword, "argon2", "svc_sk_"],
  },
  "its e-mail is a login id at once, in any case": {
    section: "rules 4",
    request: () => create({ ...order, email: "grace@example.com" }),
    status: 201,
    async then({ server }) {
      const body = { loginId: "GRACE@example.com", password: goodPassword };
      const login = await server.request("POST", "/v1/tenants/auth/login", { body });
      expect([login.status, login.body.tier]).toEqual([200, "pro"]);
    },
  },
  "the e-mail of an account that is not verified is taken, too": {
    section: "rules 4",
    request: () => create({ ...order, email: "aDA@example.com" }),
    status: 400,
    body: { code: "email_taken" },
  },
  "two at once with one e-mail: one account": {
    section: "rules 4",
    async request() {
      const twice = { ...order, email: "twice@example.com" };
      const answers = await Promise.all([create(twice), create(twice)]);
      const [first, second] = answers.sort((a, b) => a.status - b.status);
      expect(second?.body.code).toBe("email_taken");
      return first ?? create(twice);
    },
    status: 201,
  },
  "webhooks are judged by the plan that was asked for": {
    section: "rules 4",
    request: () => create({ ...order, tier: "business", email: "two-hooks@example.com", webhooks: [hook(1), hook(2)] }),
    status: 201,
    body: { tier: "business", payment_url: paymentUrl },
  },
  "a free account is active at once and has nothing to pay": {
    section: "spec: Accounts",
    request: () => create({}),
    status: 201,
    exact: true,
    body: { tenant_id: any(String), tier: "free", name: any(String), email: any(String), password: any(String) },
    then: async ({ server }, { body }) =>
      expect((await server.request("GET", `/v1/tenants/${body.tenant_id}/status`)).body.status).toBe("active"),
  },
});

scenarios<World>("GET /v1/tenants/{tenantId}/status", world, {
  "says that the card is to be verified": {
    section: "spec: Tenant tier and activation moves",
    request: ({ server, pending }) => server.request("GET", `/v1/tenants/${pending.id}/status`),
    status: 200,
    exact: true,
    body: { status: "pending_verification" },
  },
});

scenarios<World>("GET /v1/tenants/me", world, {
  "before the first verification no events are included, and webhooks can be set up": {
    section: "rules 4",
    request: ({ pending }) => pending.get("/v1/tenants/me"),
    status: 200,
    body: {
      tier: "pro",
      max_events_per_month: 5_000_000,
      enforced_events_per_month: 0,
      enforced_webhooks: 1,
      status: "pending_verification",
    },
    then: async ({ pending }) => expect((await pending.put("/v1/tenants/webhooks", [hook(1)])).status).toBe(200),
  },
});

const refusedIngestion = {
  section: "rules 4",
  status: 402,
  exact: true,
  body: { message: stringMatching(/POST \/v1\/tenants\/payment-method/), code: "card_not_verified" },
};

scenarios<World>("POST /v1/ingest", world, {
  "402 until the card is verified": { ...refusedIngestion, request: ({ pending }) => pending.ingest() },
});

scenarios<World>("POST /v1/ingest/batch", world, {
  "402 until the card is verified": {
    ...refusedIngestion,
    request: ({ server, pending }) =>
      server.request("POST", "/v1/ingest/batch", { token: pending.apiKey, body: { events: [{ payload: {} }] } }),
  },
});

/** The processor has not finished a refund as it takes it; it is asked again day by day. */
const whenRefunded = (customer: Customer): Promise<Charge[]> =>
  until(
    async () => {
      clock.travel(25 * 60 * 60 * 1000);
      await customer.logIn();
      return customer.charges();
    },
    (charges) => charges.some(({ state }) => state === "refunded"),
  );

describe('the card verification (specification, "What the service does", item 7)', () => {
  test("paying on the page activates the account, which then takes events", async () => {
    const customer = await signUp(server());
    const paid = await pay(server(), customer.paymentUrl, cards.good);
    expect(paid.status).toBe(303);
    const back = await visit(server(), paid.headers.get("location") ?? "");
    expect([back.status, back.headers.get("content-type")]).toEqual([200, "text/html; charset=utf-8"]);
    await until(customer.status, (status) => status === "active");
    expect((await customer.ingest()).status).toBe(202);
    expect(await customer.me()).toMatchObject({ enforced_events_per_month: 5_000_000, status: "active" });
    const { card, charges, payment_url } = await customer.billing();
    expect([card?.last4, payment_url]).toEqual(["4081", null]);
    expect(charges).toMatchObject([{ kind: "verification", amount_kobo: verificationKobo, state: "succeeded" }]);
  });

  test("its streams are told", async () => {
    const customer = await signUp(server());
    const abort = new AbortController();
    const { body } = await fetch(`${server().url}/v1/stream`, {
      headers: { Authorization: `Bearer ${customer.jwt}` },
      signal: abort.signal,
    });
    await pay(server(), customer.paymentUrl, cards.good);
    const decoder = new TextDecoder();
    let text = "";
    for await (const chunk of body ?? []) {
      text += decoder.decode(chunk, { stream: true });
      if (text.includes("event: account.changed")) break;
    }
    abort.abort();
    const message = JSON.parse(/^data: (.*)$/m.exec(text)?.[1] ?? "");
    expect(message).toEqual({ tenant_id: customer.id, tier: "pro", status: "active", changed: "billing" });
  });

  test("a bank that asks: active once it is confirmed", async () => {
    const customer = await signUp(server());
    const asked = await pay(server(), customer.paymentUrl, cards.careful);
    const bank = asked.headers.get("location") ?? "";
    expect([asked.status, bank]).toEqual([303, stringMatching(/\/confirm$/)]);
    expect(await customer.status()).toBe("pending_verification");
    await post(server(), bank, { confirm: "yes" });
    await customer.whenBilling(({ status }) => status === "active");
    expect((await customer.billing()).card?.last4).toBe("4796");
  });

  test("a bank that is refused: pending, and another card can be tried on the same page", async () => {
    const customer = await signUp(server());
    const page = await pageBehind(server(), customer.paymentUrl);
    await post(server(), page, { card: cards.careful });
    const refused = await post(server(), `${page}/confirm`, { confirm: "no" });
    expect([refused.status, refused.text]).toEqual([402, stringMatching(/Not confirmed/)]);
    expect(await customer.status()).toBe("pending_verification");
    await post(server(), page, { card: cards.good });
    await customer.whenBilling(({ status }) => status === "active");
  });

  test.each([
    ["a declined card", cards.declined, /Declined/],
    ["a card without money", cards.empty, /Insufficient funds/],
  ])("%s: the page says so, and the account stays pending", async (_, card, reason) => {
    const customer = await signUp(server());
    const answer = await pay(server(), customer.paymentUrl, card);
    expect([answer.status, answer.text]).toEqual([402, stringMatching(reason)]);
    expect(await customer.status()).toBe("pending_verification");
    expect((await customer.ingest()).status).toBe(402);
    expect(await customer.billing()).toMatchObject({ card: null, payment_url: customer.paymentUrl });
  });

  test("a card that cannot be charged again is paid back, and a new page takes a better one", async () => {
    const customer = await signUp(server());
    const page = await pageBehind(server(), customer.paymentUrl);
    await post(server(), page, { card: cards.onceOnly });
    const [charge] = await customer.whenCharge(({ state }) => state === "refunding" || state === "refunded");
    expect(charge?.reason).toMatch(/cannot be charged again/);
    expect(await customer.billing()).toMatchObject({
      status: "pending_verification",
      card: null,
      payment_url: customer.paymentUrl,
    });
    expect((await customer.ingest()).status).toBe(402);
    const next = await pageBehind(server(), customer.paymentUrl);
    expect(next).not.toBe(page);
    await post(server(), next, { card: cards.good });
    await customer.whenBilling(({ status }) => status === "active");
    const charges = await whenRefunded(customer);
    expect(charges.map(({ state }) => state)).toEqual(["succeeded", "refunded"]);
  });
});

describe("another card (rules, section 12)", () => {
  scenarios<World>("POST /v1/tenants/payment-method", world, {
    "while a verification is open, its page": {
      section: "rules 12",
      request: ({ pending }) => pending.post("/v1/tenants/payment-method"),
      given: () => pending.logIn(),
      status: 200,
      exact: true,
      body: () => ({ payment_url: pending.paymentUrl, payment_note: stringMatching(/100 NGN/) }),
    },
    "a free account has nothing to pay": {
      section: "rules 12",
      request: async ({ server }) => (await signUpFree(server)).post("/v1/tenants/payment-method"),
      status: 400,
      exact: true,
      body: { message: stringMatching(/POST \/v1\/tenants\/upgrade/), code: "no_paid_plan" },
    },
    "an enterprise account is invoiced": {
      section: "rules 12",
      async request({ server }) {
        const account = await server.account();
        await account.setTier("enterprise");
        return account.post("/v1/tenants/payment-method");
      },
      status: 400,
      body: { code: "no_paid_plan" },
    },
  });

  test("replaces the card; 100 NGN are kept once", async () => {
    const customer = await subscribe(server(), cards.good);
    const url = await customer.paymentMethod();
    expect(url).not.toBe(customer.paymentUrl);
    expect(await customer.paymentMethod()).toBe(url);
    expect(await customer.billing()).toMatchObject({ status: "active", card: { last4: "4081" }, payment_url: url });
    expect((await customer.ingest()).status).toBe(202);
    await pay(server(), url, cards.emptyTomorrow);
    await customer.whenBilling(({ card }) => card?.last4 === "0341");
    const [second, first] = await customer.whenCharge(({ state }) => state === "refunding");
    expect([second?.kind, second?.amount_kobo]).toEqual(["verification", verificationKobo]);
    expect([first?.state, first?.kind]).toEqual(["succeeded", "verification"]);
    const charges = await whenRefunded(customer);
    expect(charges.map(({ state }) => state)).toEqual(["refunded", "succeeded"]);
    expect(await customer.paymentMethod()).not.toBe(url);
  });

  test("the same card once more: paid back too, and it still pays an upgrade", async () => {
    const customer = await subscribe(server(), cards.good);
    await pay(server(), await customer.paymentMethod(), cards.good);
    await customer.whenCharge(({ state }) => state === "refunding");
    const { status, body } = await customer.upgrade({ tier: "business" });
    expect([status, body.payment_status]).toEqual([200, "paid"]);
  });

  test("a careful bank can take the place of a good card", async () => {
    const customer = await subscribe(server(), cards.good);
    const url = await customer.paymentMethod();
    const asked = await pay(server(), url, cards.careful);
    expect((await customer.billing()).card?.last4).toBe("4081");
    await post(server(), pathOf(asked.headers.get("location") ?? url), { confirm: "yes" });
    await customer.whenBilling(({ card }) => card?.last4 === "4796");
  });

  test("works for an account that its operator made on a paid tier, which was never asked for a card", async () => {
    const { operatorToken } = server();
    const body = { ...order, email: "vouched@example.com" };
    const { body: made } = await server().request("POST", "/operator/tenants", { token: operatorToken, body });
    const login = { loginId: made.tenant_id, password: goodPassword };
    const { token } = (await server().request("POST", "/v1/tenants/auth/login", { body: login })).body;
    const { status, body: answer } = await server().request("POST", "/v1/tenants/payment-method", { token });
    expect([status, answer.payment_url]).toEqual([200, paymentUrl]);
    await pay(server(), answer.payment_url, cards.good);
    const { body: billing } = await until(
      () => server().request("GET", "/v1/tenants/billing", { token }),
      ({ body }) => body.card !== null,
    );
    expect(billing).toMatchObject({ status: "active", charges: [{ kind: "verification", state: "succeeded" }] });
  });

  test("works while the operator suspends the account, and does not end that", async () => {
    const customer = await signUp(server());
    const token = server().operatorToken;
    await server().request("POST", `/operator/tenants/${customer.id}/suspend`, { token });
    const url = await customer.paymentMethod();
    expect(url).toBe(customer.paymentUrl);
    await pay(server(), url, cards.good);
    await customer.whenBilling(({ card }) => card !== null);
    expect([await customer.status(), (await customer.ingest()).status]).toEqual(["suspended", 403]);
    await server().request("POST", `/operator/tenants/${customer.id}/resume`, { token });
    expect([await customer.status(), (await customer.ingest()).status]).toEqual(["active", 202]);
  });
});
