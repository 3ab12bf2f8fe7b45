import { expect, test } from "bun:test";
import { until } from "../support/api-server.ts";
import { startPaystackStandIn } from "../support/paystack-stand-in.ts";
import { startTestApp, type TestApp } from "../support/test-app.ts";
import {
  answerBank,
  type Customer,
  cards,
  createClockAt,
  customerOf,
  goodPassword,
  pageBehind,
  pay,
  payUnheard,
  signUp,
  subscribe,
  visit,
  withSandbox,
} from "./customers.ts";
import { provenSections } from "./scenario.ts";

/** Rules, section 12: no charge ever happens twice and no payment is lost, wherever the server was stopped. */

provenSections.add("rules 12").add("rules 3");

const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;

/** A server that can be stopped and started again with what it knows. */
async function start() {
  const clock = createClockAt("2031-10-10T09:00:00Z");
  const first = await startTestApp({ clock, env: withSandbox });
  const again = async (env: Record<string, string> = {}): Promise<TestApp> => {
    await first.stop({ keepData: true });
    return startTestApp({ clock, env: { ...withSandbox, ...env }, dataDir: first.dataDir });
  };
  return { clock, first, again };
}

type Again = Awaited<ReturnType<typeof start>>["again"];

test("stopped between the payment and its callback, it finds the payment at the next start", async () => {
  const { clock, first, again } = await start();
  const { id, paymentUrl } = await signUp(first);
  await payUnheard(first, clock, await pageBehind(first, paymentUrl), cards.good);
  const second = await again();
  const customer = await customerOf(second, id, goodPassword);
  expect(await customer.billing()).toMatchObject({ status: "pending_verification" });
  clock.travel(2 * minuteMs);
  await customer.whenBilling(({ status }) => status === "active");
  expect(await customer.charges()).toMatchObject([{ kind: "verification", state: "succeeded" }]);
  expect((await customer.ingest()).status).toBe(202);
  expect((await visit(second, paymentUrl)).status).toBe(200);
  await second.stop();
});

test("stopped while the customer pays, the account ends active", async () => {
  const { clock, first, again } = await start();
  const { id, paymentUrl } = await signUp(first);
  expect((await pay(first, paymentUrl, cards.good)).status).toBe(303);
  const second = await again();
  clock.travel(2 * minuteMs);
  const customer = await customerOf(second, id, goodPassword);
  await customer.whenBilling(({ status }) => status === "active");
  expect(await customer.charges()).toHaveLength(1);
  await second.stop();
});

test("the page that the customer has open and the payment_url outlive the server", async () => {
  const { first, again } = await start();
  const { id, paymentUrl } = await signUp(first);
  const page = await pageBehind(first, paymentUrl);
  const second = await again();
  expect(await pageBehind(second, paymentUrl)).toBe(page);
  await pay(second, paymentUrl, cards.good);
  const customer = await customerOf(second, id, goodPassword);
  await customer.whenBilling(({ status }) => status === "active");
  await second.stop();
});

test("stopped in the middle of an upgrade, at most one charge is made, and the account fits it", async () => {
  const { clock, first, again } = await start();
  const before = await subscribe(first, cards.good);
  const asked = before.upgrade({ tier: "business" }).catch(() => null);
  const second = await again();
  const answer = await asked;
  clock.travel(20 * minuteMs);
  const customer = await customerOf(second, before.id, goodPassword);
  const { tier, charges } = await customer.whenBilling(({ charges }) =>
    charges.every(({ state }) => state !== "pending"),
  );
  const paid = charges.filter(({ kind, state }) => kind === "upgrade" && state === "succeeded");
  expect(paid).toHaveLength(tier === "business" ? 1 : 0);
  if (answer?.status === 200) expect(tier).toBe("business");
  if (tier === "pro") expect((await customer.upgrade({ tier: "business" })).status).toBe(200);
  expect(
    (await customer.charges()).filter(({ kind, state }) => kind === "upgrade" && state === "succeeded"),
  ).toHaveLength(1);
  await second.stop();
});

test("an upgrade that waits for the bank can be confirmed after a restart", async () => {
  const { first, again } = await start();
  const before = await subscribe(first, cards.careful);
  const { body } = await before.upgrade({ tier: "business" });
  const second = await again();
  const customer = await customerOf(second, before.id, goodPassword);
  expect((await customer.billing()).payment_url).toMatch(new RegExp(`${new URL(body.payment_url).pathname}$`));
  await answerBank(second, body.payment_url, "yes");
  await customer.whenBilling(({ status }) => status === "active");
  await second.stop();
});

