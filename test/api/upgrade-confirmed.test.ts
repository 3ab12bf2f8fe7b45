import { expect, test } from "bun:test";
import {
  answerBank,
  type Customer,
  cards,
  createClockAt,
  pageBehind,
  pay,
  post,
  proKobo,
  signUp,
  subscribe,
  visit,
  withSandbox,
} from "./customers.ts";
import { provenSections, useServer } from "./scenario.ts";

/** Rules, section 12: the bank of a saved card wants its customer to confirm an upgrade. */

provenSections.add("rules 12").add("spec: Tenant tier and activation moves");

const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;

const clock = createClockAt("2031-10-10T09:00:00Z");
const server = useServer({ clock, env: withSandbox });

/** A customer on pro whose upgrade to business waits for the bank. */
async function waiting(): Promise<Customer & { url: string; askedAt: number }> {
  const customer = await subscribe(server(), cards.careful);
  clock.travel(2 * dayMs);
  await customer.logIn();
  const askedAt = clock.now();
  const { status, body } = await customer.upgrade({ tier: "business" });
  expect([status, body.payment_status]).toEqual([202, "pending"]);
  return Object.assign(customer, { url: String(body.payment_url), askedAt });
}

const upgradeOf = async (customer: Customer) =>
  (await customer.charges()).filter(({ kind }) => kind === "upgrade").map(({ state }) => state);

const twoDaysKobo = Math.floor((proKobo * 2) / 31);

test("until it is confirmed, the account names the target and keeps the old plan's limits", async () => {
  const customer = await waiting();
  expect(await customer.me()).toMatchObject({
    tier: "business",
    max_events_per_month: 25_000_000,
    enforced_events_per_month: 5_000_000,
    enforced_webhooks: 1,
    status: "pending_verification",
  });
  expect((await customer.ingest()).status).toBe(202);
  const billing = await customer.billing();
  expect(billing).toMatchObject({ price_kobo: proKobo, payment_url: customer.url });
  expect(billing.charges[0]).toMatchObject({
    kind: "upgrade",
    amount_kobo: twoDaysKobo,
    state: "confirmation_required",
    completed_at: null,
  });
  const page = await visit(server(), await pageBehind(server(), customer.url));
  expect([page.status, page.text]).toEqual([200, expect.stringMatching(/Confirm NGN 967\.74/)]);
});

test("confirmed on the bank's page it is complete, and charged once", async () => {
  const customer = await waiting();
  expect((await answerBank(server(), customer.url, "yes")).status).toBe(303);
  await customer.whenBilling(({ status }) => status === "active");
  expect(await customer.me()).toMatchObject({ tier: "business", enforced_events_per_month: 25_000_000 });
  const { charges, current_month, payment_url } = await customer.billing();
  expect(charges).toMatchObject([
    { kind: "upgrade", amount_kobo: twoDaysKobo, state: "succeeded" },
    { kind: "verification", state: "succeeded" },
  ]);
  expect(current_month).toMatchObject({ credit_kobo: 0, lines: [{ tier: "business", days: 1 }] });
  expect(payment_url).toBeNull();
  expect((await visit(server(), customer.url)).status).toBe(200);
});

test("the same request once more while it waits is not higher than the target: 400, and no second charge", async () => {
  const customer = await waiting();
  const { status, body } = await customer.upgrade({ tier: "business" });
  expect([status, body.code]).toEqual([400, "not_an_upgrade"]);
  expect(await upgradeOf(customer)).toEqual(["confirmation_required"]);
  // Its first answer may have been lost: what the second one names confirms the charge, and replaces nothing.
  const named = /payment_url of GET ([\w/]+)/.exec(body.message)?.[1] ?? "";
  const { payment_url: url } = (await customer.get(named)).body;
  await answerBank(server(), url, "yes");
  await customer.whenBilling(({ tier, status }) => tier === "business" && status === "active");
  expect(await upgradeOf(customer)).toEqual(["succeeded"]);
});

test("two at once get the same answer, and one charge waits", async () => {
  const customer = await subscribe(server(), cards.careful);
  const [one, other] = await Promise.all([1, 2].map(() => customer.upgrade({ tier: "business" })));
  expect([one?.status, one?.text]).toEqual([202, other?.text]);
  expect(await upgradeOf(customer)).toEqual(["confirmation_required"]);
});

