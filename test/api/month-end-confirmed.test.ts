import { expect, test } from "bun:test";
import { until } from "../support/api-server.ts";
import {
  answerBank,
  cards,
  monthKobo,
  pageBehind,
  pay,
  post,
  startAtMonthEnd,
  subscriptions,
  visit,
  whenFailed,
} from "./customers.ts";
import { provenSections } from "./scenario.ts";

/** Rules, section 12: a bank that wants its customer to confirm what a month's end charges. */

provenSections.add("rules 12");

test("gives the account a payment_url, and the charge is made once it is confirmed there", async () => {
  await using at = await startAtMonthEnd(cards.careful);
  const { customer, server } = at;
  const { payment_url } = await customer.whenBilling(({ payment_url }) => payment_url !== null);
  expect(await subscriptions(customer)).toMatchObject([{ amount_kobo: monthKobo, state: "confirmation_required" }]);
  await answerBank(server, payment_url ?? "", "yes");
  await customer.whenCharge(({ kind, state }) => kind === "subscription" && state === "succeeded");
  expect(await customer.billing()).toMatchObject({ status: "active", payment_url: null });
});

test("asked for at night, it can be given in the afternoon: the address leads to the bank's page for a day", async () => {
  await using at = await startAtMonthEnd(cards.careful);
  const { customer, server, go } = at;
  const { payment_url } = await customer.whenBilling(({ payment_url }) => payment_url !== null);
  const bank = await pageBehind(server, payment_url ?? "");
  for (const time of ["2031-10-31T12:05:00Z", "2031-10-31T23:00:00Z", "2031-11-01T10:50:00Z"]) {
    await go(time);
    expect(await pageBehind(server, payment_url ?? "")).toBe(bank);
  }
  await post(server, bank, { confirm: "yes" });
  await customer.whenCharge(({ kind, state }) => kind === "subscription" && state === "succeeded");
  expect(await customer.billing()).toMatchObject({ status: "active", payment_url: null });
  expect((await customer.charges()).map(({ kind }) => kind)).toEqual(["subscription", "verification"]);
});

test("refused, the account is past due, and another card on the same address pays", async () => {
  await using at = await startAtMonthEnd(cards.careful);
  const { customer, server } = at;
  const { payment_url } = await customer.whenBilling(({ payment_url }) => payment_url !== null);
  const refused = await answerBank(server, payment_url ?? "", "no");
  await visit(server, refused.headers.get("location") ?? "");
  await customer.whenBilling(({ status }) => status === "past_due");
  expect((await customer.billing()).payment_url).toBe(payment_url);
  await pay(server, payment_url ?? "", cards.good);
  await customer.whenBilling(({ status, card }) => status === "active" && card?.last4 === "4081");
  expect((await subscriptions(customer)).map(({ state }) => state)).toEqual(["succeeded", "failed"]);
});

test("another card instead: the new one is charged, and a late confirmation is paid back", async () => {
  await using at = await startAtMonthEnd(cards.careful);
  const { customer, server } = at;
  const { payment_url } = await customer.whenBilling(({ payment_url }) => payment_url !== null);
  const bank = (await visit(server, payment_url ?? "")).headers.get("location") ?? "";
  const url = await customer.paymentMethod();
  expect(url).toBe(payment_url ?? "");
  await pay(server, url, cards.good);
  await until(
    () => subscriptions(customer),
    (charges) => charges.some(({ state }) => state === "succeeded"),
  );
  await post(server, new URL(bank).pathname, { confirm: "yes" });
  const charges = await customer.whenCharge(({ kind, state }) => kind === "subscription" && state === "refunding");
  expect(charges.filter(({ kind, state }) => kind === "subscription" && state === "succeeded")).toHaveLength(1);
});

test("unanswered for a day it counts as failed; each retry asks again, and in the end the account is suspended", async () => {
  await using at = await startAtMonthEnd(cards.careful);
  const { customer, go } = at;
  const { payment_url } = await customer.whenBilling(({ payment_url }) => payment_url !== null);
  await go("2031-11-01T10:59:00Z");
  expect(await customer.billing()).toMatchObject({ status: "active", payment_url });
  for (const [failures, failedAt, triedAt] of [
    [1, "2031-11-01T12:00:00Z", "2031-11-02T13:00:00Z"],
    [2, "2031-11-03T14:00:00Z", "2031-11-04T13:00:00Z"],
    [3, "2031-11-05T14:00:00Z", "2031-11-06T13:00:00Z"],
    [4, "2031-11-07T14:00:00Z", "2031-11-08T13:00:00Z"],
  ] as const) {
    await go(failedAt);
    const failed = (await whenFailed(customer, failures)).find(({ state }) => state === "failed");
    expect(failed?.reason).toMatch(/confirmation/);
    expect(await customer.billing()).toMatchObject({ status: "past_due", payment_url });
    await go(triedAt);
    await customer.whenCharge(({ kind, state }) => kind === "subscription" && state === "confirmation_required");
  }
  await go("2031-11-09T14:00:00Z");
  await whenFailed(customer, 5);
  expect(await customer.status()).toBe("suspended");
  await pay(at.server, payment_url ?? "", cards.good);
  await customer.whenBilling(({ status }) => status === "active");
  expect((await subscriptions(customer)).filter(({ state }) => state === "succeeded")).toHaveLength(1);
  expect(at.server.log.filter((line) => line.includes('"level":"error"'))).toEqual([]);
});

test("confirmed after it counted as failed, it pays all the same", async () => {
  await using at = await startAtMonthEnd(cards.careful);
  const { customer, go, server } = at;
  const { payment_url } = await customer.whenBilling(({ payment_url }) => payment_url !== null);
  const bank = (await visit(server, payment_url ?? "")).headers.get("location") ?? "";
  await go("2031-11-01T11:00:30Z");
  await customer.whenBilling(({ status }) => status === "past_due");
  await post(server, new URL(bank).pathname, { confirm: "yes" });
  await customer.whenBilling(({ status }) => status === "active");
  expect(await subscriptions(customer)).toMatchObject([{ state: "succeeded", amount_kobo: monthKobo }]);
  await go("2031-11-10T11:00:00Z");
  expect(await subscriptions(customer)).toHaveLength(1);
});

test("two confirmations at once are asked for one after the other, on one address", async () => {
  await using at = await startAtMonthEnd(cards.careful);
  const { customer, server } = at;
  const { payment_url } = await customer.whenBilling(({ payment_url }) => payment_url !== null);
  const url = payment_url ?? "";
  const upgrade = await customer.upgrade({ tier: "business" });
  expect([upgrade.status, upgrade.body.payment_url]).toEqual([202, url]);
  await answerBank(server, url, "yes");
  await customer.whenCharge(({ kind, state }) => kind === "subscription" && state === "succeeded");
  expect(await customer.billing()).toMatchObject({ status: "pending_verification", payment_url: url });
  await answerBank(server, url, "yes");
  await customer.whenBilling(({ status }) => status === "active");
  expect(await customer.me()).toMatchObject({ tier: "business", enforced_events_per_month: 25_000_000 });
  expect((await customer.charges()).map(({ kind, state }) => `${kind} ${state}`)).toEqual([
    "upgrade succeeded",
    "subscription succeeded",
    "verification succeeded",
  ]);
  expect((await customer.billing()).payment_url).toBeNull();
});
