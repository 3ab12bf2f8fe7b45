import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { createPaystack } from "../../../src/billing/paystack/paystack.ts";
import type { PaymentProcessor } from "../../../src/billing/processor.ts";
import { createFakeClock, type FakeClock } from "../../support/fake-clock.ts";
import { paystackCards } from "../../support/paystack-answers.ts";
import type { RequestFault } from "../../support/paystack-faults.ts";
import type { Operation } from "../../support/paystack-requests.ts";
import { type PaystackStandIn, rateLimitResetSeconds, startPaystackStandIn } from "../../support/paystack-stand-in.ts";
import { startReceiver } from "../../support/receiver.ts";

const secretKey = "sk_test_example";
const email = "ops@acme.example";

let paystack: PaystackStandIn;
let clock: FakeClock;
let processor: PaymentProcessor;
beforeEach(async () => {
  paystack = await startPaystackStandIn({ secretKey });
  clock = createFakeClock();
  processor = createPaystack({ secretKeys: [secretKey], baseUrl: paystack.url, clock });
});
afterEach(() => paystack.stop());

const verification = {
  reference: "ver-7f3k",
  email,
  amountKobo: 10_000,
  returnUrl: "https://relay.example/v1/billing/return",
  cancelUrl: "https://relay.example/v1/billing/cancelled",
};

/** A verification that is paid; its token. */
async function saveCard(): Promise<string> {
  await processor.startVerification(verification);
  await paystack.pay(verification.reference);
  return paystack.transactions.get(verification.reference)?.authorization?.code ?? "";
}

const charge = {
  reference: "sub-9q2d-a1",
  email,
  amountKobo: 250_000,
  returnUrl: "https://relay.example/v1/billing/return",
};

const lastRequest = () => paystack.requests.at(-1);

describe("what is sent", () => {
  test("starts a verification for cards that can be charged again", async () => {
    await processor.startVerification(verification);
    expect(lastRequest()?.fields).toEqual({
      email,
      amount: 10_000,
      currency: "NGN",
      reference: "ver-7f3k",
      channels: ["card"],
      callback_url: "https://relay.example/v1/billing/return",
      metadata: {
        purpose: "card_verification",
        cancel_action: "https://relay.example/v1/billing/cancelled",
        custom_filters: { recurring: true },
      },
    });
  });

  test("charges a saved card, with its metadata as text and without a queue", async () => {
    const token = await saveCard();
    await processor.chargeSavedCard({ ...charge, token });
    expect(lastRequest()?.fields).toEqual({
      email,
      amount: 250_000,
      currency: "NGN",
      authorization_code: token,
      reference: "sub-9q2d-a1",
      callback_url: "https://relay.example/v1/billing/return",
      metadata: '{"purpose":"saved_card_charge","cancel_action":"https://relay.example/v1/billing/return"}',
    });
  });

  test("pays back the amount, and forgets a card", async () => {
    const token = await saveCard();
    await processor.refund({ reference: verification.reference, amountKobo: 10_000 });
    expect(lastRequest()?.fields).toEqual({ transaction: "ver-7f3k", amount: 10_000 });
    await processor.forgetCard(token);
    expect(lastRequest()?.fields).toEqual({ authorization_code: token });
  });

  test("has the reference escaped in the address", async () => {
    expect(await processor.lookUp("ver=1")).toEqual({ kind: "not_found" });
    expect(lastRequest()?.reference).toBe("ver=1");
    expect(paystack.violations).toEqual([]);
    await processor.lookUp("ver-1/../../refund?a");
    expect(paystack.violations.splice(0)).toEqual([
      expect.stringContaining("/transaction/verify/ver-1%2F..%2F..%2Frefund%3Fa"),
    ]);
  });

  test("says who sends it, and wants the answer unpacked", async () => {
    await processor.lookUp("ver-1");
    expect(lastRequest()?.headers).toMatchObject({
      authorization: `Bearer ${secretKey}`,
      accept: "application/json",
      "accept-encoding": "identity",
      "user-agent": expect.stringMatching(/^Postrider\/\d/),
    });
  });
});

