import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type Hooks, register, startHooks, until } from "../support/api-server.ts";
import { startSmtpServer } from "../support/smtp.ts";
import { startTestApp, type TestApp } from "../support/test-app.ts";
import {
  type Customer,
  cards,
  customerOf,
  goodPassword,
  monthKobo,
  pay,
  startAtMonthEnd,
  subscriptions,
  whenFailed,
  withSandbox,
} from "./customers.ts";
import { provenSections } from "./scenario.ts";

/** Rules, sections 4 and 12: a month's end charge that fails, until it is paid or the account is suspended. */

provenSections.add("rules 4").add("rules 12").add("spec: Errors");

const { any, stringMatching } = expect;

let hooks: Hooks;
beforeAll(async () => {
  hooks = await startHooks();
});
afterAll(() => hooks.stop());

const operator = (server: TestApp, method: string, path: string, body?: unknown) =>
  server.request(method, `/operator/tenants${path}`, {
    token: server.operatorToken,
    ...(body !== undefined && { body }),
  });

/** What puts work into the system. */
const works = (customer: Customer, eventId: string, webhookId: string) => ({
  ingest: () => customer.ingest(),
  "a single replay": () => customer.post("/v1/events/replays/single", { eventId, replayGroupId: "again" }),
  "a bulk replay": () => customer.post("/v1/events/replays/all", { replayGroupId: "again" }),
  "a test": () => customer.post(`/v1/tenants/webhooks/${webhookId}/test`),
  "an upgrade": () => customer.upgrade({ tier: "business" }),
});

describe("a month's end charge that fails", () => {
  test("makes the account past due, which only its owner sees, by mail too; nothing but an upgrade is refused", async () => {
    const smtp = await startSmtpServer();
    await using at = await startAtMonthEnd(cards.emptyTomorrow, {
      POSTRIDER_SMTP_URL: `smtp://127.0.0.1:${smtp.port}`,
      POSTRIDER_MAIL_FROM: "relay@example.com",
    });
    const { customer } = at;
    const [charge] = await whenFailed(customer, 1);
    const mail = await smtp.mail(0);
    expect(mail.to).toEqual([(await customer.me()).email]);
    expect(mail.text).toMatch(/^- NGN 10645\.16 for .*: Declined\. It is tried again on 2031-11-01 11:00 UTC\.\n/);
    await smtp.stop();
    expect(charge).toMatchObject({ amount_kobo: monthKobo, reason: "Declined", completed_at: any(String) });
    expect(await customer.billing()).toMatchObject({
      status: "past_due",
      past_due_since: charge?.completed_at,
      next_attempt_at: stringMatching(/^2031-11-01T11:00:0/),
      payment_url: null,
    });
    expect((await customer.me()).status).toBe("past_due");
    expect(await customer.status()).toBe("active");
    expect((await customer.ingest()).status).toBe(202);
    const upgrade = await customer.upgrade({ tier: "business" });
    expect([upgrade.status, upgrade.body]).toEqual([
      402,
      { message: stringMatching(/POST \/v1\/tenants\/payment-method/), code: "charge_outstanding" },
    ]);
    expect(await customer.charges()).toHaveLength(2);
  });

  test("is tried again on days 1, 3, 5 and 7, each under a reference of its own, then the account is suspended", async () => {
    await using at = await startAtMonthEnd(cards.emptyTomorrow);
    const { customer, go } = at;
    const days = [
      ["2031-11-01", "2031-11-03"],
      ["2031-11-03", "2031-11-05"],
      ["2031-11-05", "2031-11-07"],
    ] as const;
    await whenFailed(customer, 1);
    let failures = 1;
    for (const [day, next] of days) {
      await go(`${day}T10:59:00Z`);
      expect(await whenFailed(customer, failures)).toHaveLength(failures);
      await go(`${day}T11:00:05Z`);
      failures += 1;
      await whenFailed(customer, failures);
      expect(await customer.billing()).toMatchObject({
        status: "past_due",
        past_due_since: stringMatching(/^2031-10-31T11:00:0/),
        next_attempt_at: stringMatching(new RegExp(`^${next}T11:00:0`)),
      });
    }
    await go("2031-11-07T11:00:05Z");
    const charges = await whenFailed(customer, 5);
    expect(new Set(charges.map(({ reference }) => reference)).size).toBe(5);
    expect(new Set(charges.map(({ amount_kobo }) => amount_kobo))).toEqual(new Set([monthKobo]));
    expect(await customer.billing()).toMatchObject({ status: "suspended", next_attempt_at: null });
    expect(await customer.status()).toBe("suspended");
    await go("2031-11-20T11:00:00Z");
    expect(await subscriptions(customer)).toHaveLength(5);
  });

  test("is over when a retry succeeds: here because the card was replaced without waiting", async () => {
    await using at = await startAtMonthEnd(cards.emptyTomorrow);
    const { customer, go } = at;
    await whenFailed(customer, 1);
    await pay(at.server, await customer.paymentMethod(), cards.good);
    await customer.whenBilling(({ status }) => status === "active");
    expect(await subscriptions(customer)).toMatchObject([
      { amount_kobo: monthKobo, state: "succeeded" },
      { amount_kobo: monthKobo, state: "failed" },
    ]);
    expect(await customer.billing()).toMatchObject({ past_due_since: null, next_attempt_at: null });
    expect((await customer.upgrade({ tier: "business" })).status).toBe(200);
    await go("2031-11-02T11:00:00Z");
    expect(await subscriptions(customer)).toHaveLength(2);
  });

  test("stays when the new card declines, too, and the days of the retries stay", async () => {
    await using at = await startAtMonthEnd(cards.emptyTomorrow);
    const { customer } = at;
    await whenFailed(customer, 1);
    await pay(at.server, await customer.paymentMethod(), cards.emptyTomorrow);
    await whenFailed(customer, 2);
    expect(await customer.billing()).toMatchObject({
      status: "past_due",
      next_attempt_at: stringMatching(/^2031-11-01T11:00:0/),
    });
  });

  test("is not made twice by a restart in between", async () => {
    const at = await startAtMonthEnd(cards.emptyTomorrow);
    await whenFailed(at.customer, 1);
    await at.server.stop({ keepData: true });
    at.clock.to("2031-11-04T11:00:00Z");
    const second = await startTestApp({ clock: at.clock, env: withSandbox, dataDir: at.server.dataDir });
    const customer = await customerOf(second, at.customer.id, goodPassword);
    expect(await whenFailed(customer, 2)).toHaveLength(2);
    expect((await customer.billing()).next_attempt_at).toMatch(/^2031-11-05T11:00:0/);
    await second.stop();
  });
});

