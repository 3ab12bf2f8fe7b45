import { describe, expect, test } from "bun:test";
import { until } from "../support/api-server.ts";
import { keptTexts, look } from "../support/server-data.ts";
import { startTestApp, type TestApp } from "../support/test-app.ts";
import {
  cards,
  createClockAt,
  logged,
  pageBehind,
  post,
  proKobo,
  signUp,
  subscribe,
  withSandbox,
} from "./customers.ts";
import { provenSections } from "./scenario.ts";

/** Rules, sections 4 and 12: what becomes of the payments of an account that is deleted. */

provenSections.add("rules 4").add("rules 12").add("spec: Accounts");

const dayMs = 24 * 60 * 60 * 1000;

async function start() {
  const clock = createClockAt("2031-10-10T09:00:00Z");
  const server = await startTestApp({ clock, env: withSandbox });
  return { clock, server, [Symbol.asyncDispose]: () => server.stop() };
}

interface Kept {
  kind: string;
  state: string;
  amount: number;
}
/** Looked up where they are kept: of a deleted account the interface shows nothing. */
const charges = (server: TestApp) =>
  look<Kept>(server, "select kind, state, cast(amount_kobo as int) as amount from charge order by key");

const closed = (server: TestApp) =>
  until(
    () => look<{ state: string }>(server, "select state from billing_account"),
    (accounts) => accounts.every(({ state }) => state === "closed"),
  );

