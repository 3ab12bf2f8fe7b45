import { describe, expect, test } from "bun:test";
import { until } from "../support/api-server.ts";
import { paystackCards } from "../support/paystack-answers.ts";
import type { PaystackFaults } from "../support/paystack-faults.ts";
import { edit, look } from "../support/server-data.ts";
import { logged, proKobo, signUp, verificationKobo, visit } from "./customers.ts";
import {
  hostedPage,
  isSettled,
  known,
  retryAfterMs,
  secretKey,
  startPaystackWorld,
  subscribeAt,
  timesCharged,
  travelUntil,
} from "./paystack-world.ts";
import { provenSections } from "./scenario.ts";

/** Rules, section 12: the verification of a card over Paystack, and the ways by which the program hears of it. */

provenSections.add("rules 12").add("spec: Tenant").add("spec: Errors");

const { any, stringMatching } = expect;
const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;

describe("a customer signs up, pays and is active", () => {
  test("from payment_url to the hosted page and back", async () => {
    await using world = await startPaystackWorld();
    const { server, paystack } = world;
    const customer = await signUp(server);
    expect(await customer.status()).toBe("pending_verification");
    const page = await hostedPage(world, customer.paymentUrl);
    expect(page).toMatch(new RegExp(`^${paystack.url}/page/[0-9a-z]+$`));
    const { returnUrl } = await paystack.pay(page);
    expect(returnUrl).toMatch(/^http:\/\/localhost:\d+\/pay\/return\?trxref=(ver-[0-9a-z]{26})&reference=\1$/);
    expect(paystack.callbacks).toMatchObject([{ event: "charge.success", status: 200 }]);
    await customer.whenBilling(({ status }) => status === "active");
    expect(await customer.billing()).toMatchObject({
      price_kobo: proKobo,
      payment_url: null,
      card: { brand: "visa", last4: "4081", exp_month: "12", exp_year: "2030" },
      charges: [{ kind: "verification", amount_kobo: verificationKobo, state: "succeeded" }],
    });
    expect((await customer.ingest()).status).toBe(202);
    expect((await visit(server, customer.paymentUrl)).text).toMatch(/verified/i);
    expect(timesCharged(world, "verification")).toBe(1);
  });

  test("Paystack is told the e-mail address, and nothing else of the account", async () => {
    await using world = await startPaystackWorld();
    const { server, paystack } = world;
    const customer = await signUp(server);
    await paystack.pay(await hostedPage(world, customer.paymentUrl));
    await customer.whenBilling(({ status }) => status === "active");
    expect((await customer.upgrade({ tier: "business" })).status).toBe(200);
    const told = JSON.stringify(paystack.requests);
    expect(paystack.requests.map(({ operation }) => operation)).toEqual(
      expect.arrayContaining(["initialize", "verify", "charge"]),
    );
    for (const secret of [customer.id, customer.id.slice(5), customer.apiKey, customer.jwt, "Customer "]) {
      expect(told).not.toContain(secret);
    }
    expect(paystack.requests[0]?.fields.email).toBe(customer.email);
    for (const { reference } of paystack.requests) expect(reference).toMatch(/^(?:ver|upg)-[0-9a-z-]+$/);
    for (const { headers } of paystack.requests) expect(headers["user-agent"]).toMatch(/^Postrider\//);
  });

  test("the browser that comes back is shown a page that knows of no account, and its word is not taken", async () => {
    await using world = await startPaystackWorld();
    const customer = await signUp(world.server);
    await hostedPage(world, customer.paymentUrl);
    const [page] = known(world, "verification");
    const answer = await visit(world.server, `/pay/return?trxref=${page?.reference}&reference=${page?.reference}`);
    await world.paystack.received("verify");
    expect([answer.status, answer.text]).toEqual([200, any(String)]);
    expect(answer.text).not.toContain(page?.reference ?? "");
    expect(await customer.status()).toBe("pending_verification");
  });

  test("a card that the bank declines leaves the page open for another one", async () => {
    await using world = await startPaystackWorld();
    const customer = await signUp(world.server);
    const page = await hostedPage(world, customer.paymentUrl);
    world.paystack.decline(page, "Insufficient Funds");
    expect(await hostedPage(world, customer.paymentUrl)).toBe(page);
    await world.paystack.pay(page, paystackCards.mastercard);
    await customer.whenBilling(({ card }) => card?.last4 === "4796");
    expect(await customer.status()).toBe("active");
  });

  test("who cancels is told how to go on, and payment_url still works", async () => {
    await using world = await startPaystackWorld();
    const customer = await signUp(world.server);
    const page = await hostedPage(world, customer.paymentUrl);
    const { returnUrl } = await world.paystack.abandon(page);
    expect((await visit(world.server, returnUrl ?? "")).status).toBe(200);
    expect(await hostedPage(world, customer.paymentUrl)).toBe(page);
  });
});

describe("no callback comes", () => {
  test("the return of the browser has the payment found", async () => {
    await using world = await startPaystackWorld();
    world.paystack.faults.callbackTimes = 0;
    const customer = await signUp(world.server);
    await world.paystack.pay(await hostedPage(world, customer.paymentUrl));
    await customer.whenBilling(({ status }) => status === "active");
    expect(world.paystack.callbacks).toEqual([]);
  });

  test("nor does the browser: the next question for the status has it found", async () => {
    await using world = await startPaystackWorld({ isBrowserLost: true });
    world.paystack.callbackUrl = null;
    const customer = await signUp(world.server);
    await world.paystack.pay(await hostedPage(world, customer.paymentUrl));
    expect(await customer.status()).toBe("pending_verification");
    await world.paystack.received("verify");
    await customer.whenBilling(({ status }) => status === "active");
  });

  test("nobody asks either: it is looked up after a minute", async () => {
    await using world = await startPaystackWorld({ isBrowserLost: true });
    world.paystack.callbackUrl = null;
    const customer = await signUp(world.server);
    await world.paystack.pay(await hostedPage(world, customer.paymentUrl));
    expect(world.paystack.requests.map(({ operation }) => operation)).toEqual(["initialize"]);
    await travelUntil(world, minuteMs / 4, () => isSettled(world, "verification"));
    await customer.whenBilling(({ status }) => status === "active");
  });

  test.each(["reset_after_effect", "unavailable", "rate_limited", "malformed_json", "invalid_key"] as const)(
    "and the look-up ends with %s: the next one finds it",
    async (fault) => {
      await using world = await startPaystackWorld();
      world.paystack.faults.callbackTimes = 0;
      world.paystack.faults.next("verify", fault);
      const customer = await signUp(world.server);
      await world.paystack.pay(await hostedPage(world, customer.paymentUrl));
      await world.paystack.received("verify");
      expect((await customer.billing()).status).toBe("pending_verification");
      await travelUntil(world, minuteMs / 4, () => isSettled(world, "verification"));
      await customer.whenBilling(({ status }) => status === "active");
      expect(await customer.charges()).toMatchObject([{ kind: "verification", state: "succeeded" }]);
    },
  );
});

describe("callbacks", () => {
  test("that come twice, and before the browser, make one payment of it", async () => {
    await using world = await startPaystackWorld();
    world.paystack.faults.callbackTimes = 2;
    world.paystack.faults.callbackOrder = "before";
    const customer = await signUp(world.server);
    await world.paystack.pay(await hostedPage(world, customer.paymentUrl));
    await customer.whenBilling(({ status }) => status === "active");
    const [charge] = await customer.charges();
    await world.paystack.sendAgain(charge?.reference ?? "");
    expect(world.paystack.callbacks.map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(await customer.charges()).toMatchObject([{ kind: "verification", state: "succeeded" }]);
    const settled = world.server.log.filter((line) => JSON.parse(line).event === "payment.settled");
    expect(settled.filter((line) => JSON.parse(line).outcome !== "known")).toHaveLength(1);
    expect(timesCharged(world, "verification")).toBe(1);
  });

  test("that another key has signed are refused, and nothing is looked up", async () => {
    await using world = await startPaystackWorld({ isBrowserLost: true });
    world.paystack.faults.callbackTimes = 0;
    const customer = await signUp(world.server);
    await world.paystack.pay(await hostedPage(world, customer.paymentUrl));
    const body = JSON.stringify({
      event: "charge.success",
      data: { reference: known(world, "verification")[0]?.reference },
    });
    const signed = new Bun.CryptoHasher("sha512", `${secretKey}2`).update(body).digest("hex");
    const headers = { "x-paystack-signature": signed };
    expect((await world.server.request("POST", "/pay/callback", { body, headers })).status).toBe(401);
    expect(world.paystack.requests.map(({ operation }) => operation)).toEqual(["initialize"]);
  });

  test("about a dispute reach the operator's log, and change nothing", async () => {
    await using world = await startPaystackWorld();
    const customer = await signUp(world.server);
    await world.paystack.pay(await hostedPage(world, customer.paymentUrl));
    await customer.whenBilling(({ status }) => status === "active");
    const [charge] = await customer.charges();
    await world.paystack.dispute(charge?.reference ?? "");
    const disputes = world.server.log.filter((line) => JSON.parse(line).event === "payment.disputed");
    expect(disputes).toHaveLength(1);
    expect(await customer.status()).toBe("active");
  });
});

describe("a payment that is not the one that was asked for is given back, and does not activate", () => {
  const wrong: readonly [string, (faults: PaystackFaults) => void, RegExp][] = [
    [
      "a card that cannot be charged again",
      (faults) => {
        faults.notReusable = true;
      },
      /cannot be charged again/,
    ],
    [
      "a lower amount",
      (faults) => {
        faults.amountKobo = 5_000;
      },
      /less than the charge/,
    ],
    [
      "another currency",
      (faults) => {
        faults.currency = "GHS";
      },
      /another currency/,
    ],
  ];
  test.each(wrong)("%s", async (_, spoil, reason) => {
    await using world = await startPaystackWorld();
    const { paystack, server } = world;
    const customer = await signUp(server);
    const page = await hostedPage(world, customer.paymentUrl);
    spoil(paystack.faults);
    await paystack.pay(page);
    await paystack.received("refund");
    await customer.whenCharge(({ state }) => state === "refunded");
    expect(known(world, "verification")).toMatchObject([{ status: "reversed", timesCharged: 1 }]);
    const [spoilt] = known(world, "verification");
    expect(spoilt?.refundedKobo).toBe(spoilt?.amountKobo ?? 0);
    expect(await customer.billing()).toMatchObject({
      status: "pending_verification",
      card: null,
      payment_url: customer.paymentUrl,
      charges: [{ state: "refunded", reason: stringMatching(reason) }],
    });
    expect((await customer.ingest()).status).toBe(402);

    paystack.faults.clear();
    const next = await hostedPage(world, customer.paymentUrl);
    expect(next).not.toBe(page);
    await paystack.pay(next);
    await customer.whenBilling(({ status }) => status === "active");
    expect(known(world, "verification").map(({ status }) => status)).toEqual(["reversed", "success"]);
    expect(paystack.requests.filter(({ operation }) => operation === "refund")).toHaveLength(1);
  });
});

test.each([
  ["this version", null],
  ["a version that did not note when", "update charge set resend_at = null where refund = 'requested'"],
  [
    "a version that left the time of the charge itself",
    "update charge set resend_at = sent_at where refund = 'requested'",
  ],
])(
  "a refund requested by %s that fails is told to the operator, and requested again once it cannot be under way any more",
  async (_, change) => {
    await using world = await startPaystackWorld();
    const { paystack, server, clock } = world;
    const told = () => logged(server, "payment.refund_failed");
    const customer = await subscribeAt(world);
    paystack.callbackUrl = null;
    await paystack.pay(await hostedPage(world, await customer.paymentMethod()), paystackCards.mastercard);
    await paystack.received("refund");
    await customer.whenCharge(({ state }) => state === "refunding");
    paystack.callbackUrl = `${server.url}/pay/callback`;
    if (change !== null) await edit(server, change);
    const reference = known(world, "verification")[1]?.reference ?? "";
    await paystack.failRefund(reference);
    expect(told()).toMatchObject([{ level: "error", reason: stringMatching(/dashboard/) }]);

    const sent = (wanted: string) =>
      paystack.requests.filter((request) => request.operation === wanted && request.reference === reference).length;
    const nextLookAt = async () => {
      const [row] = await look<{ at: string }>(
        server,
        "select cast(refund_at as text) as at from charge where refund = 'requested'",
      );
      return Number(row?.at ?? 0);
    };
    for (let day = 1; day <= 12; day += 1) {
      const at = await until(nextLookAt, (at) => at > clock.now());
      const before = sent("verify");
      clock.travel(at - clock.now());
      await until(
        () => sent("verify"),
        (looks) => looks > before,
      );
    }
    expect([sent("refund"), told().length]).toEqual([1, 1]);
    await travelUntil(world, dayMs, () => sent("refund") === 2);
    await customer.logIn();
    await customer.whenCharge(({ state }) => state === "refunded");
    expect(told()).toMatchObject([{}, { level: "error", reason: stringMatching(/requested again/) }]);
    expect(known(world, "verification")).toMatchObject([
      { status: "success" },
      { status: "reversed", timesCharged: 1 },
    ]);
  },
);

describe("Paystack is down when the customer comes", () => {
  test.each(["unavailable", "reset_before_effect", "malformed_json", "invalid_key", "rate_limited"] as const)(
    "%s: a page says when to come again, and payment_url works then",
    async (fault) => {
      await using world = await startPaystackWorld();
      const { server, paystack, clock } = world;
      const customer = await signUp(server);
      paystack.faults.next("initialize", fault);
      const down = await visit(server, customer.paymentUrl);
      expect([down.status, down.headers.get("content-type")]).toEqual([503, "text/html; charset=utf-8"]);
      expect(retryAfterMs(down)).toBeGreaterThan(0);
      expect(retryAfterMs(down)).toBeLessThanOrEqual(minuteMs);

      const soon = await visit(server, customer.paymentUrl);
      expect([soon.status, paystack.requests.length]).toEqual([503, 1]);
      clock.travel(Math.max(retryAfterMs(down), retryAfterMs(soon)));
      await paystack.pay(await hostedPage(world, customer.paymentUrl));
      await customer.whenBilling(({ status }) => status === "active");
      expect(timesCharged(world, "verification")).toBe(1);
    },
  );

  test("and stays down past the 30 days: nobody is given up before it has said who paid", async () => {
    await using world = await startPaystackWorld({ isBrowserLost: true });
    const { server, paystack, clock } = world;
    const customer = await signUp(server);
    clock.travel(30 * dayMs - 10 * minuteMs);
    const page = await hostedPage(world, customer.paymentUrl);
    paystack.faults.every("verify", "unavailable");
    paystack.callbackUrl = null;
    await paystack.pay(page);
    const asked = () => paystack.requests.filter(({ operation }) => operation === "verify").length;
    clock.travel(11 * minuteMs);
    await travelUntil(world, minuteMs, () => asked() >= 5);
    expect(await customer.status()).toBe("pending_verification");
    paystack.faults.clear();
    await travelUntil(world, minuteMs, () => isSettled(world, "verification"));
    expect(await customer.status()).toBe("active");
    expect(known(world, "verification")).toMatchObject([{ status: "success", timesCharged: 1 }]);
  });

  test("and the clock is set back by a day: payment_url does not wait until it has caught up", async () => {
    await using world = await startPaystackWorld();
    const customer = await signUp(world.server);
    world.paystack.faults.next("initialize", "unavailable");
    expect((await visit(world.server, customer.paymentUrl)).status).toBe(503);
    world.clock.travel(-dayMs);
    expect((await visit(world.server, customer.paymentUrl)).status).toBe(302);
  });

  test("at most one new page is asked for in a minute, however often it is visited", async () => {
    await using world = await startPaystackWorld();
    const customer = await signUp(world.server);
    world.paystack.faults.every("initialize", "unavailable");
    const pages = () => world.paystack.requests.filter(({ operation }) => operation === "initialize").length;
    for (const minute of [1, 2, 3]) {
      for (let visits = 0; visits < 4; visits += 1) {
        expect((await visit(world.server, customer.paymentUrl)).status).toBe(503);
      }
      expect(pages()).toBe(minute);
      world.clock.travel(minuteMs);
    }
    // None was made, so the first reference is still free.
    expect(await customer.charges()).toHaveLength(1);
  });
});