describe("an account that is suspended for payment", () => {
  async function startSuspended() {
    const at = await startAtMonthEnd(cards.emptyTomorrow);
    const hook = hooks.hook();
    await register(at.customer, hook.url);
    const eventId: string = (await at.customer.ingest({ before: true })).body.eventId;
    await until(
      () => at.customer.get(`/v1/events/${eventId}`),
      ({ body }) => body[0].state === "DELIVERED",
    );
    for (const [failures, day] of [
      [2, 1],
      [3, 3],
      [4, 5],
      [5, 7],
    ] as const) {
      await at.go(`2031-11-0${day}T11:00:05Z`);
      await whenFailed(at.customer, failures);
    }
    const [webhook] = (await at.customer.get("/v1/tenants/webhooks")).body;
    return { ...at, hook, eventId, webhookId: String(webhook.id) };
  }

  test("puts no work in: 402 with what to do; reading works", async () => {
    await using at = await startSuspended();
    const { customer, eventId, webhookId } = at;
    for (const [name, work] of Object.entries(works(customer, eventId, webhookId))) {
      const { status, body } = await work();
      expect([name, status, body]).toEqual([
        name,
        402,
        { message: stringMatching(/POST \/v1\/tenants\/payment-method/), code: "account_suspended" },
      ]);
    }
    const readable = [
      "/v1/events",
      `/v1/events/${eventId}`,
      "/v1/tenants/me",
      "/v1/tenants/billing",
      "/v1/tenants/webhooks",
    ];
    for (const path of readable) expect([path, (await customer.get(path)).status]).toEqual([path, 200]);
    expect(at.hook.received).toHaveLength(1);
  });

  test("a newly verified card charges at once and ends it", async () => {
    await using at = await startSuspended();
    const { customer, eventId, webhookId } = at;
    const url = await customer.paymentMethod();
    await pay(at.server, url, cards.good);
    await customer.whenBilling(({ status }) => status === "active");
    expect((await subscriptions(customer))[0]).toMatchObject({ amount_kobo: monthKobo, state: "succeeded" });
    expect(await customer.status()).toBe("active");
    for (const [name, work] of Object.entries(works(customer, eventId, webhookId))) {
      expect([name, (await work()).status]).toEqual([name, name === "ingest" || name.endsWith("replay") ? 202 : 200]);
    }
    // The days of the suspension cost nothing: seven before it, and from the new card on.
    await at.go("2031-11-10T12:00:00Z");
    expect((await customer.billing()).current_month.lines).toEqual([
      expect.objectContaining({ month: "2031-11", tier: "business", days: 4 }),
    ]);
  });

  test("a card that declines again leaves it as it is", async () => {
    await using at = await startSuspended();
    const { customer } = at;
    await pay(at.server, await customer.paymentMethod(), cards.emptyTomorrow);
    await whenFailed(customer, 6);
    expect(await customer.billing()).toMatchObject({ status: "suspended", next_attempt_at: null });
    expect((await customer.ingest()).status).toBe(402);
  });

  test("the next month's end asks for nothing", async () => {
    await using at = await startSuspended();
    await at.go("2031-12-01T12:00:00Z");
    await at.customer.whenBilling(({ current_month }) => current_month.due_at === "2031-12-31T11:00:00.000Z");
    expect(await subscriptions(at.customer)).toHaveLength(5);
  });

  test("the operator's resume does not end it, and paying does not end the operator's", async () => {
    await using at = await startSuspended();
    const { customer, server } = at;
    const standing = async () => {
      const { body } = await operator(server, "GET", `/${customer.id}`);
      return body.suspended_by;
    };
    expect(await standing()).toEqual(["payment"]);
    await operator(server, "POST", `/${customer.id}/suspend`);
    expect(await standing()).toEqual(["operator", "payment"]);
    expect((await customer.me()).suspended_by).toEqual(["operator", "payment"]);
    expect((await customer.ingest()).status).toBe(403);
    await pay(server, await customer.paymentMethod(), cards.good);
    await until(standing, (causes) => causes.length === 1);
    expect(await standing()).toEqual(["operator"]);
    expect(await customer.billing()).toMatchObject({ status: "suspended", past_due_since: null });
    expect((await customer.ingest()).status).toBe(403);
    await operator(server, "POST", `/${customer.id}/resume`);
    expect(await customer.status()).toBe("active");
    expect((await customer.ingest()).status).toBe(202);
  });

  test.each(["free", "enterprise"])(
    "and that its operator moves to %s pays with a card and stays there",
    async (tier) => {
      await using at = await startSuspended();
      const { customer, server } = at;
      await operator(server, "PUT", `/${customer.id}/tier`, { tier });
      expect((await customer.ingest()).status).toBe(402);
      await pay(server, await customer.paymentMethod(), cards.good);
      expect(await customer.whenBilling(({ status }) => status === "active")).toMatchObject({
        tier,
        past_due_since: null,
      });
      expect((await subscriptions(customer))[0]).toMatchObject({ amount_kobo: monthKobo, state: "succeeded" });
      expect((await customer.ingest()).status).toBe(202);
      expect((await customer.post("/v1/tenants/payment-method")).body.code).toBe("no_paid_plan");
    },
  );

  test("and resuming first leaves the one for payment", async () => {
    await using at = await startSuspended();
    const { customer, server } = at;
    await operator(server, "POST", `/${customer.id}/suspend`);
    await operator(server, "POST", `/${customer.id}/resume`);
    expect((await customer.ingest()).status).toBe(402);
    expect(await customer.status()).toBe("suspended");
  });

  test("can be deleted", async () => {
    await using at = await startSuspended();
    expect((await at.customer.delete("/v1/tenants")).status).toBe(204);
  });
});
