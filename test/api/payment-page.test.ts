import { describe, expect, test } from "bun:test";
import { until } from "../support/api-server.ts";
import type { Answer } from "../support/test-app.ts";
import {
  type Customer,
  callbackOf,
  cards,
  createClockAt,
  customerOf,
  logged,
  pageBehind,
  pathOf,
  pay,
  payUnheard,
  post,
  postCallback,
  signatureOf,
  signUp,
  signUpFree,
  subscribe,
  visit,
  withSandbox,
} from "./customers.ts";
import { provenSections, useServer } from "./scenario.ts";

/** Rules, section 12: what a `payment_url` leads to, and how the program hears of payments. */

provenSections.add("rules 1").add("rules 12").add("spec: Tenant");

const { stringMatching } = expect;
const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;

const clock = createClockAt("2031-10-01T09:00:00Z");
const server = useServer({ clock, env: withSandbox });
const see = (url: string) => visit(server(), url);

/** A page for people: no script, nothing from elsewhere, nothing kept. */
function expectPage(answer: Answer, status: number, text: RegExp): void {
  expect([answer.status, answer.text]).toEqual([status, stringMatching(text)]);
  expect(answer.headers.get("content-type")).toBe("text/html; charset=utf-8");
  expect(answer.headers.get("cache-control")).toBe("no-store");
  expect(answer.headers.get("referrer-policy")).toBe("no-referrer");
  expect(answer.headers.get("content-security-policy")).toMatch(/^default-src 'none'; /);
  expect(answer.text).not.toContain("<script");
}

const pageOf = (customer: { paymentUrl: string }) => pageBehind(server(), customer.paymentUrl);

/** The reference of the page that a customer is on; it stands in the address to which the sandbox sends back. */
async function referenceOf(customer: Customer): Promise<string> {
  const [charge] = await customer.whenCharge(({ kind }) => kind === "verification");
  return charge?.reference ?? "";
}

describe("payment_url", () => {
  test("redirects to the processor's page, and keeps itself out of the next page's referrer", async () => {
    const { paymentUrl } = await signUp(server());
    const { status, headers, text } = await see(paymentUrl);
    expect([status, headers.get("location"), text]).toEqual([
      302,
      stringMatching(/^http:\/\/localhost:\d+\/pay\/sandbox\/[0-9a-z]{26}$/),
      "",
    ]);
    expect([headers.get("referrer-policy"), headers.get("cache-control")]).toEqual(["no-referrer", "no-store"]);
    expectPage(await see(headers.get("location") ?? ""), 200, /NGN 100\.00/);
  });

  test("leads to the same page again, also when many come at once", async () => {
    const customer = await signUp(server());
    const pages = await Promise.all(Array.from({ length: 8 }, () => pageOf(customer)));
    expect(new Set(pages).size).toBe(1);
    clock.travel(30 * minuteMs);
    expect(await pageOf(customer)).toBe(pages[0] ?? "");
    expect(await customer.charges()).toHaveLength(1);
  });

  test("leads to a new page after an hour; what is paid on the page before is paid back and changes nothing", async () => {
    const customer = await signUp(server());
    const first = await pageOf(customer);
    clock.travel(61 * minuteMs);
    const second = await pageOf(customer);
    expect(second).not.toBe(first);
    expect(await pageOf(customer)).toBe(second);
    await post(server(), first, { card: cards.good });
    const charges = await customer.whenCharge(({ state }) => state === "refunding");
    expect(charges.map(({ state }) => state)).toEqual(["pending", "refunding"]);
    expect(await customer.billing()).toMatchObject({ status: "pending_verification", card: null });
    expect(await customer.status()).toBe("pending_verification");
    await post(server(), second, { card: cards.good });
    await customer.whenBilling(({ status }) => status === "active");
  });

  test("says so once the card is verified, whoever asks", async () => {
    const customer = await subscribe(server(), cards.good);
    expectPage(await see(customer.paymentUrl), 200, /card is verified/);
    const next = await customer.paymentMethod();
    expectPage(await see(customer.paymentUrl), 200, /card is verified/);
    expect((await see(next)).status).toBe(302);
  });

  test("finds a payment of which no callback has told", async () => {
    const customer = await signUp(server());
    await payUnheard(server(), clock, await pageOf(customer), cards.good);
    expect((await see(customer.paymentUrl)).status).toBe(302);
    expect(await customer.status()).toBe("pending_verification");
    clock.travel(minuteMs);
    expectPage(await see(customer.paymentUrl), 200, /card is verified/);
    expect(await customer.status()).toBe("active");
  });

  test("is 404 after the deletion; a payment on its page is paid back", async () => {
    const customer = await signUp(server());
    const page = await pageOf(customer);
    expect((await customer.delete("/v1/tenants")).status).toBe(204);
    expectPage(await see(customer.paymentUrl), 404, /nothing to pay/);
    const before = logged(server(), "payment.refunded").length;
    await post(server(), page, { card: cards.good });
    await until(
      () => logged(server(), "payment.refunded").length,
      (refunds) => refunds === before + 1,
    );
    expectPage(await see(page), 200, /Refunded/);
    expectPage(await see(customer.paymentUrl), 404, /nothing to pay/);
  });

  test.each(["x", "0".repeat(26), "%00", "__proto__", "..%2f..", "' or 1=1"])(
    "is 404 for the made-up token %s",
    async (token) => {
      expectPage(await server().request("GET", `/pay/${encodeURIComponent(token)}`), 404, /nothing to pay/);
    },
  );

  test("is not for trying out: 60 visits a minute for an address", async () => {
    clock.travel(2 * minuteMs);
    const visits = await Promise.all(Array.from({ length: 61 }, () => server().request("GET", "/pay/made-up")));
    expect(visits.map(({ status }) => status).sort()).toEqual([...Array(60).fill(404), 429]);
    clock.travel(2 * minuteMs);
  });
});

