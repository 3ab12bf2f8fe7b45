import { afterEach, beforeEach, expect, test } from "bun:test";
import { createCardVault } from "../../src/billing/card-vault.ts";
import { createCharging } from "../../src/billing/charging.ts";
import type { ChargeState, PaymentProcessor } from "../../src/billing/processor.ts";
import { createLog } from "../../src/lib/log.ts";
import { createVault } from "../../src/lib/vault.ts";
import { monthEnd, newCard, newCharge, newInvoice, payingIn } from "../contract/billing/paying.ts";
import { sqliteBackend } from "../support/sqlite-backend.ts";
import { createWorld, type World } from "../support/store-factory.ts";

const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;

let world: World;
beforeEach(async () => {
  world = await createWorld(sqliteBackend);
});
afterEach(() => world.end());

/** A server that asks a processor which answers look-ups with `state`, and must not be asked for money. */
function serverThatHears(state: () => ChargeState | Promise<ChargeState>) {
  const processor: Pick<PaymentProcessor, "name" | "mode" | "lookUp" | "chargeSavedCard"> = {
    name: "sandbox",
    mode: "test",
    lookUp: async () => state(),
    chargeSavedCard: () => Promise.reject(new Error("It was asked for money a second time")),
  };
  return createCharging({
    store: world.store,
    clock: world.clock,
    log: createLog({ level: "error", format: "json", now: world.clock.now, out() {} }),
    processor: processor as PaymentProcessor,
    cards: createCardVault(createVault(new Uint8Array(32))),
    calendar: { nextMonthEnd: () => monthEnd } as never,
    returnUrl: () => "",
    announce() {},
  });
}

test("a callback that another server is given while this one asks is not postponed by the earlier answer", async () => {
  const { now, books, verified, charged } = payingIn(() => world);
  const { accountKey } = await verified();
  const { charge } = await charged(accountKey);
  const newsAt = now() + 1;
  const charging = serverThatHears(async () => {
    await world.store.lookUpSoon(charge.reference, newsAt);
    return { kind: "pending", word: "ongoing" };
  });
  await charging.settle(await books(accountKey), charge);
  expect(await world.store.findCharge(charge.reference)).toMatchObject({ lookUpAt: newsAt, lookUps: 1 });
});

test("a charge that another server is sending is not failed, whatever card it was for: it may be paid", async () => {
  const { now, books, verified, charged, openPage, pay } = payingIn(() => world);
  const { tenant, accountKey } = await verified();
  const { charge } = await charged(accountKey);
  // The other server's request is on its way, and meanwhile the customer has verified another card.
  await world.store.markSent(charge.reference, { lookUpAt: now() + minuteMs, resendAt: now() + 30 * minuteMs }, now());
  await world.store.openVerification(tenant.key, { accountId: "", token: "another" }, null, now());
  await pay(await openPage(accountKey), newCard("OTHER"));

  let state: ChargeState = { kind: "not_found" };
  const charging = serverThatHears(() => state);
  await charging.send(await books(accountKey), charge);
  expect(await world.store.findCharge(charge.reference)).toMatchObject({ state: "open", lookUpAt: expect.any(Number) });

  state = {
    ...{ kind: "succeeded", reference: charge.reference, amountKobo: charge.amountKobo, requestedKobo: null },
    ...{ currency: "NGN", mode: "test", transactionId: "7", card: null },
  };
  const [open] = (await books(accountKey)).charges.filter(({ reference }) => reference === charge.reference);
  await charging.settle(await books(accountKey), open ?? charge);
  expect(await world.store.findCharge(charge.reference)).toMatchObject({ state: "succeeded", refund: null });
});

const declined = (retry: "later" | "new_card"): ChargeState => ({ kind: "failed", reason: "Declined", retry });

/** By how many minutes the clock is ahead when the card is verified, and behind where it was set back. */
test.each<[string, string, ChargeState, number]>([
  ["another card", "OTHER", { kind: "not_found" }, 1],
  ["another card", "OTHER", declined("later"), 1],
  ["the same card", "SIG", declined("later"), 1],
  ["the same card", "SIG", declined("new_card"), 1],
  ["the same card", "SIG", declined("new_card"), -1],
])(
  "the last retry, once %s (%s) was verified meanwhile, gives way to that one, after %j (%i min later)",
  async (_, signature, state, later) => {
    const { now, books, verified, charged, openPage, pay, fail, tenantNow } = payingIn(() => world);
    const { tenant, accountKey } = await verified();
    const { charge, invoice } = await charged(accountKey);
    await fail(charge, { kind: "retry", at: now() + dayMs });
    world.clock.advance(7 * dayMs);
    const ofCard = newCharge({ cardKey: charge.cardKey, amountKobo: charge.amountKobo });
    const last = await world.store.prepareAttempt(invoice.key, ofCard, now());
    world.clock.advance(later * minuteMs);
    await world.store.openVerification(tenant.key, { accountId: "", token: "another" }, null, now());
    await pay(await openPage(accountKey), newCard(signature));

    await serverThatHears(() => state).send(await books(accountKey), last ?? charge);
    expect(await world.store.findCharge(ofCard.reference)).toMatchObject({ state: "failed" });
    expect(await books(accountKey)).toMatchObject({
      card: { signature, refused: false },
      invoices: [{ key: invoice.key, nextAttemptAt: now() }],
    });
    expect(await tenantNow(tenant)).toMatchObject({ paymentSuspendedAt: null });
  },
);

/** Minutes after the upgrade was prepared. */
test.each<[string, { verifiedAt: number | null; sentAt: number; refused: boolean }]>([
  ["refuses the card", { verifiedAt: null, sentAt: 0, refused: true }],
  ["does not refuse a card that was verified again since it was sent", { verifiedAt: 2, sentAt: 1, refused: false }],
  ["refuses a card that was verified again before it was sent", { verifiedAt: 1, sentAt: 2, refused: true }],
])("an upgrade that turns out to be declined for good %s", async (_, { verifiedAt, sentAt, refused }) => {
  const { now, books, verified, openPage, pay } = payingIn(() => world);
  const { tenant, accountKey } = await verified();
  const ofCard = newCharge({ cardKey: (await books(accountKey)).card?.key ?? null });
  const order = { invoice: newInvoice("upgrade", []), charge: ofCard, tier: "business", login: null } as const;
  await world.store.prepareUpgrade(accountKey, order, now());
  for (const minute of [0, 1, 2]) {
    if (minute === sentAt) await world.store.markSent(ofCard.reference, { lookUpAt: now(), resendAt: now() }, now());
    if (minute === verifiedAt) {
      await world.store.openVerification(tenant.key, { accountId: "", token: "another" }, null, now());
      await pay(await openPage(accountKey));
    }
    world.clock.advance(minuteMs);
  }

  const before = await books(accountKey);
  const [open] = before.charges.filter(({ reference }) => reference === ofCard.reference);
  if (!open) throw new Error("The upgrade is not open");
  await serverThatHears(() => declined("new_card")).settle(before, open);
  expect(await world.store.findCharge(ofCard.reference)).toMatchObject({ state: "failed" });
  expect((await books(accountKey)).card).toMatchObject({ refused });
});
