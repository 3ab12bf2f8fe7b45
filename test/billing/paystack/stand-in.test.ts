import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { createPaystack } from "../../../src/billing/paystack/paystack.ts";
import type { PaymentProcessor } from "../../../src/billing/processor.ts";
import { systemClock } from "../../../src/lib/clock.ts";
import { type PaystackStandIn, startPaystackStandIn } from "../../support/paystack-stand-in.ts";
import { type Receiver, startReceiver } from "../../support/receiver.ts";

const secretKey = "sk_test_example";

const initialize = {
  email: "ops@acme.example",
  amount: 10_000,
  currency: "NGN",
  reference: "ver-7f3k",
  channels: ["card"],
  callback_url: "https://relay.example/return",
  metadata: { purpose: "card_verification", cancel_action: "https://relay.example/cancelled" },
};
const charge = {
  email: "ops@acme.example",
  amount: 10_000,
  currency: "NGN",
  reference: "sub-9q2d",
  authorization_code: "AUTH_abc",
  callback_url: "https://relay.example/return",
  metadata: '{"purpose":"saved_card_charge"}',
};

describe("a request to the stand-in", () => {
  let paystack: PaystackStandIn;
  beforeEach(async () => {
    paystack = await startPaystackStandIn({ secretKey });
  });
  afterEach(() => paystack.stop());

  function send(path: string, body: object | string, headers: Record<string, string> = {}): Promise<Response> {
    return fetch(paystack.url + path, {
      method: "POST",
      headers: { Authorization: `Bearer ${secretKey}`, "Content-Type": "application/json", ...headers },
      body: typeof body === "string" ? body : JSON.stringify(body),
    });
  }

  test("that is as documented is taken", async () => {
    expect((await send("/transaction/initialize", initialize)).status).toBe(200);
    expect(await (await send("/transaction/charge_authorization", charge)).json()).toMatchObject({
      message: "Invalid Authorization Code",
    });
    expect(paystack.violations).toEqual([]);
  });

  test.each([
    ["/transaction/initialize", { ...initialize, amount: "10000" }, "amount is not a whole number"],
    ["/transaction/initialize", { ...initialize, amount: 100.5 }, "amount is not a whole number"],
    ["/transaction/initialize", { ...initialize, amount: 100 }, "amount is less than 50 NGN"],
    ["/transaction/initialize", { ...initialize, currency: "USD" }, "currency is not one of"],
    ["/transaction/initialize", { ...initialize, reference: "ver_1" }, "reference is not a reference"],
    ["/transaction/initialize", { ...initialize, channels: ["card", "bank"] }, 'channels is not ["card"]'],
    ["/transaction/initialize", { ...initialize, callback_url: "/return" }, "callback_url is not an absolute URL"],
    ["/transaction/initialize", { ...initialize, callback_url: "https://a.example/?a=1" }, "has a query of its own"],
    ["/transaction/initialize", { ...initialize, email: "nobody" }, "email is not an e-mail address"],
    ["/transaction/initialize", { ...initialize, email: undefined }, "email is missing"],
    ["/transaction/initialize", { ...initialize, plan: "PLN_1" }, "plan is not a field that may be sent"],
    ["/transaction/initialize", { ...initialize, metadata: "{}" }, "metadata is not a JSON object"],
    [
      "/transaction/initialize",
      { ...initialize, metadata: { purpose: "a", tenant_id: "t1" } },
      "tenant_id is not a field",
    ],
    ["/transaction/initialize", [], "The body is not a JSON object"],
    ["/transaction/initialize", "{", "The body is not a JSON object"],
    ["/transaction/charge_authorization", { ...charge, metadata: { purpose: "a" } }, "metadata is not a string"],
    ["/transaction/charge_authorization", { ...charge, queue: true }, "queue is not a field that may be sent"],
    ["/transaction/charge_authorization", { ...charge, authorization_code: "SBX_1" }, "is not an authorization code"],
    ["/refund", { transaction: "ver-1", amount: "10000" }, "amount is not a whole number above 0"],
    ["/customer/authorization/deactivate", {}, "authorization_code is missing"],
    ["/transaction", {}, "There is no such method and path"],
    ["/transaction/initialize?a=1", initialize, "There is no such method and path"],
  ])("%s with %j is refused: %s", async (path, body, problem) => {
    expect((await send(path, body)).status).toBeGreaterThanOrEqual(400);
    expect(paystack.violations.splice(0).join()).toContain(problem);
    expect(paystack.transactions.size).toBe(0);
  });

  test.each([
    [{ Authorization: secretKey }, "The Authorization header"],
    [{ "Content-Type": "application/x-www-form-urlencoded" }, "The content type"],
    [{ "Idempotency-Key": "1" }, "Idempotency-Key"],
  ])("with the headers %j is refused: %s", async (headers, problem) => {
    expect((await send("/transaction/initialize", initialize, headers)).ok).toBeFalse();
    expect(paystack.violations.splice(0).join()).toContain(problem);
  });

  test("fails the test that made it, in the end", async () => {
    const other = await startPaystackStandIn({ secretKey });
    await fetch(`${other.url}/transaction/verify/ver_1`, { headers: { Authorization: `Bearer ${secretKey}` } });
    await expect(other.stop()).rejects.toThrow("The reference in the path is not a reference");
  });
});