describe("a verification that nobody completes", () => {
  test("ends an account made on a paid tier after 30 days: it is erased, and its e-mail is free", async () => {
    const customer = await signUp(server());
    const page = await pageOf(customer);
    clock.travel(30 * dayMs - hourMs);
    expect((await see(customer.paymentUrl)).status).toBe(302);
    clock.travel(2 * hourMs);
    const gone = () => server().request("GET", `/v1/tenants/${customer.id}/status`);
    await until(gone, ({ status }) => status === 404);
    expectPage(await see(customer.paymentUrl), 404, /nothing to pay/);
    const before = logged(server(), "payment.refunded").length;
    await post(server(), page, { card: cards.good });
    await until(
      () => logged(server(), "payment.refunded").length,
      (refunds) => refunds === before + 1,
    );
    expect((await gone()).status).toBe(404);
    const again = await signUp(server(), { email: customer.email });
    expect(again.id).not.toBe(customer.id);
  });

  test("returns an upgrade to the old plan after 30 days; what is paid then is paid back and changes nothing", async () => {
    const customer = await signUpFree(server());
    const login = { email: "gives-up@example.com", password: "N3w+Password" };
    const { body } = await customer.upgrade({ tier: "business", ...login });
    const page = await pageBehind(server(), body.payment_url);
    clock.travel(30 * dayMs + hourMs);
    await until(customer.status, (status) => status === "active");
    const back = await customerOf(server(), customer.id, login.password);
    expect(await back.me()).toMatchObject({
      tier: "free",
      max_events_per_month: 10_000,
      enforced_events_per_month: 10_000,
      status: "active",
    });
    expectPage(await see(body.payment_url), 410, /expired/);
    await post(server(), page, { card: cards.good });
    await back.whenCharge(({ state }) => state === "refunding");
    expect(await back.billing()).toMatchObject({ tier: "free", card: null, payment_url: null });
    expect((await back.ingest()).status).toBe(202);
    // Its e-mail is a contact again: free for another account, and no login id.
    const taken = { loginId: login.email, password: login.password };
    expect((await server().request("POST", "/v1/tenants/auth/login", { body: taken })).status).toBe(401);
    expect((await signUp(server(), { email: login.email })).created.status).toBe(201);
  });

  test("leaves an account with a plan as it is: only the other card was given up", async () => {
    const customer = await subscribe(server(), cards.good);
    const url = await customer.paymentMethod();
    clock.travel(30 * dayMs + hourMs);
    await customer.logIn();
    await customer.whenBilling(({ payment_url }) => payment_url === null);
    expect(await customer.billing()).toMatchObject({ tier: "pro", status: "active", card: { last4: "4081" } });
    expectPage(await see(url), 410, /expired/);
    expect(await customer.paymentMethod()).not.toBe(url);
  });
});