test("without payments the accounts stay what they are, and nothing is charged; with them it goes on", async () => {
  const { clock, first, again } = await start();
  const { id } = await subscribe(first, cards.good);
  const off = await again({ POSTRIDER_PAYMENTS: "off" });
  clock.to("2031-11-01T09:00:00Z");
  const meanwhile = await customerOf(off, id, goodPassword);
  expect(await meanwhile.me()).toMatchObject({ tier: "pro", status: "active" });
  expect((await meanwhile.ingest()).status).toBe(202);
  expect((await meanwhile.post("/v1/tenants/payment-method")).status).toBe(503);
  expect((await meanwhile.get("/v1/tenants/billing")).body.code).toBe("payments_unavailable");
  await off.stop({ keepData: true });
  const second = await startTestApp({ clock, env: withSandbox, dataDir: first.dataDir });
  const customer = await customerOf(second, id, goodPassword);
  const charges = await customer.whenCharge(({ kind, state }) => kind === "subscription" && state === "succeeded");
  expect(charges[0]?.amount_kobo).toBe(1_064_516);
  await second.stop();
});

/** Resolves when the books of deleted accounts are closed. */
const whenClosed = ({ app }: TestApp) =>
  until(
    () => app.store.accountsToClose(10),
    (accounts) => accounts.length === 0,
  );

/** The addresses that the sandbox knows of payments and their cards. */
async function addressesOf({ app }: TestApp, references: readonly string[]) {
  const transactions = await Promise.all(
    references.map((reference) => app.sandboxBooks.findTransaction({ reference })),
  );
  const tokens = transactions.flatMap((transaction) => transaction?.cardToken ?? []);
  const cards = await Promise.all(tokens.map(app.sandboxBooks.findCard));
  return [...transactions, ...cards].map((row) => row?.email);
}

const deletions: readonly [string, (customer: Customer, again: Again) => Promise<TestApp>][] = [
  [
    "deleted without payments",
    async ({ id }, again) => {
      const off = await again({ POSTRIDER_PAYMENTS: "off" });
      expect((await (await customerOf(off, id, goodPassword)).delete("/v1/tenants")).status).toBe(204);
      return off;
    },
  ],
  [
    "deleted before, while charges were paused",
    async ({ id }, again) => {
      const paused = await again({ POSTRIDER_PAUSED: "charges" });
      expect((await (await customerOf(paused, id, goodPassword)).delete("/v1/tenants")).status).toBe(204);
      expect(await paused.app.store.accountsToClose(10)).toHaveLength(1);
      await paused.stop({ keepData: true });
      return again({ POSTRIDER_PAYMENTS: "off" });
    },
  ],
];

test.each(deletions)("without payments an account leaves no card and no address: %s", async (_, remove) => {
  const { clock, first, again } = await start();
  const customer = await subscribe(first, cards.good);
  clock.travel(5 * dayMs);
  await customer.logIn();
  const references = (await customer.charges()).map(({ reference }) => reference);
  const off = await remove(customer, again);
  await whenClosed(off);
  expect(await addressesOf(off, references)).toEqual(["", ""]);
  await off.stop({ keepData: true });
  // Its days are not charged afterwards either, and what it paid is kept.
  const on = await startTestApp({ clock, env: withSandbox, dataDir: first.dataDir });
  clock.travel(dayMs);
  await until(
    () => on.app.store.dueAccounts(clock.now(), 10),
    ({ accounts }) => accounts.length === 0,
  );
  const listed = await on.app.store.latestCharges(10);
  expect(listed).toMatchObject([{ reference: references[0], state: "succeeded", refund: null, tenantId: null }]);
  await on.stop();
});

test("a payment that was not heard of before its account was deleted without payments is given back with them", async () => {
  const { clock, first, again } = await start();
  const { id, paymentUrl } = await signUp(first);
  await payUnheard(first, clock, await pageBehind(first, paymentUrl), cards.good);
  const off = await again({ POSTRIDER_PAYMENTS: "off" });
  expect((await (await customerOf(off, id, goodPassword)).delete("/v1/tenants")).status).toBe(204);
  await whenClosed(off);
  await off.stop({ keepData: true });
  const on = await startTestApp({ clock, env: withSandbox, dataDir: first.dataDir });
  clock.travel(dayMs);
  await until(
    () => on.app.store.latestCharges(10),
    ([charge]) => charge?.refund === "requested",
  );
  await whenClosed(on);
  await on.stop();
});

test("with another processor after a restart, the address leads to a page of the new one", async () => {
  const { first, again } = await start();
  const { paymentUrl } = await signUp(first);
  await pageBehind(first, paymentUrl);
  const paystack = await startPaystackStandIn({ secretKey: "sk_test_example" });
  const second = await again({
    POSTRIDER_PAYMENTS: "paystack",
    POSTRIDER_PAYSTACK_SECRET_KEY: "sk_test_example",
    POSTRIDER_PAYSTACK_URL: paystack.url,
  });
  const page = await visit(second, paymentUrl);
  expect({ status: page.status, isTheirs: page.headers.get("location")?.startsWith(paystack.url) }).toEqual({
    status: 302,
    isTheirs: true,
  });
  await second.stop();
  await paystack.stop();
});
