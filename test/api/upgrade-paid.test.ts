import { describe, expect, test } from "bun:test";
import { openStream } from "../support/stream-client.ts";
import type { TestApp } from "../support/test-app.ts";
import { startTestApp } from "../support/test-app.ts";
import {
  businessKobo,
  type Customer,
  cards,
  createClockAt,
  goodPassword,
  pageBehind,
  pay,
  post,
  proKobo,
  signUp,
  signUpFree,
  subscribe,
  withSandbox,
} from "./customers.ts";
import { scenarios, useServer } from "./scenario.ts";

/**
 * Specification, "Tenant tier and activation moves"; rules, sections 4 and 12: upgrades that are paid for.
 *
 * The sandbox always answers. What a processor that does not answer means (503, and a repetition that charges nothing
 * twice) is for a processor that can be made silent to prove.
 */

const { any, stringMatching } = expect;

const hourMs = 60 * 60 * 1000;
const dayMs = 24 * hourMs;
const clock = createClockAt("2031-10-10T09:00:00Z");
const server = useServer({ clock, env: withSandbox });
const world = () => ({ server: server() });

/** An e-mail that nobody has. */
let emails = 0;
const newLogin = () => ({ email: `upgraded-${++emails}@example.com`, password: goodPassword });

const logIn = (loginId: string, password = goodPassword) =>
  server().request("POST", "/v1/tenants/auth/login", { body: { loginId, password } });

const upgraded = { section: "spec: Tenant tier and activation moves", exact: true } as const;

scenarios<{ server: TestApp }>("POST /v1/tenants/upgrade", world, {
  "with a saved card: charged and complete": {
    ...upgraded,
    request: async ({ server }) => (await subscribe(server, cards.good)).upgrade({ tier: "business" }),
    status: 200,
    body: {
      tenant_id: any(String),
      tier: "business",
      included_events: 25_000_000,
      payment_status: "paid",
      message: any(String),
    },
  },
  "with a weak password, which the account does not need: nothing is charged": {
    section: "rules 12",
    exact: true,
    async request({ server }) {
      const customer = await subscribe(server, cards.good);
      const answer = await customer.upgrade({ tier: "business", password: "abc" });
      expect((await customer.charges()).map(({ kind }) => kind)).toEqual(["verification"]);
      return answer;
    },
    status: 400,
    body: { message: stringMatching(/^password must have /), code: "weak_password" },
  },
  "from free, without a card: applied, and a card is to be verified": {
    ...upgraded,
    request: async ({ server }) => (await signUpFree(server)).upgrade({ tier: "pro", ...newLogin() }),
    status: 202,
    body: {
      tenant_id: any(String),
      tier: "pro",
      included_events: 5_000_000,
      payment_status: "pending",
      message: stringMatching(/payment_url/),
      payment_url: stringMatching(/^http:\/\/localhost:\d+\/pay\/[0-9a-z]{26}$/),
    },
    never: () => [goodPassword, "argon2"],
  },
  "when the bank asks: applied, and to be confirmed": {
    ...upgraded,
    request: async ({ server }) => {
      const customer = await subscribe(server, cards.careful);
      return customer.upgrade({ tier: "business" });
    },
    status: 202,
    body: {
      tenant_id: any(String),
      tier: "business",
      included_events: 25_000_000,
      payment_status: "pending",
      message: stringMatching(/bank/),
      payment_url: any(String),
    },
  },
  "with a card that declines: 402, and what to do": {
    section: "spec: Errors",
    exact: true,
    request: async ({ server }) => (await subscribe(server, cards.emptyTomorrow)).upgrade({ tier: "business" }),
    status: 402,
    body: {
      message: stringMatching(
        /^The saved card could not be charged \(Declined\); verify another .* POST \/v1\/tenants\/payment-method/,
      ),
      code: "payment_declined",
    },
  },
  "not higher: 400": {
    ...upgraded,
    request: async ({ server }) => (await subscribe(server, cards.good)).upgrade({ tier: "pro" }),
    status: 400,
    body: { message: stringMatching(/downgrades are not supported/), code: "not_an_upgrade" },
  },
  "not higher than the target that is pending: 400": {
    ...upgraded,
    request: async ({ server }) => (await signUp(server, { tier: "business" })).upgrade({ tier: "pro" }),
    status: 400,
    body: { message: any(String), code: "not_an_upgrade" },
  },
});