describe("callbacks of the processor", () => {
  test.each([
    ["none", ""],
    ["a wrong one", "0".repeat(128)],
    ["a short one", "abcd"],
    ["no hex", "z".repeat(128)],
  ])("401 with a signature that does not hold: %s", async (_, signature) => {
    const customer = await signUp(server());
    await pageOf(customer);
    const reference = await referenceOf(customer);
    const { status, body } = await postCallback(server(), callbackOf(reference), signature);
    expect([status, body.code]).toEqual([401, "bad_signature"]);
  });

  test("401 when a byte was changed on the way", async () => {
    const body = callbackOf("ver-00000000000000000000000000");
    const { status } = await postCallback(server(), `${body} `, signatureOf(server(), body));
    expect(status).toBe(401);
  });

  test.each([
    ["an unknown reference", callbackOf("ver-00000000000000000000000000")],
    ["a reference that is not ours", callbackOf("order-17' or 1=1")],
    [
      "another event",
      JSON.stringify({ event: "transfer.success", data: { reference: "ver-00000000000000000000000000" } }),
    ],
    ["no reference", JSON.stringify({ event: "charge.success", data: {} })],
    ["a list", "[]"],
    ["no JSON", "charge.success"],
    ["nothing", ""],
  ])("200 with a right signature over %s, which changes nothing", async (_, body) => {
    const answer = await postCallback(server(), body);
    expect([answer.status, answer.body]).toEqual([200, { status: "received" }]);
  });

  test("a lie about a payment that was not made is only looked up", async () => {
    const customer = await signUp(server());
    await pageOf(customer);
    expect((await postCallback(server(), callbackOf(await referenceOf(customer)))).status).toBe(200);
    expect(await customer.charges()).toMatchObject([{ state: "pending" }]);
    expect(await customer.status()).toBe("pending_verification");
  });

  test("the same one twice, and again much later, counts once", async () => {
    const customer = await subscribe(server(), cards.good);
    const reference = await referenceOf(customer);
    const before = await customer.billing();
    const again = () => postCallback(server(), callbackOf(reference));
    expect((await Promise.all([again(), again(), again()])).map(({ status }) => status)).toEqual([200, 200, 200]);
    clock.travel(hourMs);
    expect((await again()).status).toBe(200);
    expect(await customer.billing()).toEqual(before);
  });
});

describe("coming back from the processor", () => {
  const neutral = /Your payment is being checked/;

  test.each(["", "?reference=", "?reference=ver-00000000000000000000000000", "?reference=%00%ff", "?trxref=../../etc"])(
    "/pay/return%s says nothing of any account",
    async (query) => expectPage(await server().request("GET", `/pay/return${query}`), 200, neutral),
  );

  test("is the same page for a payment that there is", async () => {
    const customer = await subscribe(server(), cards.good);
    const known = await server().request("GET", `/pay/return?reference=${await referenceOf(customer)}`);
    const unknown = await server().request("GET", "/pay/return?reference=ver-00000000000000000000000000");
    expectPage(known, 200, neutral);
    expect(known.text).toBe(unknown.text);
  });

  test.each(["/pay/return", "/pay/cancelled"])("%s leads back to the dashboard, without a script", async (path) => {
    const { text, headers } = await server().request("GET", path);
    expect(text).toMatch(/<a href="\/plan[^"]*">Back to the dashboard<\/a>/);
    expect(text).not.toContain("<script");
    expect(headers.get("content-security-policy")).not.toContain("script-src");
  });

  test("/pay/return goes on to the dashboard by itself", async () => {
    const { headers } = await server().request("GET", "/pay/return");
    expect(headers.get("refresh")).toBe("8; url=/plan?payment=returned");
  });

  test("has the payment looked up, should the callback be lost", async () => {
    const customer = await signUp(server());
    await payUnheard(server(), clock, await pageOf(customer), cards.good);
    const reference = await referenceOf(customer);
    await server().request("GET", `/pay/return?trxref=${reference}&reference=${reference}`);
    await customer.whenBilling(({ status }) => status === "active");
  });

  test("polling the status finds it, too", async () => {
    const customer = await signUp(server());
    await payUnheard(server(), clock, await pageOf(customer), cards.good);
    await until(customer.status, (status) => status === "active");
  });

  test("and so does time alone", async () => {
    const customer = await signUp(server());
    await payUnheard(server(), clock, await pageOf(customer), cards.good);
    clock.travel(2 * minuteMs);
    await customer.whenBilling(({ status }) => status === "active");
  });

  test("giving up shows a page on which nothing was charged", async () => {
    const customer = await signUp(server());
    const { text } = await see(await pageOf(customer));
    const cancel = /href="([^"]+\/pay\/cancelled[^"]*)"/.exec(text)?.[1] ?? "";
    expectPage(await see(cancel), 200, /Nothing was charged/);
    expect((await pay(server(), customer.paymentUrl, cards.good)).status).toBe(303);
    expect(pathOf(cancel)).toMatch(/^\/pay\/cancelled/);
  });
});