describe("calls", () => {
  const calls: Record<Operation, () => Promise<{ kind: string }>> = {
    initialize: () => processor.startVerification({ ...verification, reference: "ver-new" }),
    verify: () => processor.lookUp(verification.reference),
    charge: () => processor.chargeSavedCard({ ...charge, token: "AUTH_unknown" }),
    refund: () => processor.refund({ reference: verification.reference, amountKobo: 10_000 }),
    deactivate: () => processor.forgetCard("AUTH_unknown"),
  };
  const operations = Object.keys(calls) as Operation[];
  const countOf = (operation: Operation) =>
    paystack.requests.filter((request) => request.operation === operation).length;

  const faults: readonly RequestFault[] = [
    "reset_before_effect",
    "reset_after_effect",
    "unavailable",
    "unavailable_after_effect",
    "malformed_json",
    "too_long",
    "redirect",
    "rate_limited",
  ];

  test.each(operations.flatMap((operation) => faults.map((fault) => [operation, fault] as const)))(
    "%s is unknown and not repeated after %s",
    async (operation, fault) => {
      await saveCard();
      const before = countOf(operation);
      paystack.faults.every(operation, fault);
      expect(await calls[operation]()).toMatchObject({ kind: "unknown" });
      expect(countOf(operation)).toBe(before + 1);
      expect(clock.timers).toBe(0);
    },
  );

  test.each([
    ["initialize", 15_000],
    ["verify", 15_000],
    ["charge", 60_000],
    ["refund", 15_000],
    ["deactivate", 15_000],
  ] as const)("%s waits for %i ms, once", async (operation, timeoutMs) => {
    paystack.faults.every(operation, "timeout_before_effect");
    let answer: unknown;
    const call = calls[operation]().then((value) => {
      answer = value;
    });
    await paystack.received(operation);
    clock.advance(timeoutMs - 1);
    expect(clock.timers).toBe(1);
    expect(answer).toBeUndefined();
    clock.advance(1);
    await call;
    expect(answer).toEqual({
      kind: "unknown",
      reason: `No response from Paystack within ${timeoutMs / 1_000} s`,
      underWay: true,
    });
    expect(countOf(operation)).toBe(1);
  });

  test("wait for the end of the answer too", async () => {
    const slow = startReceiver({
      answer: () => new Response(new ReadableStream({ start: (body) => body.enqueue(Buffer.from('{"status":true')) })),
    });
    const call = createPaystack({ secretKeys: [secretKey], baseUrl: slow.url, clock }).lookUp("ver-1");
    await slow.waitFor(1);
    clock.advance(15_000);
    expect(await call).toMatchObject({ kind: "unknown" });
    await slow.stop();
  });

  test("that get a slow answer have it", async () => {
    paystack.faults.next("verify", "slow");
    const call = processor.lookUp("ver-1");
    await paystack.received("verify");
    clock.advance(14_999);
    paystack.faults.release();
    expect(await call).toEqual({ kind: "not_found" });
    expect(clock.timers).toBe(0);
  });

  test("read no more than 1 MiB of an answer", async () => {
    paystack.faults.next("verify", "too_long");
    expect(await processor.lookUp("ver-1")).toEqual({
      kind: "unknown",
      reason: "Paystack's response is larger than 1 MiB",
      underWay: false,
    });
  });

  test("say how long Paystack wants to be left alone", async () => {
    paystack.faults.next("charge", "rate_limited");
    expect(await calls.charge()).toMatchObject({ kind: "unknown", retryAfterMs: rateLimitResetSeconds * 1_000 });
  });

  test.each([
    ["0", 0],
    ["59", 59_000],
    ["", 60_000],
    ["soon", 60_000],
    ["-1", 60_000],
    ["1772366400", 60_000],
    ["86400", 60_000],
  ])("take a reset of %p for %i ms", async (reset, retryAfterMs) => {
    const busy = startReceiver({
      answer: () => Response.json({}, { status: 429, headers: reset === "" ? {} : { "x-ratelimit-reset": reset } }),
    });
    const answer = await createPaystack({ secretKeys: [secretKey], baseUrl: busy.url, clock }).lookUp("ver-1");
    expect(answer).toMatchObject({ kind: "unknown", retryAfterMs });
    await busy.stop();
  });

  test("to nobody are unknown, without the address", async () => {
    const nobody = startReceiver();
    await nobody.stop();
    const answer = await createPaystack({ secretKeys: [secretKey], baseUrl: nobody.url, clock }).lookUp("ver-1");
    expect(answer).toEqual({
      kind: "unknown",
      reason: "The connection to Paystack failed (ECONNREFUSED)",
      underWay: false,
    });
  });

  test("with a wrong key are the operator's to mend, and tell nothing of a reference", async () => {
    const wrong = createPaystack({ secretKeys: ["sk_test_wrong"], baseUrl: paystack.url, clock });
    expect(await wrong.startVerification(verification)).toMatchObject({ kind: "rejected", retry: "operator" });
    expect(await wrong.chargeSavedCard({ ...charge, token: "AUTH_x" })).toMatchObject({ retry: "operator" });
    expect(await wrong.lookUp("ver-1")).toMatchObject({ kind: "unknown" });
    expect(paystack.transactions.size).toBe(0);
  });

  test("keep an id that a number cannot hold", async () => {
    await saveCard();
    const id = "18446744073709551615";
    const long = startReceiver({
      async answer() {
        const verified = await fetch(`${paystack.url}/transaction/verify/${verification.reference}`, {
          headers: { Authorization: `Bearer ${secretKey}` },
        });
        return new Response((await verified.text()).replace(/"id":4099490251/, `"id":${id}`));
      },
    });
    const lookUp = createPaystack({ secretKeys: [secretKey], baseUrl: long.url, clock }).lookUp;
    expect(await lookUp(verification.reference)).toMatchObject({ kind: "succeeded", transactionId: id });
    await long.stop();
  });
});