describe("the deletion of an account that pays", () => {
  test("makes one charge for the days used, and forgets the card", async () => {
    await using at = await start();
    const customer = await subscribe(at.server, cards.good);
    at.clock.travel(4 * dayMs);
    await customer.logIn();
    expect((await customer.delete("/v1/tenants")).status).toBe(204);
    await closed(at.server);
    expect(await charges(at.server)).toEqual([
      { kind: "verification", state: "succeeded", amount: 10_000 },
      { kind: "closing", state: "succeeded", amount: Math.floor((proKobo * 5) / 31) },
    ]);
    expect(await look(at.server, "select * from saved_card")).toEqual([]);
    expect(await look(at.server, "select cast(forgotten as int) as forgotten from sandbox_card")).toEqual([
      { forgotten: 1 },
    ]);
    at.clock.travel(60 * dayMs);
    await subscribe(at.server, cards.good);
    expect((await charges(at.server)).filter(({ kind }) => kind === "closing")).toHaveLength(1);
  });

  test("is not tried again when it is declined", async () => {
    await using at = await start();
    const customer = await subscribe(at.server, cards.emptyTomorrow);
    at.clock.travel(4 * dayMs);
    await customer.logIn();
    await customer.delete("/v1/tenants");
    await closed(at.server);
    at.clock.travel(60 * dayMs);
    await subscribe(at.server, cards.good);
    const closing = (await charges(at.server)).filter(({ kind }) => kind === "closing");
    expect(closing).toMatchObject([{ state: "failed" }]);
    expect(
      await look(at.server, "select cast(forgotten as int) as forgotten from sandbox_card where later = 'declines'"),
    ).toEqual([{ forgotten: 1 }]);
  });

  test("does not wait for a bank that wants a confirmation: there is nobody left to give it", async () => {
    await using at = await start();
    const customer = await subscribe(at.server, cards.careful);
    at.clock.travel(4 * dayMs);
    await customer.logIn();
    await customer.delete("/v1/tenants");
    await closed(at.server);
    expect((await charges(at.server)).at(-1)).toMatchObject({ kind: "closing", state: "failed" });
  });

  test("also charges what is past due, in the one charge", async () => {
    await using at = await start();
    const customer = await subscribe(at.server, cards.emptyTomorrow);
    at.clock.to("2031-10-31T11:00:00Z");
    await customer.logIn();
    await customer.whenBilling(({ status }) => status === "past_due");
    at.clock.to("2031-11-01T09:00:00Z");
    await customer.logIn();
    await customer.delete("/v1/tenants");
    await closed(at.server);
    expect((await charges(at.server)).at(-1)).toMatchObject({
      kind: "closing",
      amount: 1_064_516 + Math.floor(proKobo / 30),
      state: "failed",
    });
  });

  test("takes off what an upgrade has paid in advance", async () => {
    await using at = await start();
    const customer = await subscribe(at.server, cards.good);
    await customer.upgrade({ tier: "business" });
    await customer.delete("/v1/tenants");
    await closed(at.server);
    expect((await charges(at.server)).at(-1)?.amount).toBe(Math.floor(6_000_000 / 31) - 10_000);
  });

  test("goes on after a restart", async () => {
    const at = await start();
    const customer = await subscribe(at.server, cards.good);
    at.clock.travel(4 * dayMs);
    await customer.logIn();
    await Promise.all([customer.delete("/v1/tenants")]);
    await at.server.stop({ keepData: true });
    const second = await startTestApp({ clock: at.clock, env: withSandbox, dataDir: at.server.dataDir });
    await closed(second);
    expect((await charges(second)).filter(({ kind }) => kind === "closing")).toMatchObject([{ state: "succeeded" }]);
    await second.stop();
  });

  test("keeps amount, date and the processor's reference only", async () => {
    const at = await start();
    const { server, clock } = at;
    const customer = await subscribe(server, cards.good);
    await customer.upgrade({ tier: "business" });
    const [reference] = (await customer.charges()).map(({ reference }) => reference);
    clock.travel(2 * dayMs);
    await customer.logIn();
    await customer.delete("/v1/tenants");
    await closed(server);
    await until(
      () => look<{ n: number }>(server, "select cast(count(*) as int) as n from tenant"),
      ([row]) => row?.n === 0,
    );
    for (const table of ["card_verification", "plan_period", "invoice", "invoice_day", "saved_card"]) {
      expect([table, await look(server, `select * from ${table}`)]).toEqual([table, []]);
    }
    const rows = await look<Record<string, unknown>>(server, "select * from charge order by key");
    expect(rows.map(({ amount_kobo }) => amount_kobo)).toHaveLength(3);
    for (const row of rows) {
      const empty = { invoice_key: null, card_key: null, reason: null, page_url: null };
      expect(row).toMatchObject(empty);
    }
    expect(rows[1]?.reference).toBe(reference ?? "");
    // That it was deleted is in the operator's audit for a year, by its id alone.
    const kept = await look(server, "select tenant_id, action, address, via, detail from audit");
    const deleted = { tenant_id: customer.id, action: "account.deleted" };
    expect(kept).toEqual([{ ...deleted, address: null, via: null, detail: null }]);
    await server.stop({ keepData: true });
    // A file holds no copy of what was in it, either.
    for (const { name, text } of await keptTexts(server)) {
      for (const secret of [customer.email, "Customer ", customer.paymentUrl.split("/").at(-1) ?? ""]) {
        expect([name, secret, text.includes(secret)]).toEqual([name, secret, false]);
      }
    }
    const again = await startTestApp({ clock, env: withSandbox, dataDir: server.dataDir });
    await again.stop();
  });
});

describe("the deletion of an account that never verified a card", () => {
  test("charges nothing", async () => {
    await using at = await start();
    const customer = await signUp(at.server);
    await pageBehind(at.server, customer.paymentUrl);
    await customer.delete("/v1/tenants");
    await closed(at.server);
    expect(await charges(at.server)).toMatchObject([{ kind: "verification", state: "superseded" }]);
    const again = await signUp(at.server, { email: customer.email });
    expect(again.created.status).toBe(201);
  });

  test("a card that is given afterwards is paid back and forgotten", async () => {
    await using at = await start();
    const customer = await signUp(at.server);
    const page = await pageBehind(at.server, customer.paymentUrl);
    await customer.delete("/v1/tenants");
    await closed(at.server);
    await post(at.server, page, { card: cards.good });
    await until(
      () => logged(at.server, "payment.refunded"),
      (refunds) => refunds.length === 1,
    );
    await until(
      () => look(at.server, "select * from saved_card"),
      (cards) => cards.length === 0,
    );
    expect(await look(at.server, "select cast(forgotten as int) as forgotten from sandbox_card")).toEqual([
      { forgotten: 1 },
    ]);
  });
});
