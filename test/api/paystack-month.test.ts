import { describe, expect, test } from "bun:test";
import { until } from "../support/api-server.ts";
import { paystackCards } from "../support/paystack-answers.ts";
import type { RequestFault } from "../support/paystack-faults.ts";
import { type Customer, customerOf, goodPassword, whenFailed } from "./customers.ts";
import {
  hostedPage,
  isSettled,
  known,
  type PaystackWorld,
  secretKey,
  startPaystackWorld,
  subscribeAt,
  timesCharged,
  travelUntil,
} from "./paystack-world.ts";
import { provenSections } from "./scenario.ts";

/** Rules, sections 3 and 12: the month's end, the last charge, and what must not get into the log, over Paystack. */

provenSections.add("rules 3").add("rules 12");

const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;
const monthEnd = "2031-10-31T11:00:00Z";

/** From the 10th to the 31st of October. */
const october = Math.floor((1_500_000 * 22) / 31);

const chargesSent = ({ paystack }: PaystackWorld) =>
  paystack.requests.filter(({ operation }) => operation === "charge");

const sent = ({ paystack }: PaystackWorld, wanted: string): number =>
  paystack.requests.filter(({ operation }) => operation === wanted).length;

const whenSubscribed = (customer: Customer, wanted: string) =>
  customer.whenCharge(({ kind, state }) => kind === "subscription" && state === wanted);

