import { describe, expect, test } from "bun:test";
import { storageDamaged } from "../../src/store/unless-damaged.ts";
import { until } from "../support/api-server.ts";
import { startTestApp, type TestApp } from "../support/test-app.ts";
import {
  businessKobo,
  type Customer,
  cards,
  createClockAt,
  customerOf,
  goodPassword,
  proKobo,
  signUpFree,
  subscribe,
  withSandbox,
} from "./customers.ts";
import { provenSections } from "./scenario.ts";

/** Rules, section 12: the subscription, charged on the last day of the month at 12:00 in Lagos (11:00 UTC). */

provenSections.add("rules 1").add("rules 4").add("rules 12");

const october31 = "2031-10-31T11:00:00.000Z";
const november30 = "2031-11-30T11:00:00.000Z";

/** A server of its own, which begins at an instant. */
async function startAt(iso: string, env: Record<string, string> = {}, dataDir?: string) {
  const clock = createClockAt(iso);
  const server = await startTestApp({
    clock,
    env: { ...withSandbox, ...env },
    ...(dataDir !== undefined && { dataDir }),
  });
  return { clock, server, [Symbol.asyncDispose]: () => server.stop() };
}

const subscriptions = async (customer: Customer) =>
  (await customer.charges()).filter(({ kind }) => kind === "subscription");

/** The charges of months' ends, once there are `n` that are paid. */
const whenPaid = (customer: Customer, n: number) =>
  until(
    () => subscriptions(customer),
    (charges) => charges.filter(({ state }) => state === "succeeded").length === n,
  );

const operator = (server: TestApp, method: string, path: string, body?: unknown) =>
  server.request(method, `/operator/tenants${path}`, {
    token: server.operatorToken,
    ...(body !== undefined && { body }),
  });

test("accounts whose books cannot be read hold nobody else up, however many they are", async () => {
  const clock = createClockAt("2031-10-10T09:00:00Z");
  const damaged = new Set<number>();
  const server = await startTestApp({
    clock,
    env: withSandbox,
    wrapStore: (store) => ({
      ...store,
      async books(key) {
        if (damaged.has(key)) throw storageDamaged();
        return store.books(key);
      },
    }),
  });
  const { store } = server.app;
  const customers = await Promise.all(Array.from({ length: 6 }, () => subscribe(server, cards.good)));
  const last = customers.pop() as Customer;
  for (const { id } of customers) {
    const tenant = await store.findTenant(id);
    damaged.add((await store.billingAccountOf(tenant?.key ?? 0)) ?? 0);
  }
  clock.to(october31);
  await last.logIn();
  await whenPaid(last, 1);
  damaged.clear();
  clock.travel(60_000);
  for (const customer of customers) await customer.logIn();
  for (const customer of customers) await whenPaid(customer, 1);
  await server.stop();
});