describe("the customer of the stand-in", () => {
  let paystack: PaystackStandIn;
  let processor: PaymentProcessor;
  let server: Receiver;
  let page: string;
  beforeEach(async () => {
    server = startReceiver({ answer: () => new Response(null, { status: 200 }) });
    paystack = await startPaystackStandIn({ secretKey, browse: (url) => fetch(url) });
    paystack.callbackUrl = `${server.url}/callback`;
    processor = createPaystack({ secretKeys: [secretKey], baseUrl: paystack.url, clock: systemClock });
    const answer = await processor.startVerification({
      reference: "ver-7f3k",
      email: "ops@acme.example",
      amountKobo: 10_000,
      returnUrl: `${server.url}/return`,
      cancelUrl: `${server.url}/cancelled`,
    });
    page = answer.kind === "ready" ? answer.url : "";
  });
  afterEach(async () => {
    await paystack.callbacksSent();
    await server.stop();
    await paystack.stop();
  });

  const visits = () => server.requests.map(({ method, path }) => `${method} ${path}`);
  const back = "GET /return?trxref=ver-7f3k&reference=ver-7f3k";

  test("sees a page", async () => {
    const shown = await fetch(page);
    expect({ status: shown.status, type: shown.headers.get("content-type") }).toEqual({
      status: 200,
      type: "text/html; charset=utf-8",
    });
  });

  test("returns before the callback, or after it, as the test wants", async () => {
    await paystack.pay(page);
    expect(visits()).toEqual([back, "POST /callback"]);
    paystack.faults.callbackOrder = "before";
    await processor.startVerification({
      reference: "ver-second",
      email: "ops@acme.example",
      amountKobo: 10_000,
      returnUrl: `${server.url}/second`,
      cancelUrl: `${server.url}/cancelled`,
    });
    await paystack.pay("ver-second");
    expect(visits().slice(2)).toEqual(["POST /callback", "GET /second?trxref=ver-second&reference=ver-second"]);
  });

  test.each([0, 1, 2] as const)("is told of in %i callbacks", async (times) => {
    paystack.faults.callbackTimes = times;
    await paystack.pay(page);
    expect(visits().filter((visit) => visit === "POST /callback")).toHaveLength(times);
    expect(paystack.callbacks.map(({ event, reference, status }) => [event, reference, status])).toEqual(
      Array(times).fill(["charge.success", "ver-7f3k", 200]),
    );
  });

  test("is told of once more when the test says so, in the same bytes", async () => {
    await paystack.pay(page);
    await paystack.sendAgain("ver-7f3k");
    const [first, second] = paystack.callbacks;
    expect(second?.body.equals(first?.body ?? Buffer.alloc(0))).toBeTrue();
    expect(processor.readCallback(second?.body ?? Buffer.alloc(0), second?.headers ?? new Headers())).toEqual({
      kind: "charge",
      reference: "ver-7f3k",
    });
  });

  test("who gives up goes to the address for that, and nothing is paid", async () => {
    expect(await paystack.abandon(page)).toEqual({ returnUrl: `${server.url}/cancelled` });
    expect(visits()).toEqual(["GET /cancelled"]);
    expect(await processor.lookUp("ver-7f3k")).toEqual({ kind: "pending", word: "abandoned" });
  });

  test("cannot pay twice", async () => {
    await paystack.pay(page);
    await expect(paystack.pay(page)).rejects.toThrow("ver-7f3k is success");
  });

  test("is told of when the money goes back, and when the bank asks for it", async () => {
    await paystack.pay(page);
    await paystack.dispute("ver-7f3k");
    await processor.refund({ reference: "ver-7f3k", amountKobo: 10_000 });
    await paystack.callbacksSent();
    expect(paystack.callbacks.map(({ body, headers }) => processor.readCallback(body, headers))).toEqual([
      { kind: "charge", reference: "ver-7f3k" },
      { kind: "dispute", reference: "ver-7f3k" },
      { kind: "refund", reference: "ver-7f3k" },
      { kind: "refund", reference: "ver-7f3k" },
    ]);
  });

  test("has paid although nobody answers the callback", async () => {
    const nobody = startReceiver();
    await nobody.stop();
    paystack.callbackUrl = nobody.url;
    await paystack.pay(page);
    expect(paystack.callbacks.map(({ status }) => status)).toEqual([null]);
    expect(await processor.lookUp("ver-7f3k")).toMatchObject({ kind: "succeeded" });
  });
});
