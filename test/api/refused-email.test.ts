import { expect, test } from "bun:test";
import { refusedEmail } from "../support/paystack-books.ts";
import {
  cards,
  createClockAt,
  customerOf,
  goodPassword,
  logged,
  pageBehind,
  pay,
  signUp,
  visit,
  withSandbox,
} from "./customers.ts";
import { hostedPage, startPaystackWorld } from "./paystack-world.ts";
import { provenSections, useServer } from "./scenario.ts";

/** Rules, section 12: an address that the processor refuses is named as the cause, and can be corrected. */

provenSections.add("rules 12");

const minuteMs = 60_000;
const clock = createClockAt("2031-10-10T09:00:00Z");
const server = useServer({ clock, env: withSandbox });

let addresses = 0;
const refused = () => `ada-${++addresses}@refused.example`;

const withEmail = (email: unknown) => ({ email });

test("the page and the billing answer say that it is the address; another one leads on, and signs in", async () => {
  const customer = await signUp(server(), { email: refused() });
  const page = await visit(server(), customer.paymentUrl);
  expect([page.status, page.text]).toEqual([409, expect.stringMatching(/e-mail address/)]);
  expect(page.text).not.toContain("refused.example");
  const [charge] = await customer.charges();
  expect(charge).toMatchObject({
    kind: "verification",
    state: "pending",
    reason: expect.stringMatching(/e-mail address.*POST \/v1\/tenants\/payment-method/),
  });
  const email = `Corrected-${addresses}@Example.com`;
  const { status, body } = await customer.post("/v1/tenants/payment-method", withEmail(email));
  expect([status, body]).toEqual([200, { payment_url: customer.paymentUrl, payment_note: expect.any(String) }]);
  expect((await customer.me()).email).toBe(email);
  await pay(server(), customer.paymentUrl, cards.good);
  await customer.whenBilling(({ card, status: standing }) => card !== null && standing === "active");
  const login = { loginId: email.toLowerCase(), password: goodPassword };
  expect((await server().request("POST", "/v1/tenants/auth/login", { body: login })).status).toBe(200);
  const old = { loginId: customer.email, password: goodPassword };
  expect((await server().request("POST", "/v1/tenants/auth/login", { body: old })).status).toBe(401);
});

test("the processor is asked again at most once a minute, whoever opens the page", async () => {
  const customer = await signUp(server(), { email: refused() });
  for (let visits = 0; visits < 5; visits += 1) {
    expect((await visit(server(), customer.paymentUrl)).status).toBe(409);
  }
  expect(await customer.charges()).toHaveLength(1);
  const asked = () => logged(server(), "payment.email_refused").length;
  const before = asked();
  clock.travel(minuteMs);
  expect((await visit(server(), customer.paymentUrl)).status).toBe(409);
  expect(asked()).toBe(before + 1);
});

test("however often that is, it is one charge, which nobody looks up", async () => {
  await using world = await startPaystackWorld();
  const customer = await signUp(world.server, { email: refusedEmail });
  for (let visits = 0; visits < 20; visits += 1) {
    expect((await visit(world.server, customer.paymentUrl)).status).toBe(409);
    world.clock.travel(minuteMs);
  }
  expect(await customer.charges()).toHaveLength(1);
  expect(new Set(world.paystack.requests.map(({ operation }) => operation))).toEqual(new Set(["initialize"]));
});

test("another address in place of one that works gets a page of its own; the one before is paid back", async () => {
  const customer = await signUp(server());
  const before = await pageBehind(server(), customer.paymentUrl);
  await customer.post("/v1/tenants/payment-method", withEmail(`other-${customer.email}`));
  const after = await pageBehind(server(), customer.paymentUrl);
  expect(after).not.toBe(before);
  await customer.post("/v1/tenants/payment-method", withEmail(`other-${customer.email}`));
  expect(await pageBehind(server(), customer.paymentUrl)).toBe(after);
});

test.each([
  ["is no address", "ada", "invalid_request", /^email must be an e-mail address/],
  ["is a number", 7, "invalid_request", /^email must be a string/],
  ["has an invisible character", "a\u200bda@example.com", "invalid_request", /^email must not contain invisible/],
])("400 for an e-mail that %s, and nothing is changed", async (_, email, code, message) => {
  const customer = await signUp(server());
  const answer = await customer.post("/v1/tenants/payment-method", withEmail(email));
  expect([answer.status, answer.body]).toEqual([400, { code, message: expect.stringMatching(message) }]);
  expect((await customer.me()).email).toBe(customer.email);
});

test("400 for the login of another paid account, in any case of letters", async () => {
  const holder = await signUp(server());
  const customer = await signUp(server());
  const answer = await customer.post("/v1/tenants/payment-method", withEmail(holder.email.toUpperCase()));
  expect([answer.status, answer.body.code]).toEqual([400, "email_taken"]);
  expect((await customer.me()).email).toBe(customer.email);
});

test("one that another account holds without a card for a day is released to it, as at a sign-up", async () => {
  const holder = await signUp(server());
  clock.travel(25 * 60 * minuteMs);
  const customer = await signUp(server());
  const answer = await customer.post("/v1/tenants/payment-method", withEmail(holder.email));
  expect(answer.status).toBe(200);
  const { id } = await customerOf(server(), customer.id, goodPassword);
  const login = { loginId: holder.email, password: goodPassword };
  const answered = await server().request("POST", "/v1/tenants/auth/login", { body: login });
  expect(answered.body.tenant_id).toBe(id);
});

test("429 for the eleventh change within the hour: each has the processor make a page", async () => {
  const customer = await signUp(server());
  const change = (n: number) => customer.post("/v1/tenants/payment-method", withEmail(`${n}-${customer.email}`));
  for (let n = 1; n <= 10; n += 1) expect((await change(n)).status).toBe(200);
  const { status, body, headers } = await change(11);
  expect([status, body.code, headers.get("retry-after")]).toEqual([
    429,
    "too_many_email_changes",
    expect.stringMatching(/^\d+$/),
  ]);
  expect((await customer.post("/v1/tenants/payment-method")).status).toBe(200);
});

test("an e-mail that is taken counts like a change: nobody can go through a list of them", async () => {
  const holder = await signUp(server());
  const customer = await signUp(server());
  const ask = () => customer.post("/v1/tenants/payment-method", withEmail(holder.email));
  for (let n = 0; n < 10; n += 1) expect((await ask()).body.code).toBe("email_taken");
  const { status, body } = await ask();
  expect([status, body.code]).toEqual([429, "too_many_email_changes"]);
});

test("Paystack's refusal is understood, and the log has no address", async () => {
  await using world = await startPaystackWorld();
  const customer = await signUp(world.server, { email: refusedEmail });
  const page = await visit(world.server, customer.paymentUrl);
  expect([page.status, page.text]).toEqual([409, expect.stringMatching(/e-mail address/)]);
  expect(logged(world.server, "payment.email_refused")).toMatchObject([
    { reason: expect.stringMatching(/Invalid Email Address/) },
  ]);
  expect(world.server.log.join("")).not.toContain(refusedEmail);
  await customer.post("/v1/tenants/payment-method", withEmail("ada-corrected@example.com"));
  await world.paystack.pay(await hostedPage(world, customer.paymentUrl));
  await customer.whenBilling(({ status }) => status === "active");
});