describe("the days used are charged at the end of the month", () => {
  test("on the last day at 12:00, not earlier; floor(price × days / days in the month) in kobo", async () => {
    await using at = await startAt("2031-10-10T09:00:00Z");
    const customer = await subscribe(at.server, cards.good);
    expect((await customer.billing()).current_month).toEqual({
      amount_kobo: Math.floor(proKobo / 31),
      credit_kobo: 0,
      due_at: october31,
      lines: [{ month: "2031-10", tier: "pro", days: 1, days_in_month: 31, amount_kobo: 48_387 }],
    });
    at.clock.to("2031-10-31T10:59:58Z");
    await customer.logIn();
    expect((await customer.billing()).current_month).toMatchObject({ amount_kobo: 1_064_516, lines: [{ days: 22 }] });
    expect(await subscriptions(customer)).toEqual([]);
    at.clock.to("2031-10-31T11:00:00Z");
    const [charge] = await whenPaid(customer, 1);
    expect(charge).toMatchObject({ amount_kobo: 1_064_516, state: "succeeded", reason: null });
    expect(charge?.created_at).toMatch(/^2031-10-31T11:00:0/);
    expect(await customer.billing()).toMatchObject({
      status: "active",
      current_month: { amount_kobo: 0, due_at: november30, lines: [] },
      past_due_since: null,
      next_attempt_at: null,
    });
    expect(charge?.reference).not.toContain(customer.id);
  });

  test("a whole month costs the price of the month", async () => {
    await using at = await startAt("2031-10-31T12:00:00Z");
    const customer = await subscribe(at.server, cards.good, { tier: "business" });
    at.clock.to(november30);
    await customer.logIn();
    // The 31st of October came after that month's end, so it is charged with November.
    const [charge] = await whenPaid(customer, 1);
    expect(charge?.amount_kobo).toBe(Math.floor(businessKobo / 31) + businessKobo);
    at.clock.to("2031-12-31T11:00:00Z");
    await customer.logIn();
    expect((await whenPaid(customer, 2))[0]?.amount_kobo).toBe(businessKobo);
  });

  test("a day is a calendar day in Lagos", async () => {
    await using at = await startAt("2031-10-14T22:59:00Z");
    const evening = await subscribe(at.server, cards.good);
    at.clock.to("2031-10-14T23:00:01Z");
    const afterMidnight = await subscribe(at.server, cards.good);
    at.clock.to(october31);
    for (const [customer, days] of [
      [evening, 18],
      [afterMidnight, 17],
    ] as const) {
      await customer.logIn();
      expect((await whenPaid(customer, 1))[0]?.amount_kobo).toBe(Math.floor((proKobo * days) / 31));
    }
  });

  test("POSTRIDER_BILLING_TZ and the prices can be set", async () => {
    await using at = await startAt("2031-10-10T09:00:00Z", {
      POSTRIDER_BILLING_TZ: "America/New_York",
      POSTRIDER_PRICE_PRO: "310.50",
    });
    const customer = await subscribe(at.server, cards.good);
    expect(await customer.billing()).toMatchObject({
      price_kobo: 31_050,
      current_month: { due_at: "2031-10-31T16:00:00.000Z", amount_kobo: 1_001 },
    });
  });

  test.each([
    {
      ...{ from: "America/Los_Angeles", to: "Asia/Kolkata", due: "2031-11-30T20:00:00Z", kobo: proKobo },
      next: { due: "2031-12-31T06:30:00.000Z", kobo: proKobo },
    },
    {
      // Noon of the 30th in Kolkata is the evening of the 29th in Los Angeles: the 30th is charged with December.
      ...{ from: "Asia/Kolkata", to: "America/Los_Angeles", due: "2031-11-30T06:30:00Z" },
      ...{ kobo: Math.floor((proKobo * 29) / 30) },
      next: { due: "2031-12-31T20:00:00.000Z", kobo: Math.floor(proKobo / 30) + proKobo },
    },
  ])(
    "each day once, and none in advance, when the zone changes from $from to $to",
    async ({ from, to, due, kobo, next }) => {
      const before = await startAt("2031-11-01T14:00:00Z", { POSTRIDER_BILLING_TZ: from });
      const { id } = await subscribe(before.server, cards.good);
      await before.server.stop({ keepData: true });
      await using after = await startAt(due, { POSTRIDER_BILLING_TZ: to }, before.server.dataDir);
      const customer = await customerOf(after.server, id, goodPassword);
      expect((await whenPaid(customer, 1))[0]?.amount_kobo).toBe(kobo);
      expect((await customer.billing()).current_month.due_at).toBe(next.due);
      after.clock.to(next.due);
      await customer.logIn();
      expect((await whenPaid(customer, 2))[0]?.amount_kobo).toBe(next.kobo);
    },
  );

  test("a day belongs to the highest plan held on it, and the credit of an upgrade is taken off", async () => {
    await using at = await startAt("2031-10-10T09:00:00Z");
    const customer = await subscribe(at.server, cards.good);
    await customer.upgrade({ tier: "business" });
    at.clock.to(october31);
    await customer.logIn();
    const [charge] = await whenPaid(customer, 1);
    expect(charge?.amount_kobo).toBe(Math.floor((businessKobo * 22) / 31) - 10_000);
    expect((await customer.billing()).current_month.credit_kobo).toBe(0);
  });

  test("less than the processor takes waits for the next month's end", async () => {
    await using at = await startAt("2031-10-31T09:00:00Z", { POSTRIDER_PRICE_PRO: "310" });
    const customer = await subscribe(at.server, cards.good);
    at.clock.to("2031-11-30T10:59:00Z");
    await customer.logIn();
    expect(await subscriptions(customer)).toEqual([]);
    at.clock.to(november30);
    expect((await whenPaid(customer, 1))[0]?.amount_kobo).toBe(1_000 + 31_000);
  });

  test("free and enterprise accounts, and those that never verified a card, are charged nothing", async () => {
    await using at = await startAt("2031-10-29T09:00:00Z");
    const free = await signUpFree(at.server);
    const invoiced = await signUpFree(at.server);
    await operator(at.server, "PUT", `/${invoiced.id}/tier`, { tier: "enterprise" });
    const upgrading = await signUpFree(at.server);
    await upgrading.upgrade({ tier: "pro", email: "waits@example.com", password: goodPassword });
    const paying = await subscribe(at.server, cards.good);
    at.clock.to(october31);
    await paying.logIn();
    await whenPaid(paying, 1);
    for (const [id, password] of [
      [free.id, null],
      [invoiced.id, null],
      [upgrading.id, goodPassword],
    ] as const) {
      const customer = await customerOf(at.server, id, password ?? (await reset(at.server, id)));
      expect(await customer.billing()).toMatchObject({ charges: [], current_month: { amount_kobo: 0, due_at: null } });
    }
  });

  const reset = async (server: TestApp, id: string): Promise<string> =>
    (await operator(server, "POST", `/${id}/reset-password`)).body.password;

  test("the days of an operator's suspension are not charged", async () => {
    await using at = await startAt("2031-10-10T09:00:00Z");
    const customer = await subscribe(at.server, cards.good);
    at.clock.to("2031-10-12T09:00:00Z");
    await operator(at.server, "POST", `/${customer.id}/suspend`);
    at.clock.to("2031-10-20T09:00:00Z");
    await operator(at.server, "POST", `/${customer.id}/resume`);
    at.clock.to(october31);
    await customer.logIn();
    // 10th to 12th, and 20th to 31st.
    expect((await whenPaid(customer, 1))[0]?.amount_kobo).toBe(Math.floor((proKobo * 15) / 31));
  });

  test("a plan that the operator changes to enterprise is charged up to the day before, which was the last on it alone", async () => {
    await using at = await startAt("2031-10-10T09:00:00Z");
    const customer = await subscribe(at.server, cards.good);
    at.clock.to("2031-10-14T09:00:00Z");
    await operator(at.server, "PUT", `/${customer.id}/tier`, { tier: "enterprise" });
    at.clock.to(october31);
    await customer.logIn();
    expect((await whenPaid(customer, 1))[0]?.amount_kobo).toBe(Math.floor((proKobo * 4) / 31));
  });
});