describe("after no answer", () => {
  test("a look-up tells whether the charge was made, and the same reference never makes a second one", async () => {
    const token = await saveCard();
    paystack.faults.next("charge", "reset_after_effect");
    expect(await processor.chargeSavedCard({ ...charge, token })).toMatchObject({ kind: "unknown" });
    expect(await processor.lookUp(charge.reference)).toMatchObject({ kind: "succeeded", amountKobo: 250_000 });
    expect(await processor.chargeSavedCard({ ...charge, token })).toEqual({ kind: "duplicate" });
    expect(paystack.transactions.get(charge.reference)?.timesCharged).toBe(1);
  });

  test("a look-up tells that it was not, and the same reference makes it", async () => {
    const token = await saveCard();
    paystack.faults.next("charge", "reset_before_effect");
    expect(await processor.chargeSavedCard({ ...charge, token })).toMatchObject({ kind: "unknown" });
    expect(await processor.lookUp(charge.reference)).toEqual({ kind: "not_found" });
    expect(await processor.chargeSavedCard({ ...charge, token })).toMatchObject({ kind: "state" });
    expect(paystack.transactions.get(charge.reference)?.timesCharged).toBe(1);
  });
});

describe("money that behaves otherwise", () => {
  test("is told as it is: amount, currency, a card that cannot be charged again", async () => {
    Object.assign(paystack.faults, { amountKobo: 9_000, currency: "GHS", notReusable: true });
    await processor.startVerification(verification);
    await paystack.pay(verification.reference);
    expect(await processor.lookUp(verification.reference)).toMatchObject({
      kind: "succeeded",
      amountKobo: 9_000,
      requestedKobo: 10_000,
      currency: "GHS",
      card: null,
    });
  });

  test("fails for the bank's reason, at once or for good", async () => {
    const token = await saveCard();
    paystack.faults.savedCard = { kind: "declines", text: "Expired Card" };
    expect(await processor.chargeSavedCard({ ...charge, token })).toEqual({
      kind: "state",
      state: { kind: "failed", reason: "Expired Card", retry: "new_card" },
    });
  });

  test("waits for the customer, who may say no", async () => {
    await processor.startVerification(verification);
    await paystack.pay(verification.reference, paystackCards.asksLater);
    const token = paystack.transactions.get(verification.reference)?.authorization?.code ?? "";
    const answer = await processor.chargeSavedCard({ ...charge, token });
    expect(answer).toMatchObject({ kind: "state", state: { kind: "confirmation" } });
    paystack.decline(charge.reference, "Denied by fraud system");
    expect(await processor.lookUp(charge.reference)).toEqual({
      kind: "failed",
      reason: "Denied by fraud system",
      retry: "later",
    });
  });
});

describe("the adapter", () => {
  const create = (key: string, baseUrl = "https://api.paystack.co") =>
    createPaystack({ secretKeys: [key], baseUrl, clock });

  test("has the mode of its key, and charges no faster than that mode may", () => {
    expect(create("sk_live_abc")).toMatchObject({ name: "paystack", mode: "live", chargesPerSecond: 10 });
    expect(create("sk_test_abc")).toMatchObject({ name: "paystack", mode: "test", chargesPerSecond: 1 });
  });

  test.each(["", "sk_live_", "pk_live_abc", "sk_live_a\nb", " sk_live_abc"])("takes no %p for a key", (key) => {
    expect(() => create(key)).toThrow("Try: copy the secret key");
    expect(() =>
      createPaystack({ secretKeys: ["sk_live_abc", key], baseUrl: "https://api.paystack.co", clock }),
    ).toThrow("Try: copy the secret key");
  });

  test("does not send its key in the open, except on this machine", () => {
    for (const url of ["http://api.paystack.co", "http://10.0.0.1", "ftp://localhost", "paystack", ""]) {
      expect(() => create("sk_live_abc", url)).toThrow("Try: https://api.paystack.co");
    }
    for (const url of ["https://api.paystack.co/", "http://127.0.0.1:4000", "http://[::1]:4000", "http://localhost"]) {
      expect(() => create("sk_live_abc", url)).not.toThrow();
    }
  });

  test("takes an address with a slash at its end", async () => {
    expect(await create(secretKey, `${paystack.url}/`).lookUp("ver-1")).toEqual({ kind: "not_found" });
  });
});