describe("the month's end", () => {
  test("is charged once, with the token and its own e-mail address", async () => {
    await using world = await startPaystackWorld();
    const customer = await subscribeAt(world);
    world.clock.to(monthEnd);
    await customer.logIn();
    await whenSubscribed(customer, "succeeded");
    const [verified] = known(world, "verification");
    expect(chargesSent(world).map(({ fields }) => fields)).toMatchObject([
      { amount: october, email: customer.email, authorization_code: verified?.authorization?.code },
    ]);
    expect(known(world, "subscription")).toMatchObject([{ timesCharged: 1, amountKobo: october, status: "success" }]);
    expect(await customer.status()).toBe("active");
  });

  const faults: readonly RequestFault[] = [
    "rate_limited",
    "reset_before_effect",
    "reset_after_effect",
    "unavailable",
    "unavailable_after_effect",
    "malformed_json",
  ];
  test.each(faults)("after %s in place of an answer, it is charged once all the same", async (fault) => {
    await using world = await startPaystackWorld();
    const customer = await subscribeAt(world);
    world.paystack.callbackUrl = null;
    world.paystack.faults.next("charge", fault);
    world.clock.to(monthEnd);
    await world.paystack.received("charge");
    await customer.logIn();
    await whenSubscribed(customer, "pending");
    await travelUntil(world, minuteMs / 2, () => isSettled(world, "subscription"));
    await customer.logIn();
    await whenSubscribed(customer, "succeeded");
    expect(timesCharged(world, "subscription")).toBe(1);
    expect(new Set(chargesSent(world).map(({ reference }) => reference)).size).toBe(1);
    expect((await customer.charges()).filter(({ kind }) => kind === "subscription")).toMatchObject([
      { amount_kobo: october, state: "succeeded" },
    ]);
    expect(await customer.status()).toBe("active");
  });

  test("after a 429 and then a lost answer, too", async () => {
    await using world = await startPaystackWorld();
    const customer = await subscribeAt(world);
    world.paystack.callbackUrl = null;
    world.paystack.faults.next("charge", "rate_limited");
    world.paystack.faults.next("charge", "reset_after_effect");
    world.clock.to(monthEnd);
    await world.paystack.received("charge");
    await customer.logIn();
    await travelUntil(world, minuteMs / 2, () => isSettled(world, "subscription"));
    await customer.logIn();
    await whenSubscribed(customer, "succeeded");
    expect(timesCharged(world, "subscription")).toBe(1);
    expect(chargesSent(world)).toHaveLength(2);
    expect(await customer.status()).toBe("active");
  });

  test("with a key that Paystack does not take, the customer is not held to have failed, and it is charged later", async () => {
    await using world = await startPaystackWorld();
    const customer = await subscribeAt(world);
    world.paystack.faults.next("charge", "invalid_key");
    world.clock.to(monthEnd);
    await world.paystack.received("charge");
    await until(
      () => world.server.log.some((line) => JSON.parse(line).event === "payment.refused"),
      (wasRefused) => wasRefused,
    );
    await customer.logIn();
    expect(await customer.status()).toBe("active");
    await travelUntil(world, 10 * minuteMs, () => isSettled(world, "subscription"));
    await customer.logIn();
    await whenSubscribed(customer, "succeeded");
    expect(timesCharged(world, "subscription")).toBe(1);
  });

  test("that the bank declines is tried again the next day under another reference", async () => {
    await using world = await startPaystackWorld();
    const customer = await subscribeAt(world);
    world.paystack.faults.savedCard = { kind: "declines", text: "Insufficient Funds" };
    world.clock.to(monthEnd);
    await customer.logIn();
    await whenSubscribed(customer, "failed");
    expect(await customer.billing()).toMatchObject({ status: "past_due" });
    world.paystack.faults.clear();
    world.clock.travel(dayMs + minuteMs);
    await customer.logIn();
    await whenSubscribed(customer, "succeeded");
    const [first, second] = known(world, "subscription");
    expect([first, second]).toMatchObject([{ timesCharged: 0 }, { timesCharged: 1 }]);
    expect(second?.reference).toBe(first?.reference.replace(/-a1$/, "-a2") ?? "");
    expect(await customer.status()).toBe("active");
  });

  test("whose last retry goes unanswered is charged to the card that was verified meanwhile", async () => {
    await using world = await startPaystackWorld();
    const { paystack, clock } = world;
    const customer = await subscribeAt(world, { card: paystackCards.declinesLater });
    clock.to(monthEnd);
    await paystack.received("charge");
    for (const [times, day] of [1, 3, 5, 7].entries()) {
      await customer.logIn();
      await whenFailed(customer, times + 1);
      if (day === 7) paystack.faults.next("charge", "unavailable");
      clock.to(new Date(Date.parse(monthEnd) + day * dayMs + minuteMs).toISOString());
      await paystack.received("charge", times + 2);
    }
    await customer.logIn();
    await whenSubscribed(customer, "pending");
    await paystack.pay(await hostedPage(world, await customer.paymentMethod()), paystackCards.mastercard);
    await travelUntil(world, minuteMs / 2, () => isSettled(world, "subscription"));
    await customer.logIn();
    await customer.whenBilling(({ status }) => status === "active");
    expect(timesCharged(world, "subscription")).toBe(1);
  });

  test("whose lost charge turns out to be declined is charged at once to the same card, verified again", async () => {
    await using world = await startPaystackWorld();
    const { paystack, clock, server } = world;
    const customer = await subscribeAt(world, { card: paystackCards.declinesLater });
    paystack.callbackUrl = null;
    paystack.faults.next("charge", "unavailable_after_effect");
    clock.to(monthEnd);
    await paystack.received("charge");
    await customer.logIn();
    await whenSubscribed(customer, "pending");
    paystack.callbackUrl = `${server.url}/pay/callback`;
    const sameCard = { ...paystackCards.declinesLater, later: { kind: "succeeds" } } as const;
    await paystack.pay(await hostedPage(world, await customer.paymentMethod()), sameCard);
    await customer.whenCharge(({ kind, state }) => kind === "verification" && state !== "pending");
    await travelUntil(world, minuteMs / 2, () => isSettled(world, "subscription"));
    expect(clock.now()).toBeLessThan(Date.parse(monthEnd) + dayMs);
    await customer.logIn();
    await customer.whenBilling(({ status }) => status === "active");
    expect(timesCharged(world, "subscription")).toBe(1);
  });

  test("survives a restart between the charge and its answer", async () => {
    await using world = await startPaystackWorld();
    const before = await subscribeAt(world);
    world.paystack.callbackUrl = null;
    world.paystack.faults.next("charge", "timeout_after_effect");
    world.clock.to(monthEnd);
    await world.paystack.received("charge");
    const restarted = world.restart();
    world.clock.travel(2 * minuteMs);
    const server = await restarted;
    await travelUntil(world, minuteMs / 2, () => isSettled(world, "subscription"));
    const customer = await customerOf(server, before.id, goodPassword);
    await whenSubscribed(customer, "succeeded");
    expect(timesCharged(world, "subscription")).toBe(1);
  });
});