describe("with a saved card", () => {
  test("on the first day at least 100 NGN are charged, and credited", async () => {
    const customer = await subscribe(server(), cards.good);
    await customer.upgrade({ tier: "business" });
    const { charges, ...billing } = await customer.billing();
    expect(charges).toMatchObject([
      { kind: "upgrade", amount_kobo: 10_000, state: "succeeded" },
      { kind: "verification", state: "succeeded" },
    ]);
    // Today belongs to the higher plan, so nothing of the old one was owed.
    expect(billing).toMatchObject({
      tier: "business",
      status: "active",
      price_kobo: businessKobo,
      payment_url: null,
      current_month: {
        amount_kobo: Math.floor(businessKobo / 31),
        credit_kobo: 10_000,
        lines: [{ tier: "business", days: 1, days_in_month: 31 }],
      },
    });
  });

  test("later what the old plan has cost is charged, to the kobo, and no day twice", async () => {
    const customer = await subscribe(server(), cards.good);
    clock.travel(5 * dayMs);
    await customer.logIn();
    expect((await customer.upgrade({ tier: "business" })).status).toBe(200);
    const { charges, current_month } = await customer.billing();
    const fiveDays = Math.floor((proKobo * 5) / 31);
    expect(charges[0]).toMatchObject({ kind: "upgrade", amount_kobo: fiveDays, state: "succeeded" });
    expect(current_month).toMatchObject({
      amount_kobo: Math.floor(businessKobo / 31),
      credit_kobo: 0,
      lines: [{ tier: "business", days: 1 }],
    });
  });

  test("its limits are in force at once, and its sessions stay", async () => {
    const customer = await subscribe(server(), cards.good);
    const hooks = [1, 2].map((n) => ({ webhook_url: `https://example.com/${n}` }));
    expect((await customer.put("/v1/tenants/webhooks", hooks)).status).toBe(400);
    await customer.upgrade({ tier: "business" });
    expect(await customer.me()).toMatchObject({
      tier: "business",
      enforced_events_per_month: 25_000_000,
      enforced_webhooks: 2,
      status: "active",
    });
    expect((await customer.put("/v1/tenants/webhooks", hooks)).status).toBe(200);
  });

  test("two identical requests at once get the same answer and one charge", async () => {
    const customer = await subscribe(server(), cards.good);
    const answers = await Promise.all(Array.from({ length: 5 }, () => customer.upgrade({ tier: "business" })));
    expect(new Set(answers.map(({ status, text }) => `${status} ${text}`)).size).toBe(1);
    expect(answers[0]?.status).toBe(200);
    expect((await customer.charges()).filter(({ kind }) => kind === "upgrade")).toHaveLength(1);
  });

  test("a repeat within the hour gets the same answer, which may have been lost, and charges nothing", async () => {
    const customer = await subscribe(server(), cards.good);
    const first = await customer.upgrade({ tier: "business" });
    clock.travel(hourMs - 60_000);
    const second = await customer.upgrade({ tier: "business" });
    expect([second.status, second.text]).toEqual([200, first.text]);
    expect((await customer.charges()).filter(({ kind }) => kind === "upgrade")).toHaveLength(1);
    expect((await customer.upgrade({ tier: "pro" })).body.code).toBe("not_an_upgrade");
    clock.travel(60_000);
    expect((await customer.upgrade({ tier: "business" })).body.code).toBe("not_an_upgrade");
  });

  test("a declined charge changes nothing, and another card makes it work", async () => {
    const customer = await subscribe(server(), cards.emptyTomorrow);
    const [me, { current_month }] = [await customer.me(), await customer.billing()];
    expect((await customer.upgrade({ tier: "business" })).status).toBe(402);
    expect(await customer.me()).toEqual(me);
    const after = await customer.billing();
    expect(after).toMatchObject({ tier: "pro", status: "active", current_month, past_due_since: null });
    expect(after.charges[0]).toMatchObject({ kind: "upgrade", state: "failed", reason: "Declined" });
    expect((await customer.ingest()).status).toBe(202);
    await pay(server(), await customer.paymentMethod(), cards.good);
    await customer.whenBilling(({ card }) => card?.last4 === "4081");
    expect((await customer.upgrade({ tier: "business" })).status).toBe(200);
  });

  test("ten a minute are tried for an account, also when they come at once", async () => {
    const customer = await subscribe(server(), cards.emptyTomorrow);
    const answers = await Promise.all(
      Array.from({ length: 15 }, (_, i) => customer.upgrade({ tier: "business", email: `try-${i}@example.com` })),
    );
    const statuses = answers.map(({ status }) => status).sort();
    expect(statuses).toEqual([...Array(10).fill(402), ...Array(5).fill(429)]);
    const refused = answers.find(({ status }) => status === 429);
    expect([refused?.body.code, refused?.headers.get("retry-after")]).toEqual([
      "too_many_upgrades",
      stringMatching(/^\d+$/),
    ]);
    expect((await customer.charges()).filter(({ kind }) => kind === "upgrade")).toHaveLength(10);
    expect((await customer.upgrade({ tier: "business" })).status).toBe(429);
    clock.travel(61_000);
    expect((await customer.upgrade({ tier: "business" })).status).toBe(402);
  });
});

test("an account that is deleted before its turn has come is not 404: its session has ended (rules, section 4)", async () => {
  const customer = await signUpFree(server());
  const upgrades = [1, 2, 3].map(() => customer.upgrade({ tier: "pro", ...newLogin() }));
  const [removed, ...answers] = await Promise.all([customer.delete("/v1/tenants"), ...upgrades]);
  expect(removed.status).toBe(204);
  expect(answers.map(({ status }) => status)).not.toContain(404);
});

