import { describe, expect, test } from "bun:test";
import { closedPort } from "../support/api-server.ts";
import { paystackCards } from "../support/paystack-answers.ts";
import type { RequestFault } from "../support/paystack-faults.ts";
import type { Answer } from "../support/test-app.ts";
import { type Customer, customerOf, goodPassword, logged, signUp, visit } from "./customers.ts";
import {
  hostedPage,
  isSettled,
  known,
  type PaystackWorld,
  repeatUpgrade,
  retryAfterMs,
  startPaystackWorld,
  subscribeAt,
  timesCharged,
  travelUntil,
} from "./paystack-world.ts";
import { provenSections } from "./scenario.ts";

/** Rules, section 12: an upgrade over Paystack, whatever becomes of the request that charges the saved card. */

provenSections.add("rules 12").add("spec: Tenant tier and activation moves").add("spec: Errors");

const { any, stringMatching } = expect;
const minuteMs = 60_000;

/** Longer than the program waits for the answer to a charge. */
const patienceMs = minuteMs;

async function expectUnchanged(customer: Customer): Promise<void> {
  expect(await customer.me()).toMatchObject({ tier: "pro", status: "active", enforced_events_per_month: 5_000_000 });
}

/** The first answer, in which nothing is decided. */
async function expectToRepeat(customer: Customer, answer: Answer): Promise<void> {
  expect([answer.status, answer.text]).toEqual([503, any(String)]);
  expect(answer.headers.get("retry-after")).toMatch(/^[1-9]\d*$/);
  await expectUnchanged(customer);
}

async function expectUpgradedOnce(world: PaystackWorld, customer: Customer): Promise<void> {
  expect(await customer.me()).toMatchObject({ tier: "business", status: "active" });
  expect(timesCharged(world, "upgrade")).toBe(1);
  const upgrades = (await customer.charges()).filter(({ kind }) => kind === "upgrade");
  expect(upgrades.filter(({ state }) => state === "succeeded")).toMatchObject([{ amount_kobo: 10_000 }]);
}

/** Asks for an upgrade whose charge is never answered, and waits until the program gives up. */
async function upgradeInSilence({ paystack, clock }: PaystackWorld, customer: Customer): Promise<Answer> {
  const asked = customer.upgrade({ tier: "business" });
  await paystack.received("charge");
  clock.travel(patienceMs);
  return asked;
}

const faults: readonly RequestFault[] = [
  "reset_before_effect",
  "reset_after_effect",
  "rate_limited",
  "unavailable",
  "unavailable_after_effect",
  "malformed_json",
  "too_long",
  "redirect",
  "invalid_key",
];