describe("a deleted account", () => {
  test("is charged for its last days, and its token is made useless", async () => {
    await using world = await startPaystackWorld();
    const customer = await subscribeAt(world);
    world.clock.travel(2 * dayMs);
    await customer.logIn();
    await customer.delete("/v1/tenants");
    await world.paystack.received("deactivate");
    const authorization = known(world, "verification")[0]?.authorization;
    expect(known(world, "closing")).toMatchObject([
      { timesCharged: 1, status: "success", amountKobo: Math.floor((1_500_000 * 3) / 31) },
    ]);
    expect(authorization?.active).toBe(false);
    const last = world.paystack.requests.at(-1);
    expect([last?.operation, last?.fields]).toEqual(["deactivate", { authorization_code: authorization?.code }]);
  });

  test.each(["rate_limited", "reset_before_effect", "reset_after_effect"] as const)(
    "has its token made useless also when the first request for it ends with %s",
    async (fault) => {
      await using world = await startPaystackWorld();
      const customer = await subscribeAt(world);
      world.clock.travel(2 * dayMs);
      await customer.logIn();
      world.paystack.faults.next("deactivate", fault);
      await customer.delete("/v1/tenants");
      await until(
        () => world.server.log.some((line) => JSON.parse(line).event === "payment.card_not_forgotten"),
        (isKept) => isKept,
      );
      const deactivated = known(world, "verification")[0]?.authorization;
      await travelUntil(world, minuteMs, () => sent(world, "deactivate") >= 2 && deactivated?.active === false);
      expect(known(world, "verification")[0]?.authorization?.active).toBe(false);
      expect(timesCharged(world, "closing")).toBe(1);
    },
  );

  test("that had another card before leaves no token behind", async () => {
    await using world = await startPaystackWorld();
    const customer = await subscribeAt(world);
    await world.paystack.pay(await hostedPage(world, await customer.paymentMethod()), paystackCards.mastercard);
    await customer.whenBilling(({ card }) => card?.last4 === "4796");
    await world.paystack.received("deactivate");
    await customer.delete("/v1/tenants");
    await world.paystack.received("deactivate", 2);
    expect(known(world, "verification").map(({ authorization }) => authorization?.active)).toEqual([false, false]);
  });
});

test("nothing in the log names a token, a page, a person or the key", async () => {
  await using world = await startPaystackWorld();
  const { paystack, server, clock } = world;
  const customer = await subscribeAt(world);
  paystack.faults.next("charge", "reset_after_effect");
  const first = await customer.upgrade({ tier: "business" });
  expect(first.status).toBe(503);
  await travelUntil(world, minuteMs / 2, () => isSettled(world, "upgrade"));
  const urls = [customer.paymentUrl, await customer.paymentMethod()];
  paystack.faults.next("initialize", "invalid_key");
  const refusedPage = await server.request("GET", new URL(urls.at(-1) ?? "").pathname);
  expect(refusedPage.status).toBe(503);
  clock.travel(minuteMs);
  const page = await hostedPage(world, urls.at(-1) ?? "");
  paystack.faults.notReusable = true;
  await paystack.pay(page);
  await customer.whenCharge(({ state }) => state === "refunded");
  paystack.faults.clear();
  await paystack.pay(await hostedPage(world, urls.at(-1) ?? ""), paystackCards.asksLater);
  await customer.whenBilling(({ card }) => card?.last4 === "1902");
  paystack.faults.next("charge", "invalid_key");
  await customer.delete("/v1/tenants");
  await until(
    () => server.log.some((line) => JSON.parse(line).event === "payment.refused"),
    (wasRefused) => wasRefused,
  );
  await travelUntil(world, 10 * minuteMs, () =>
    [...paystack.transactions.values()].every(({ authorization }) => !authorization?.reusable || !authorization.active),
  );

  const log = server.log.join("\n");
  const transactions = [...paystack.transactions.values()];
  const secrets = [
    secretKey,
    "AUTH_",
    "SIG_",
    "CUS_",
    "@example.com",
    "%40example.com",
    "Bearer",
    ...urls.map((url) => url.split("/").at(-1) ?? ""),
    ...transactions.flatMap(({ page: address, authorization, reference }) => [
      reference,
      ...(address ? [address, address.split("/").at(-1) ?? ""] : []),
      ...(authorization ? [authorization.code] : []),
    ]),
  ];
  expect(secrets).not.toContain("");
  expect(secrets.filter((secret) => log.includes(secret))).toEqual([]);
  expect(log).toContain("payment.settled");
});
