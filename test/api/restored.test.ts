import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { until } from "../support/api-server.ts";
import { paystackCards } from "../support/paystack-answers.ts";
import { refusedEmail } from "../support/paystack-books.ts";
import { copyData } from "../support/server-data.ts";
import { startTestApp, type TestApp } from "../support/test-app.ts";
import {
  cards,
  createClockAt,
  customerOf,
  goodPassword,
  logged,
  signUp,
  subscribe,
  visit,
  withSandbox,
} from "./customers.ts";
import {
  hostedPage,
  known,
  type PaystackWorld,
  startPaystackWorld,
  subscribeAt,
  timesCharged,
} from "./paystack-world.ts";

/** Servers that are put back to a backup, while what they did since then stays done at the processor. */

/** Each starts three servers, and several log in. */
setDefaultTimeout(120_000);

const monthEnd = "2031-10-31T11:00:00Z";
/** Pro from the 10th to the 31st of October. */
const october = 1_064_516;
const dayMs = 24 * 60 * 60 * 1000;

/** A copy of what the server knows at this moment. It is down meanwhile, as the copy of a running one would be half a copy. */
async function backUp(server: TestApp, goOn: (dataDir: string) => Promise<unknown>): Promise<string> {
  await server.stop({ keepData: true });
  const copy = await copyData(server.dataDir);
  await goOn(server.dataDir);
  return copy;
}

const backUpWorld = (world: PaystackWorld) => backUp(world.server, (dataDir) => world.restore(dataDir));

const loggedIn = (server: TestApp, { id }: { id: string }) => customerOf(server, id, goodPassword);

type Kind = Parameters<typeof timesCharged>[1];
const whenCharged = (world: PaystackWorld, kind: Kind) =>
  until(
    () => timesCharged(world, kind),
    (times) => times === 1,
  );

/** Pays on a page that the backup does not know, and restores that after the verification's thirty days. */
async function payAndRestore(world: PaystackWorld, page: string, backup: string, account: { id: string }) {
  await world.paystack.pay(page);
  await until(
    () => logged(world.server, "payment.settled"),
    ({ length }) => length === 1,
  );
  world.clock.travel(2 * dayMs);
  return loggedIn(await world.restore(backup), account);
}