describe("a saved card is charged once, and the repeated request is answered with 200", () => {
  test.each(faults)("after %s", async (fault) => {
    await using world = await startPaystackWorld();
    const customer = await subscribeAt(world);
    world.paystack.callbackUrl = null;
    world.paystack.faults.next("charge", fault);
    const first = await customer.upgrade({ tier: "business" });
    await expectToRepeat(customer, first);
    const last = await repeatUpgrade(world, customer, first);
    expect([last.status, last.body]).toMatchObject([200, { tier: "business", payment_status: "paid" }]);
    await expectUpgradedOnce(world, customer);
    const { entries } = (await customer.get("/v1/audit?action=tier.raised")).body;
    expect(entries).toMatchObject([{ by: "account", address: "127.0.0.1", detail: { tier: "business" } }]);
  });

  test.each(["timeout_before_effect", "timeout_after_effect"] as const)("after %s", async (fault) => {
    await using world = await startPaystackWorld();
    const customer = await subscribeAt(world);
    world.paystack.callbackUrl = null;
    world.paystack.faults.next("charge", fault);
    const first = await upgradeInSilence(world, customer);
    await expectToRepeat(customer, first);
    expect((await repeatUpgrade(world, customer, first)).status).toBe(200);
    await expectUpgradedOnce(world, customer);
  });

  test("after a connection that nobody took", async () => {
    await using world = await startPaystackWorld();
    const { id } = await subscribeAt(world);
    const away = await customerOf(await world.restart(`http://127.0.0.1:${await closedPort()}`), id, goodPassword);
    const first = await away.upgrade({ tier: "business" });
    await expectToRepeat(away, first);
    const customer = await customerOf(await world.restart(), id, goodPassword);
    expect((await repeatUpgrade(world, customer, first)).status).toBe(200);
    await expectUpgradedOnce(world, customer);
  });

  test("also when the look-up fails after the charge has", async () => {
    await using world = await startPaystackWorld();
    const customer = await subscribeAt(world);
    world.paystack.callbackUrl = null;
    world.paystack.faults.next("charge", "reset_after_effect");
    const first = await customer.upgrade({ tier: "business" });
    world.paystack.faults.next("verify", "reset_after_effect");
    world.paystack.faults.next("verify", "malformed_json");
    expect((await repeatUpgrade(world, customer, first)).status).toBe(200);
    await expectUpgradedOnce(world, customer);
  });

  test("also for a client that waits longer than it has to, and finds the upgrade complete", async () => {
    await using world = await startPaystackWorld();
    const customer = await subscribeAt(world);
    world.paystack.callbackUrl = null;
    world.paystack.faults.next("charge", "reset_after_effect");
    await expectToRepeat(customer, await customer.upgrade({ tier: "business" }));
    await travelUntil(world, minuteMs / 2, () => isSettled(world, "upgrade"));
    const { status, body } = await customer.upgrade({ tier: "business" });
    expect([status, body]).toMatchObject([200, { tier: "business", payment_status: "paid" }]);
    await expectUpgradedOnce(world, customer);
    world.clock.travel(61 * minuteMs);
    await customer.logIn();
    const late = await customer.upgrade({ tier: "business" });
    expect([late.status, late.body.code]).toEqual([400, "not_an_upgrade"]);
  });

  test("also if it asks for another address, whose account then keeps it", async () => {
    await using world = await startPaystackWorld();
    const { server, clock, paystack } = world;
    const customer = await subscribeAt(world);
    const keeper = await signUp(server, { email: "keeper@example.com" });
    await server.request("PUT", `/operator/tenants/${customer.id}/tier`, {
      token: server.operatorToken,
      body: { tier: "free" },
    });
    clock.travel(25 * 60 * minuteMs);
    await customer.logIn();
    paystack.callbackUrl = null;
    paystack.faults.next("charge", "reset_after_effect");
    const order = { tier: "pro", email: "ada@example.com", password: goodPassword };
    const first = await customer.upgrade(order);
    expect(first.status).toBe(503);
    clock.travel(retryAfterMs(first));
    const second = await customer.upgrade({ ...order, email: "keeper@example.com" });
    expect([second.status, second.body]).toMatchObject([200, { payment_status: "paid" }]);
    expect(await customer.me()).toMatchObject({ tier: "pro", email: "ada@example.com" });
    const body = { loginId: "keeper@example.com", password: goodPassword };
    expect((await server.request("POST", "/v1/tenants/auth/login", { body })).body.tenant_id).toBe(keeper.id);
    expect(logged(server, "account.email_released")).toEqual([]);
  });

  test("also when the account has opened a page for another card in the meantime", async () => {
    await using world = await startPaystackWorld();
    const customer = await subscribeAt(world);
    expect((await customer.upgrade({ tier: "business" })).status).toBe(200);
    await hostedPage(world, await customer.paymentMethod());
    const { status, body } = await customer.upgrade({ tier: "business" });
    expect([status, body]).toMatchObject([200, { tier: "business", payment_status: "paid" }]);
    await expectUpgradedOnce(world, customer);
  });

  test.each(["reset_before_effect", "unavailable"] as const)(
    "a request whose end is open (%s) is not sent a second time before two minutes, however often it is repeated",
    async (fault) => {
      await using world = await startPaystackWorld();
      const customer = await subscribeAt(world);
      world.paystack.faults.next("charge", fault);
      const first = await customer.upgrade({ tier: "business" });
      world.clock.travel(retryAfterMs(first));
      const second = await customer.upgrade({ tier: "business" });
      expect([second.status, second.body.code]).toEqual([503, "payment_unknown"]);
      expect(retryAfterMs(second)).toBeGreaterThan(minuteMs);
      expect(retryAfterMs(second)).toBeLessThanOrEqual(2 * minuteMs);
      expect(world.paystack.requests.filter(({ operation }) => operation === "charge")).toHaveLength(1);
      expect((await repeatUpgrade(world, customer, second)).status).toBe(200);
      const sent = world.paystack.requests.filter(({ operation }) => operation === "charge");
      expect(sent.map(({ reference }) => reference)).toEqual(Array(2).fill(sent[0]?.reference));
    },
  );

  test("after a slow answer there is nothing to repeat", async () => {
    await using world = await startPaystackWorld();
    const customer = await subscribeAt(world);
    world.paystack.faults.next("charge", "slow");
    const asked = customer.upgrade({ tier: "business" });
    await world.paystack.received("charge");
    world.paystack.faults.release();
    expect((await asked).status).toBe(200);
    await expectUpgradedOnce(world, customer);
  });
});