describe("a server that does not run at the month's end", () => {
  test("catches up at its next start, with the days of that month only, and once", async () => {
    const clock = createClockAt("2031-10-10T09:00:00Z");
    const first = await startTestApp({ clock, env: withSandbox });
    const { id } = await subscribe(first, cards.good);
    await first.stop({ keepData: true });
    clock.to("2031-11-03T09:00:00Z");
    const second = await startTestApp({ clock, env: withSandbox, dataDir: first.dataDir });
    const customer = await customerOf(second, id, goodPassword);
    expect((await whenPaid(customer, 1))[0]?.amount_kobo).toBe(1_064_516);
    expect((await customer.billing()).current_month).toMatchObject({
      due_at: november30,
      lines: [{ month: "2031-11", days: 3 }],
    });
    await second.stop({ keepData: true });
    const third = await startTestApp({ clock, env: withSandbox, dataDir: first.dataDir });
    expect(await subscriptions(await customerOf(third, id, goodPassword))).toHaveLength(1);
    await third.stop();
  });

  test("catches up several months, each by itself", async () => {
    const clock = createClockAt("2031-10-10T09:00:00Z");
    const first = await startTestApp({ clock, env: withSandbox });
    const { id } = await subscribe(first, cards.good);
    await first.stop({ keepData: true });
    clock.to("2032-01-05T09:00:00Z");
    const second = await startTestApp({ clock, env: withSandbox, dataDir: first.dataDir });
    const customer = await customerOf(second, id, goodPassword);
    const charges = await whenPaid(customer, 3);
    expect(charges.map(({ amount_kobo }) => amount_kobo)).toEqual([proKobo, proKobo, 1_064_516]);
    await second.stop();
  });
});