test("refused, the account is back on its old plan at once, and may ask again", async () => {
  const customer = await waiting();
  const refused = await answerBank(server(), customer.url, "no");
  // No callback tells of it; the browser comes back.
  expect((await visit(server(), refused.headers.get("location") ?? "")).status).toBe(200);
  const charges = await customer.whenCharge(({ kind, state }) => kind === "upgrade" && state === "failed");
  expect(charges[0]?.reason).toBe("Not confirmed");
  expect(await customer.billing()).toMatchObject({ tier: "pro", status: "active", payment_url: null });
  expect(await customer.me()).toMatchObject({ tier: "pro", enforced_events_per_month: 5_000_000 });
  expect((await customer.ingest()).status).toBe(202);
  expect((await visit(server(), customer.url)).status).toBe(410);
  const again = await customer.upgrade({ tier: "business" });
  expect(again.status).toBe(202);
  await answerBank(server(), again.body.payment_url, "yes");
  await customer.whenBilling(({ tier, status }) => tier === "business" && status === "active");
  expect(await upgradeOf(customer)).toEqual(["succeeded", "failed"]);
});

test("refused, the next visit of the address learns of it, should nothing else have", async () => {
  const customer = await waiting();
  clock.travel(minuteMs);
  await answerBank(server(), customer.url, "no");
  clock.travel(minuteMs);
  expect((await visit(server(), customer.url)).status).toBe(410);
  expect(await customer.billing()).toMatchObject({ tier: "pro", status: "active", payment_url: null });
});

test("refused from free, where the card was saved before, the login is the id alone again", async () => {
  const customer = await subscribe(server(), cards.careful);
  await server().request("PUT", `/operator/tenants/${customer.id}/tier`, {
    token: server().operatorToken,
    body: { tier: "free" },
  });
  const login = { email: "refuses@example.com", password: "N3w+Password" };
  const { status, body } = await customer.upgrade({ tier: "pro", ...login });
  expect([status, body.payment_status]).toEqual([202, "pending"]);
  const refused = await answerBank(server(), body.payment_url, "no");
  await visit(server(), refused.headers.get("location") ?? "");
  await customer.whenBilling(({ tier }) => tier === "free");
  expect((await signUp(server(), { email: login.email })).created.status).toBe(201);
});

test("with another card instead; a confirmation after that is paid back and changes nothing", async () => {
  const customer = await waiting();
  const bank = await pageBehind(server(), customer.url);
  expect(await customer.paymentMethod()).toBe(customer.url);
  await pay(server(), customer.url, cards.good);
  await customer.whenBilling(({ status }) => status === "active");
  // Nobody answers the bank for weeks, and nothing else waits for that.
  clock.travel(9 * dayMs);
  const other = await subscribe(server(), cards.good);
  expect((await other.billing()).status).toBe("active");
  await customer.logIn();
  await post(server(), bank, { confirm: "yes" });
  await customer.whenCharge(({ kind, state }) => kind === "upgrade" && state === "refunding");
  expect(server().log.filter((line) => line.includes("billing.failed"))).toEqual([]);
  expect(await customer.billing()).toMatchObject({ tier: "business", card: { last4: "4081" } });
  expect((await customer.billing()).current_month).toMatchObject({
    credit_kobo: 0,
    lines: [{ days: 2 }, { days: 10 }],
  });
});

test("unanswered for hours, the address leads to the bank's page and to nothing else", async () => {
  // No month's end comes between.
  clock.to("2031-11-05T09:00:00Z");
  const customer = await waiting();
  const bank = await pageBehind(server(), customer.url);
  expect(bank).toMatch(/\/confirm$/);
  for (const minutes of [61, 12 * 60, 23 * 60]) {
    clock.travel(customer.askedAt + minutes * minuteMs - clock.now());
    expect(await pageBehind(server(), customer.url)).toBe(bank);
  }
  await post(server(), bank, { confirm: "yes" });
  await customer.logIn();
  await customer.whenBilling(({ tier, status }) => tier === "business" && status === "active");
  expect(await upgradeOf(customer)).toEqual(["succeeded"]);
});

test("unanswered for a day, the account is back on its old plan", async () => {
  clock.to("2031-11-10T09:00:00Z");
  const customer = await waiting();
  const bank = await pageBehind(server(), customer.url);
  clock.travel(dayMs - minuteMs);
  await customer.logIn();
  expect(await customer.billing()).toMatchObject({ tier: "business", payment_url: customer.url });
  clock.travel(2 * minuteMs);
  await customer.whenBilling(({ tier }) => tier === "pro");
  expect(await customer.me()).toMatchObject({ tier: "pro", enforced_events_per_month: 5_000_000, status: "active" });
  expect((await visit(server(), customer.url)).status).toBe(410);
  await post(server(), bank, { confirm: "yes" });
  await customer.whenCharge(({ kind, state }) => kind === "upgrade" && state === "refunding");
  expect(await customer.me()).toMatchObject({ tier: "pro", enforced_events_per_month: 5_000_000 });
});