describe("the client never comes back", () => {
  test("after a charge that was made, the upgrade is completed", async () => {
    await using world = await startPaystackWorld();
    const customer = await subscribeAt(world);
    world.paystack.callbackUrl = null;
    world.paystack.faults.next("charge", "timeout_after_effect");
    await expectToRepeat(customer, await upgradeInSilence(world, customer));
    await travelUntil(world, minuteMs / 2, () => isSettled(world, "upgrade"));
    await expectUpgradedOnce(world, customer);
  });

  test("after a charge that was made, its callback completes the upgrade; and should it come back, it is told so", async () => {
    await using world = await startPaystackWorld();
    const customer = await subscribeAt(world);
    world.paystack.faults.next("charge", "reset_after_effect");
    expect((await customer.upgrade({ tier: "business" })).status).toBe(503);
    await customer.whenCharge(({ kind, state }) => kind === "upgrade" && state === "succeeded");
    await expectUpgradedOnce(world, customer);
    const { status, body } = await customer.upgrade({ tier: "business" });
    expect([status, body]).toMatchObject([200, { tier: "business", payment_status: "paid" }]);
    expect((await customer.upgrade({ tier: "pro" })).body.code).toBe("not_an_upgrade");
    await expectUpgradedOnce(world, customer);
  });

  test("after one that was not, it is dropped after ten minutes, and nothing is charged", async () => {
    await using world = await startPaystackWorld();
    const startedAt = world.clock.now();
    const customer = await subscribeAt(world);
    world.paystack.faults.next("charge", "timeout_before_effect");
    await expectToRepeat(customer, await upgradeInSilence(world, customer));
    const lookUps = world.paystack.requests.filter(({ operation }) => operation === "verify").length;
    await travelUntil(
      world,
      minuteMs,
      () => world.paystack.requests.filter(({ operation }) => operation === "verify").length > lookUps,
    );
    expect(await customer.charges()).toMatchObject([{ kind: "upgrade", state: "pending" }, {}]);
    await travelUntil(world, minuteMs, () => logged(world.server, "payment.failed").length > 0);
    expect(world.clock.now() - startedAt).toBeGreaterThanOrEqual(10 * minuteMs);
    const [dropped] = await customer.whenCharge(({ kind, state }) => kind === "upgrade" && state === "failed");
    expect(dropped?.reason).toBe("The payment never reached the processor");
    await expectUnchanged(customer);
    expect(timesCharged(world, "upgrade")).toBe(0);
    expect((await customer.upgrade({ tier: "business" })).status).toBe(200);
    await expectUpgradedOnce(world, customer);
  });
});

describe("the bank has a say", () => {
  test("a card that it declines: 402 with its reason, and nothing changes", async () => {
    await using world = await startPaystackWorld();
    const customer = await subscribeAt(world, { card: paystackCards.declinesLater });
    const { status, body } = await customer.upgrade({ tier: "business" });
    expect([status, body]).toEqual([
      402,
      { code: "payment_declined", message: stringMatching(/Insufficient Funds.*POST \/v1\/tenants\/payment-method/) },
    ]);
    await expectUnchanged(customer);
    expect(timesCharged(world, "upgrade")).toBe(0);
    expect((await customer.charges())[0]).toMatchObject({
      kind: "upgrade",
      state: "failed",
      reason: "Insufficient Funds",
    });
    expect((await customer.get("/v1/audit?action=tier.raised")).body.total).toBe(0);
  });

  test("a token that Paystack no longer takes: 402, and another card makes it work", async () => {
    await using world = await startPaystackWorld();
    const customer = await subscribeAt(world);
    const authorization = known(world, "verification")[0]?.authorization;
    if (authorization) authorization.active = false;
    expect((await customer.upgrade({ tier: "business" })).status).toBe(402);
    const again = await customer.upgrade({ tier: "business" });
    expect([again.status, again.body.message]).toEqual([402, stringMatching(/declined it permanently/)]);
    await world.paystack.pay(await hostedPage(world, await customer.paymentMethod()), paystackCards.mastercard);
    await customer.whenBilling(({ card }) => card?.last4 === "4796");
    expect((await customer.upgrade({ tier: "business" })).status).toBe(200);
    await expectUpgradedOnce(world, customer);
  });

  test("a charge that it wants confirmed: 202, and payment_url leads to its page", async () => {
    await using world = await startPaystackWorld();
    const customer = await subscribeAt(world, { card: paystackCards.asksLater });
    const { status, body } = await customer.upgrade({ tier: "business" });
    expect([status, body]).toMatchObject([202, { tier: "business", payment_status: "pending" }]);
    const [charge] = known(world, "upgrade");
    const page = await hostedPage(world, body.payment_url);
    expect(page).toBe(charge?.page ?? "none");
    expect(await customer.me()).toMatchObject({ tier: "business", enforced_events_per_month: 5_000_000 });
    await world.paystack.confirm(page);
    await customer.whenBilling(({ status }) => status === "active");
    expect(await customer.me()).toMatchObject({ enforced_events_per_month: 25_000_000 });
    expect((await visit(world.server, body.payment_url)).status).toBe(200);
    await expectUpgradedOnce(world, customer);
  });

  test("a charge that it wants confirmed: payment_url leads to its page, whatever card page was open before", async () => {
    await using world = await startPaystackWorld();
    const customer = await subscribeAt(world, { card: paystackCards.asksLater });
    const cardPage = await hostedPage(world, await customer.paymentMethod());
    const { body } = await customer.upgrade({ tier: "business" });
    const bank = await hostedPage(world, body.payment_url);
    expect(bank).toBe(known(world, "upgrade")[0]?.page ?? "none");
    await world.paystack.pay(cardPage, paystackCards.visa);
    await customer.whenCharge(({ kind, state }) => kind === "verification" && state === "refunded");
    expect((await customer.billing()).card).toMatchObject({ last4: "1902" });
    await world.paystack.confirm(bank);
    await customer.whenBilling(({ status }) => status === "active");
    await expectUpgradedOnce(world, customer);
  });
});