describe("without a card", () => {
  test("the target is named, the old plan's limits stay, and ingestion goes on until the card is verified", async () => {
    const customer = await signUpFree(server());
    const { body } = await customer.upgrade({ tier: "business", ...newLogin() });
    const pending = {
      tier: "business",
      max_events_per_month: 25_000_000,
      enforced_events_per_month: 10_000,
      enforced_webhooks: 1,
      status: "pending_verification",
    };
    expect(await customer.me()).toMatchObject(pending);
    expect(await customer.status()).toBe("pending_verification");
    expect(await customer.billing()).toMatchObject({ price_kobo: 0, payment_url: body.payment_url, charges: [] });
    expect((await customer.ingest()).status).toBe(202);
    const hooks = [1, 2].map((n) => ({ webhook_url: `https://example.com/${n}` }));
    expect((await customer.put("/v1/tenants/webhooks", hooks)).status).toBe(400);
    await pay(server(), body.payment_url, cards.good);
    await customer.whenBilling(({ status }) => status === "active");
    expect(await customer.me()).toMatchObject({
      ...pending,
      enforced_events_per_month: 25_000_000,
      enforced_webhooks: 2,
      status: "active",
      events_this_month: 1,
    });
    expect((await customer.put("/v1/tenants/webhooks", hooks)).status).toBe(200);
    expect((await customer.billing()).charges).toMatchObject([{ kind: "verification", amount_kobo: 10_000 }]);
  });

  test("e-mail and password take effect with the 202, and its session stays", async () => {
    const customer = await signUpFree(server());
    const login = newLogin();
    const password = "An0ther$Word";
    expect((await customer.upgrade({ tier: "pro", email: login.email, password })).status).toBe(202);
    expect(await customer.me()).toMatchObject({ email: login.email });
    for (const loginId of [login.email.toUpperCase(), customer.id]) {
      expect((await logIn(loginId, password)).status).toBe(200);
    }
    expect((await signUp(server(), { email: login.email }).catch((error: Error) => error)) as Error).toMatchObject({
      message: stringMatching(/email_taken/),
    });
  });

  /** One that was on a paid tier before. */
  async function freeWithCard(card: string): Promise<Customer> {
    const customer = await subscribe(server(), card);
    await server().request("PUT", `/operator/tenants/${customer.id}/tier`, {
      token: server().operatorToken,
      body: { tier: "free" },
    });
    return customer;
  }

  test.each<[string, number, () => Promise<Customer>]>([
    ["a card has to be verified", 202, () => signUpFree(server())],
    ["the saved card was charged", 200, () => freeWithCard(cards.good)],
    ["the bank asks for a confirmation", 202, () => freeWithCard(cards.careful)],
  ])("the new login is on the stream and in the audit when %s", async (_, status, open) => {
    const customer = await open();
    const stream = await openStream(server(), customer.jwt);
    expect((await customer.upgrade({ tier: "pro", ...newLogin() })).status).toBe(status);
    await stream.next("account.changed", ({ changed, tier }) => changed === "login" && tier === "pro");
    await stream.next("account.changed", ({ changed }) => changed === "tier");
    expect(stream.messages.filter(({ data }) => data.changed === "login")).toHaveLength(1);
    stream.close();
    const { entries } = (await customer.get("/v1/audit?size=3")).body;
    expect(entries).toMatchObject(
      ["password.changed", "email.changed", "tier.raised"].map((action) => ({ action, by: "account" })),
    );
  });

  test("a second upgrade changes the target and keeps the payment_url", async () => {
    const customer = await signUpFree(server());
    const first = await customer.upgrade({ tier: "pro", ...newLogin() });
    const page = await pageBehind(server(), first.body.payment_url);
    const second = await customer.upgrade({ tier: "business" });
    expect([second.status, second.body.tier, second.body.payment_url]).toEqual([
      202,
      "business",
      first.body.payment_url,
    ]);
    expect(await pageBehind(server(), first.body.payment_url)).toBe(page);
    expect(await customer.paymentMethod()).toBe(first.body.payment_url);
    await post(server(), page, { card: cards.good });
    await customer.whenBilling(({ status }) => status === "active");
    expect(await customer.me()).toMatchObject({ tier: "business", enforced_events_per_month: 25_000_000 });
  });

  test("also of an account made on pro that has not verified its card: then both are settled by it", async () => {
    const customer = await signUp(server());
    const { status, body } = await customer.upgrade({ tier: "business" });
    expect([status, body.payment_url]).toEqual([202, customer.paymentUrl]);
    expect((await customer.ingest()).status).toBe(402);
    await pay(server(), customer.paymentUrl, cards.good);
    await customer.whenBilling(({ status }) => status === "active");
    expect(await customer.billing()).toMatchObject({ tier: "business", charges: [{ kind: "verification" }] });
  });

  test("two identical requests at once get the same answer", async () => {
    // Hashing takes as long as in earnest, so that the second request comes before the first has ended.
    const slow = await startTestApp({ env: withSandbox, passwordCost: { memoryCost: 65_536, timeCost: 2 } });
    const customer = await signUpFree(slow);
    const order = { tier: "pro", ...newLogin() };
    const [one, other] = await Promise.all([customer.upgrade(order), customer.upgrade(order)]);
    await slow.stop();
    expect([one.status, one.text]).toEqual([202, other.text]);
  });
});