describe("a server that goes on from a backup", () => {
  test("finds the charge of a month's end instead of making it again", async () => {
    await using world = await startPaystackWorld();
    const before = await subscribeAt(world);
    const backup = await backUpWorld(world);
    world.clock.to(monthEnd);
    await whenCharged(world, "subscription");

    world.clock.travel(dayMs);
    const customer = await loggedIn(await world.restore(backup), before);
    const charges = await customer.whenCharge(({ kind, state }) => kind === "subscription" && state === "succeeded");
    expect(charges.find(({ kind }) => kind === "subscription")?.amount_kobo).toBe(october);
    expect(known(world, "subscription")).toMatchObject([{ timesCharged: 1, amountKobo: october }]);
  });

  test.each([
    ["more: nobody owes the rest", "20000", 0],
    ["less: the rest is credited", "10000", october - 709_677],
  ])("lets it pay the month, also when that would now cost %s", async (_, price, creditKobo) => {
    await using world = await startPaystackWorld();
    const before = await subscribeAt(world);
    const backup = await backUpWorld(world);
    world.clock.to(monthEnd);
    await whenCharged(world, "subscription");

    const customer = await loggedIn(await world.restore(backup, { POSTRIDER_PRICE_PRO: price }), before);
    await customer.whenCharge(({ kind, state }) => kind === "subscription" && state === "succeeded");
    expect(await customer.billing()).toMatchObject({ status: "active", current_month: { credit_kobo: creditKobo } });
    expect(timesCharged(world, "subscription")).toBe(1);
  });

  test("tries a declined month's end again under the number after it, and finds the one that was paid", async () => {
    await using world = await startPaystackWorld();
    const before = await subscribeAt(world);
    const backup = await backUpWorld(world);
    world.paystack.faults.savedCard = { kind: "declines", text: "Insufficient Funds" };
    world.clock.to(monthEnd);
    await (await loggedIn(world.server, before)).whenBilling(({ status }) => status === "past_due");
    world.paystack.faults.clear();
    world.clock.travel(dayMs + 60_000);
    await whenCharged(world, "subscription");

    const customer = await loggedIn(await world.restore(backup), before);
    await customer.whenCharge(({ kind, state }) => kind === "subscription" && state === "succeeded");
    expect(await customer.status()).toBe("active");
    expect(known(world, "subscription")).toMatchObject([{ timesCharged: 0 }, { timesCharged: 1 }]);
  });

  test("finds the charge of an upgrade that is asked for again", async () => {
    await using world = await startPaystackWorld();
    const before = await subscribeAt(world);
    const backup = await backUpWorld(world);
    world.clock.travel(5 * dayMs);
    await (await loggedIn(world.server, before)).upgrade({ tier: "business" });
    expect(timesCharged(world, "upgrade")).toBe(1);

    world.clock.travel(dayMs);
    const customer = await loggedIn(await world.restore(backup), before);
    const again = await customer.upgrade({ tier: "business" });
    expect([again.status, again.body.payment_status]).toEqual([200, "paid"]);
    expect(timesCharged(world, "upgrade")).toBe(1);
    expect(known(world, "upgrade")).toHaveLength(1);
  });

  test("takes what an upgrade has paid off the month's end, when nobody asks for it again", async () => {
    await using world = await startPaystackWorld();
    const before = await subscribeAt(world);
    const backup = await backUpWorld(world);
    world.clock.travel(5 * dayMs);
    await (await loggedIn(world.server, before)).upgrade({ tier: "business" });
    const [upgrade] = known(world, "upgrade");

    await world.restore(backup);
    world.clock.to(monthEnd);
    await whenCharged(world, "subscription");
    expect(known(world, "subscription")[0]?.amountKobo).toBe(october - (upgrade?.amountKobo ?? 0));
  });

  test("does not charge the end of an account twice", async () => {
    await using world = await startPaystackWorld();
    const before = await subscribeAt(world);
    const backup = await backUpWorld(world);
    world.clock.travel(2 * dayMs);
    await (await loggedIn(world.server, before)).delete("/v1/tenants");
    await whenCharged(world, "closing");
    await world.paystack.received("deactivate");

    const customer = await loggedIn(await world.restore(backup), before);
    await customer.delete("/v1/tenants");
    await world.paystack.received("deactivate", 2);
    expect(known(world, "closing")).toMatchObject([{ timesCharged: 1 }]);
  });

  test("finds a card that was verified, and takes no second 100 NGN", async () => {
    await using world = await startPaystackWorld();
    const before = await signUp(world.server, { tier: "pro" });
    const backup = await backUpWorld(world);
    await world.paystack.pay(await hostedPage(world, before.paymentUrl), paystackCards.visa);
    await until(
      () => timesCharged(world, "verification"),
      (times) => times === 1,
    );

    const server = await world.restore(backup);
    const page = await visit(server, before.paymentUrl);
    expect([page.status, page.text.includes("The card is verified")]).toEqual([200, true]);
    expect(await (await loggedIn(server, before)).billing()).toMatchObject({
      status: "active",
      card: { last4: "4081" },
    });
    expect(known(world, "verification")).toMatchObject([{ timesCharged: 1 }]);
  });

  test.each([
    ["on the first page", 1],
    ["on the second page", 2],
  ])("finds a card that was verified %s before it gives the verification up, though nobody comes", async (_, pages) => {
    await using world = await startPaystackWorld();
    const before = await signUp(world.server, { tier: "pro" });
    world.clock.travel(29 * dayMs);
    const backup = await backUpWorld(world);
    let page = await hostedPage(world, before.paymentUrl);
    for (let made = 1; made < pages; made += 1) {
      world.clock.travel(dayMs / 12);
      page = await hostedPage(world, before.paymentUrl);
    }
    const customer = await payAndRestore(world, page, backup, before);
    await customer.whenBilling(({ status, card }) => status === "active" && card?.last4 === "4081");
    expect(logged(world.server, "verification.given_up")).toEqual([]);
    expect(known(world, "verification").map(({ timesCharged, status }) => [timesCharged, status])).toEqual([
      ...Array(pages - 1).fill([0, "abandoned"]),
      [1, "success"],
    ]);
  });

  test("finds the payment of an account whose address the processor first refused", async () => {
    await using world = await startPaystackWorld();
    const before = await signUp(world.server, { tier: "pro", email: refusedEmail });
    world.clock.travel(29 * dayMs);
    const backup = await backUpWorld(world);
    expect((await visit(world.server, before.paymentUrl)).status).toBe(409);
    const corrected = await loggedIn(world.server, before);
    await corrected.post("/v1/tenants/payment-method", { email: "corrected@example.com" });
    world.clock.travel(dayMs / 12);
    const page = await hostedPage(world, before.paymentUrl);
    const customer = await payAndRestore(world, page, backup, before);
    await customer.whenBilling(({ status }) => status === "active");
    expect(logged(world.server, "verification.given_up")).toEqual([]);
  });

  test("leaves pages behind that were made since and not paid", async () => {
    await using world = await startPaystackWorld();
    const before = await signUp(world.server, { tier: "pro" });
    const backup = await backUpWorld(world);
    await hostedPage(world, before.paymentUrl);

    await world.restore(backup);
    await world.paystack.pay(await hostedPage(world, before.paymentUrl), paystackCards.visa);
    await (await loggedIn(world.server, before)).whenBilling(({ status }) => status === "active");
    expect(known(world, "verification")).toMatchObject([{ timesCharged: 0 }, { timesCharged: 1 }]);
  });
});

test("also of the built-in processor, the same charge has the same reference", async () => {
  const clock = createClockAt("2031-10-10T09:00:00Z");
  const start = (dataDir?: string) => startTestApp({ clock, env: withSandbox, ...(dataDir && { dataDir }) });
  let server = await start();
  const before = await subscribe(server, cards.good);
  const backup = await backUp(server, async (dataDir) => {
    server = await start(dataDir);
  });
  clock.to(monthEnd);
  const references: (string | undefined)[] = [];
  for (const dataDir of [null, backup]) {
    if (dataDir !== null) {
      await server.stop();
      server = await start(dataDir);
    }
    const customer = await loggedIn(server, before);
    const charges = await customer.whenCharge(({ kind, state }) => kind === "subscription" && state === "succeeded");
    references.push(charges.find(({ kind }) => kind === "subscription")?.reference);
  }
  await server.stop();
  expect(references[0]).toBe(references[1] ?? "");
});
