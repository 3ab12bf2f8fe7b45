import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { StoreBackend } from "../../support/store-backend.ts";
import { createWorld, type World } from "../../support/store-factory.ts";
import { hourMs, newCharge, newInvoice, payingIn, payment } from "./paying.ts";

/** What the books hold, and until when: `src/store/billing.ts` as tests. */
export function booksContract(backend: StoreBackend): void {
  describe(`${backend.name} keeps the books:`, () => {
    let world: World;
    beforeEach(async () => {
      world = await createWorld(backend);
    });
    afterEach(() => world.end());

    const { now, unverified, books, openPage, pay, verified, charged, fail } = payingIn(() => world);

    describe("a deleted account", () => {
      test("leaves its books, without its tenant, to be settled", async () => {
        const { tenant, accountKey, token } = await verified();
        await world.store.deleteTenant(tenant.key, now());
        expect(await books(accountKey)).toMatchObject({
          tenant: null,
          account: { state: "closing", tenantKey: null, nextInvoiceAt: now() },
        });
        expect(await world.store.findVerification(token)).toBeNull();
        expect(await world.store.eraseDeleted(10_000)).toBe(true);
      });

      test("takes no verification any more: the payment goes back", async () => {
        const { tenant, accountKey } = await unverified();
        const page = await openPage(accountKey);
        await world.store.deleteTenant(tenant.key, now());
        expect((await pay(page)).kind).toBe("refund_due");
        expect((await books(accountKey)).card).toBeNull();
      });

      test("settles up once, in place of what is open, and keeps of its charges only what it must", async () => {
        const { tenant, accountKey } = await verified();
        const { charge } = await charged(accountKey, [3]);
        await fail(charge, { kind: "retry", at: now() + hourMs });
        await world.store.deleteTenant(tenant.key, now());
        const closing = newCharge({ amountKobo: 50_000 });
        await world.store.settleUp(accountKey, { invoice: newInvoice("closing", [3, 4]), charge: closing }, now());
        await world.store.settleUp(accountKey, { invoice: newInvoice("closing", [5]), charge: newCharge() }, now());
        const { invoices, account, card } = await books(accountKey);
        expect({ kinds: invoices.map(({ kind }) => kind), next: account.nextInvoiceAt }).toEqual({
          kinds: ["closing"],
          next: null,
        });
        await world.store.settleCharge(closing.reference, payment, now());
        await world.store.cardForgotten(card?.key ?? 0, now());
        await world.store.closeBooks(accountKey, now());
        const history = await world.store.chargeHistory(accountKey, 10);
        expect(history.map(({ state, reason, pageUrl, cardKey }) => ({ state, reason, pageUrl, cardKey }))).toEqual(
          ["succeeded", "failed", "succeeded"].map((state) => ({
            state,
            reason: null,
            pageUrl: null,
            cardKey: null,
          })) as never,
        );
        expect(await world.count()).toMatchObject({
          invoice: 0,
          invoice_day: 0,
          saved_card: 0,
          plan_period: 0,
          card_verification: 0,
          charge: 3,
        });
      });
    });

    describe("accounts to close", () => {
      test("are deleted ones with books or a card left, oldest first", async () => {
        const [first, second] = [await verified(), await unverified()];
        expect(await world.store.accountsToClose(10)).toEqual([]);
        const page = await openPage(second.accountKey);
        for (const { tenant } of [second, first]) await world.store.deleteTenant(tenant.key, now());
        expect(await world.store.accountsToClose(10)).toEqual([first.accountKey, second.accountKey]);
        expect(await world.store.accountsToClose(1)).toEqual([first.accountKey]);
        const { card } = await books(first.accountKey);
        await world.store.cardForgotten(card?.key ?? 0, now());
        for (const { accountKey } of [first, second]) await world.store.closeBooks(accountKey, now());
        expect(await world.store.accountsToClose(10)).toEqual([]);
        // A page of before is paid after all: the payment goes back, and its card is to be forgotten.
        expect((await pay(page)).kind).toBe("refund_due");
        expect(await world.store.accountsToClose(10)).toEqual([second.accountKey]);
        const { cardsToForget } = await books(second.accountKey);
        for (const { key } of cardsToForget) await world.store.cardForgotten(key, now());
        expect(await world.store.accountsToClose(10)).toEqual([]);
      });

      test("keep a charge whose outcome is not known: it is still looked up, and goes back if it was paid", async () => {
        const { tenant, accountKey } = await verified();
        const { charge } = await charged(accountKey);
        await world.store.markSent(charge.reference, { lookUpAt: now() + hourMs, resendAt: now() + hourMs }, now());
        await world.store.deleteTenant(tenant.key, now());
        const { card } = await books(accountKey);
        await world.store.cardForgotten(card?.key ?? 0, now());
        await world.store.closeBooks(accountKey, now());
        expect((await books(accountKey)).charges).toMatchObject([
          { reference: charge.reference, state: "open", lookUpAt: now() + hourMs, invoiceKey: null, cardKey: null },
        ]);
        expect((await world.store.settleCharge(charge.reference, payment, now())).kind).toBe("refund_due");
      });
    });

    describe("the record of plans", () => {
      const periods = async (accountKey: number) =>
        (await world.store.planDays(accountKey)).periods.map(({ tier, startedAt, endedAt }) => [
          tier,
          startedAt,
          endedAt,
        ]);

      test("begins with the first verified card and follows the tier in force", async () => {
        const { tenant, accountKey } = await unverified();
        expect(await periods(accountKey)).toEqual([]);
        const start = now();
        await pay(await openPage(accountKey));
        world.clock.advance(hourMs);
        await world.store.setTier(tenant.key, "business");
        expect(await periods(accountKey)).toEqual([
          ["pro", start, now()],
          ["business", now(), null],
        ]);
      });

      test("pauses while the account is suspended, and ends with it", async () => {
        const { tenant, accountKey } = await verified();
        const start = now();
        world.clock.advance(hourMs);
        await world.store.suspend(tenant.key, "operator", now());
        world.clock.advance(hourMs);
        await world.store.resume(tenant.key, "operator");
        world.clock.advance(hourMs);
        await world.store.deleteTenant(tenant.key, now());
        expect(await periods(accountKey)).toEqual([
          ["pro", start, start + hourMs],
          ["pro", start + 2 * hourMs, start + 3 * hourMs],
        ]);
      });
    });

    describe("what is due", () => {
      test("is what has changed, until it rests", async () => {
        const { accountKey } = await verified();
        expect((await world.store.dueAccounts(now(), 10)).accounts).toMatchObject([{ key: accountKey }]);
        await world.store.postpone(accountKey, (await books(accountKey)).version, now() + hourMs);
        expect(await world.store.dueAccounts(now(), 10)).toEqual({ accounts: [], nextAt: now() + hourMs });
      });

      test("stays due when something has changed since its books were read", async () => {
        const { accountKey } = await unverified();
        const { version } = await books(accountKey);
        const page = await openPage(accountKey);
        await world.store.postpone(accountKey, version, now() + hourMs);
        expect((await world.store.dueAccounts(now(), 10)).accounts).toMatchObject([{ key: accountKey }]);
        await world.store.postpone(accountKey, (await books(accountKey)).version, null);
        expect(await world.store.lookUpSoon(page.reference, now())).toBe(accountKey);
        expect((await world.store.dueAccounts(now(), 10)).accounts).toMatchObject([{ key: accountKey }]);
        expect((await books(accountKey)).charges).toMatchObject([{ lookUpAt: now() }]);
      });

      test("is nothing for a reference that is not ours", async () => {
        expect(await world.store.lookUpSoon("ver-unknown", now())).toBeNull();
      });

      test("survives a restart", async () => {
        const { accountKey } = await verified();
        await charged(accountKey);
        const before = await books(accountKey);
        await world.reopen();
        expect(await books(accountKey)).toEqual(before);
      });
    });
  });
}
