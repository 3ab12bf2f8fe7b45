import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { byAccount } from "../../../src/domain/audit.ts";
import type { NewInvoice } from "../../../src/domain/books.ts";
import type { Tenant } from "../../../src/domain/tenant.ts";
import type { StoreBackend } from "../../support/store-backend.ts";
import { bytes, createWorld, newAct, type World } from "../../support/store-factory.ts";
import { hourMs, monthEnd, newCharge, newIds, newInvoice, payingIn, payment } from "./paying.ts";

/** What is charged and what becomes of it: `src/store/billing.ts` as tests. */
export function chargesContract(backend: StoreBackend): void {
  describe(`${backend.name} keeps the books:`, () => {
    let world: World;
    beforeEach(async () => {
      world = await createWorld(backend);
    });
    afterEach(() => world.end());

    const { now, books, openPage, pay, verified, charged, fail, tenantNow } = payingIn(() => world);

    describe("a charge that was made before a backup was put back", () => {
      test.each([
        ["more than its invoice: the rest is credited", 70_000, 20_000],
        ["less than its invoice: nobody owes the rest", 30_000, 0],
      ])("pays its days over %s", async (_, amountKobo, creditKobo) => {
        const { accountKey } = await verified();
        const { charge } = await charged(accountKey);
        const settled = await world.store.settleCharge(charge.reference, { ...payment, amountKobo }, now());
        expect([settled.kind, settled.charge.amountKobo]).toEqual(["applied", amountKobo]);
        const { account, invoices } = await books(accountKey);
        expect([account.creditKobo, invoices]).toEqual([creditKobo, []]);
        expect((await world.store.planDays(accountKey)).invoiced.get(20_500)).toBe("paid");
      });

      test("without an invoice is credited, once", async () => {
        const { accountKey } = await verified();
        const { cardKey: _card, lookUpAt: _at, ...found } = newCharge({ amountKobo: 40_000 });
        const adopt = () =>
          world.store.adoptCharge(accountKey, { ...found, kind: "upgrade", transactionId: "7" }, now());
        await adopt();
        await adopt();
        expect((await books(accountKey)).account.creditKobo).toBe(40_000);
        expect(await world.store.findCharge(found.reference)).toMatchObject({ state: "succeeded", invoiceKey: null });
      });

      test("and is still under way is watched, and goes back when it is paid", async () => {
        const { accountKey } = await verified();
        const { cardKey: _card, lookUpAt: _at, ...found } = newCharge({ amountKobo: 5_000 });
        await world.store.adoptCharge(accountKey, { ...found, kind: "upgrade", transactionId: null }, now());
        const watched = (await books(accountKey)).charges.find(({ reference }) => reference === found.reference);
        expect(watched).toMatchObject({ state: "superseded", lookUpAt: expect.any(Number) });
        expect((await world.store.settleCharge(found.reference, payment, now())).kind).toBe("refund_due");
        expect((await books(accountKey)).account.creditKobo).toBe(0);
      });
    });

    test("a refund keeps the time from which it may be requested again, however often it is checked", async () => {
      const { accountKey } = await verified();
      const { charge } = await charged(accountKey);
      await fail(charge, { kind: "suspend" }, { refund: true });
      const settle = (...to: [stage: "requested" | "done", times: { refundAt: number | null; resendAt?: number }]) =>
        world.store.settleRefund(charge.reference, ...to, now());
      await settle("requested", { refundAt: now() + 1, resendAt: now() + 9 });
      await settle("requested", { refundAt: now() + 2 });
      const refunded = await world.store.findCharge(charge.reference);
      expect(refunded).toMatchObject({ refund: "requested", refundAt: now() + 2, resendAt: now() + 9 });
      await settle("done", { refundAt: null });
      expect(await world.store.findCharge(charge.reference)).toMatchObject({ refund: "done", refundAt: null });
    });

    describe("the latest charges", () => {
      test("are those of all accounts, newest first, without the name of a deleted one", async () => {
        const first = await verified();
        const { charge } = await charged(first.accountKey);
        const second = await verified();
        const listed = await world.store.latestCharges(10);
        expect(listed.map(({ kind }) => kind)).toEqual(["verification", "subscription", "verification"]);
        expect(listed[1]).toMatchObject({
          tenantId: first.tenant.id,
          reference: charge.reference,
          amountKobo: charge.amountKobo,
          state: "open",
          settledAt: null,
          refund: null,
        });
        expect(await world.store.latestCharges(1)).toEqual(listed.slice(0, 1));
        await world.store.deleteTenant(second.tenant.key, now());
        expect((await world.store.latestCharges(1))[0]).toMatchObject({ tenantId: null, tenantName: null });
      });
    });

    describe("a month's end", () => {
      test("is invoiced with its days, and moves on", async () => {
        const { accountKey } = await verified();
        await world.store.endMonth(accountKey, newInvoice("subscription", [1, 2]), monthEnd + 1, now());
        expect(await books(accountKey)).toMatchObject({
          account: { nextInvoiceAt: monthEnd + 1 },
          invoices: [{ state: "open", attempts: 0, nextAttemptAt: now() }],
        });
        expect((await world.store.planDays(accountKey)).invoiced).toEqual(
          new Map([
            [1, "open"],
            [2, "open"],
          ]),
        );
      });

      test("cannot take a day that is in another invoice, and then changes nothing", async () => {
        const { accountKey } = await verified();
        await world.store.endMonth(accountKey, newInvoice("subscription", [1, 2]), monthEnd + 1, now());
        const before = await books(accountKey);
        await world.store.endMonth(accountKey, newInvoice("subscription", [2, 3]), monthEnd + 2, now());
        expect(await books(accountKey)).toEqual(before);
      });

      test("is dealt with once, whoever else finds it due at the same time", async () => {
        const { accountKey } = await verified();
        await world.store.endMonth(accountKey, newInvoice("subscription", [1, 2]), monthEnd + 1, now());
        const before = await books(accountKey);
        await world.store.endMonth(accountKey, newInvoice("subscription", [1, 2]), monthEnd + 1, now());
        await world.store.endMonth(accountKey, null, monthEnd + 1, now());
        expect(await books(accountKey)).toEqual(before);
      });

      test("is asked for once at a time: of two who find its charge to be sent, one sends it", async () => {
        const { accountKey } = await verified();
        const { charge } = await charged(accountKey);
        const mark = () =>
          world.store.markSent(charge.reference, { lookUpAt: now() + 60_000, resendAt: now() + 120_000 }, now());
        expect((await Promise.all([mark(), mark()])).toSorted()).toEqual([false, true]);
        world.clock.advance(119_999);
        expect(await mark()).toBe(false);
        world.clock.advance(1);
        expect(await mark()).toBe(true);
      });

      test("has one open charge at a time", async () => {
        const { accountKey } = await verified();
        const { invoice, charge } = await charged(accountKey);
        expect(await world.store.prepareAttempt(invoice.key, newCharge(), now())).toBeNull();
        await fail(charge, { kind: "retry", at: now() + hourMs });
        expect(await world.store.prepareAttempt(invoice.key, newCharge(), now())).not.toBeNull();
      });

      test("that is paid is paid once", async () => {
        const { accountKey } = await verified();
        const { charge } = await charged(accountKey);
        const settle = () => world.store.settleCharge(charge.reference, payment, now());
        const outcomes = await Promise.all([settle(), settle()]);
        expect(outcomes.map(({ kind }) => kind).toSorted()).toEqual(["applied", "known"]);
        expect((await books(accountKey)).invoices).toEqual([]);
        expect((await world.store.planDays(accountKey)).invoiced.get(20_500)).toBe("paid");
      });

      test("that is settled is not looked up again, whoever has not heard of it", async () => {
        const { accountKey } = await verified();
        const { charge } = await charged(accountKey);
        await world.store.settleCharge(charge.reference, payment, now());
        await world.store.keepWaiting(charge, { lookUpAt: now(), resendAt: now() }, now());
        expect(await world.store.findCharge(charge.reference)).toMatchObject({ state: "succeeded", lookUpAt: null });
      });

      test("of which there was news while it was looked up is looked up for them, once", async () => {
        const { accountKey } = await verified();
        const { charge } = await charged(accountKey);
        const { reference } = charge;
        const newsAt = now() + 1;
        await world.store.lookUpSoon(reference, newsAt);
        // The answer to a look-up before that comes late.
        await world.store.keepWaiting(charge, { lookUpAt: newsAt + hourMs }, newsAt + 1);
        const waiting = await world.store.findCharge(reference);
        expect(waiting).toMatchObject({ lookUpAt: newsAt, lookUps: charge.lookUps + 1 });
        await world.store.keepWaiting(waiting ?? charge, { lookUpAt: newsAt + hourMs }, newsAt + 2);
        expect(await world.store.findCharge(reference)).toMatchObject({ lookUpAt: newsAt + hourMs });
      });

      test("is not made again under a reference that is known", async () => {
        const { accountKey } = await verified();
        const { invoice, charge } = await charged(accountKey);
        await fail(charge, { kind: "retry", at: now() });
        const again = newCharge({ amountKobo: 50_000, reference: charge.reference });
        expect(await world.store.prepareAttempt(invoice.key, again, now())).toBeNull();
        expect((await books(accountKey)).invoices).toMatchObject([{ key: invoice.key, nextAttemptAt: now() }]);
      });

      test("that fails makes the account past due, then suspends it, and its success ends both", async () => {
        const { tenant, accountKey } = await verified();
        const { invoice, charge } = await charged(accountKey);
        await fail(charge, { kind: "retry", at: now() + hourMs });
        expect(await tenantNow(tenant)).toMatchObject({ pastDueAt: now(), paymentSuspendedAt: null });
        expect((await books(accountKey)).invoices).toMatchObject([
          { firstFailedAt: now(), nextAttemptAt: now() + hourMs },
        ]);
        const second = await world.store.prepareAttempt(invoice.key, newCharge(), now());
        if (second) await fail(second, { kind: "suspend" });
        expect(await tenantNow(tenant)).toMatchObject({ paymentSuspendedAt: now() });
        const third = await world.store.prepareAttempt(invoice.key, newCharge(), now());
        await world.store.settleCharge(third?.reference ?? "", payment, now());
        expect(await tenantNow(tenant)).toMatchObject({ pastDueAt: null, paymentSuspendedAt: null });
      });

      test("stays past due while another invoice is outstanding, and keeps the operator's suspension", async () => {
        const { tenant, accountKey } = await verified();
        const [first, second] = [await charged(accountKey, [1]), await charged(accountKey, [2])];
        for (const { charge } of [first, second]) await fail(charge, { kind: "suspend" });
        await world.store.suspend(tenant.key, "operator", now());
        const payAgain = async (invoiceKey: number) => {
          const charge = await world.store.prepareAttempt(invoiceKey, newCharge(), now());
          await world.store.settleCharge(charge?.reference ?? "", payment, now());
          return tenantNow(tenant);
        };
        expect((await payAgain(first.invoice.key)).paymentSuspendedAt).not.toBeNull();
        const last = await payAgain(second.invoice.key);
        expect(last).toMatchObject({ paymentSuspendedAt: null, pastDueAt: null, operatorSuspendedAt: now() });
      });

      test("that failed too early still pays its days, as long as nothing else does", async () => {
        const { tenant, accountKey } = await verified();
        const { invoice, charge } = await charged(accountKey);
        await fail(charge, { kind: "retry", at: now() + hourMs });
        expect((await world.store.settleCharge(charge.reference, payment, now())).kind).toBe("applied");
        expect((await tenantNow(tenant)).pastDueAt).toBeNull();
        expect(await world.store.prepareAttempt(invoice.key, newCharge(), now())).toBeNull();
      });

      test("is charged again at once when a new card is verified", async () => {
        const { tenant, accountKey } = await verified();
        const { charge } = await charged(accountKey);
        await fail(charge, { kind: "suspend" }, { cardRefused: true });
        expect((await books(accountKey)).card?.refused).toBe(true);
        await world.store.openVerification(tenant.key, newIds(), null, now());
        await pay(await openPage(accountKey));
        expect(await books(accountKey)).toMatchObject({
          card: { refused: false },
          invoices: [{ nextAttemptAt: now() }],
        });
      });
    });

    describe("an upgrade", () => {
      const order = { tier: "business" as const, login: null };
      const upgrade = async (accountKey: number, given: Partial<NewInvoice> = {}) => {
        const invoice = newInvoice("upgrade", [7], given);
        const charge = newCharge({ amountKobo: invoice.amountKobo });
        const stored = await world.store.prepareUpgrade(accountKey, { invoice, charge, ...order }, now());
        if (!stored) throw new Error("The upgrade was not stored");
        return stored;
      };

      test("takes effect with its payment, and what was paid too much is credit", async () => {
        const { tenant, accountKey } = await verified();
        const charge = await upgrade(accountKey, { totalKobo: 4_000, amountKobo: 10_000 });
        expect(await tenantNow(tenant)).toMatchObject({ tier: "pro", enforcedTier: "pro" });
        await world.store.settleCharge(charge.reference, payment, now());
        expect(await tenantNow(tenant)).toMatchObject({ tier: "business", enforcedTier: "business" });
        expect((await books(accountKey)).account.creditKobo).toBe(6_000);
      });

      const newPasswords: readonly [string, (tenant: Tenant) => Promise<unknown>][] = [
        ["the operator sets", ({ key }) => world.store.setPassword(key, "newer")],
        ["the account changes", ({ key, passwordHash }) => world.store.replacePassword(key, passwordHash, "newer")],
        [
          "a link sets",
          async ({ key }) => {
            const mail = { kind: "password.reset", recipient: "ada@x.io", fact: {} } as const;
            await world.store.orderPasswordReset(key, bytes("token"), mail, now());
            await world.store.usePasswordReset(bytes("token"), "newer", now(), newAct({ action: "password.reset" }));
          },
        ],
      ];
      test.each(newPasswords)("brings no login any more after a password that %s", async (_, setPassword) => {
        const tenant = await world.tenant({ tier: "free", email: "ada@x.io" });
        const { verification } = await world.store.openVerification(tenant.key, newIds(), null, now());
        const login = { email: "eve@x.io", passwordHash: "ordered before" };
        const invoice = newInvoice("upgrade", [7]);
        const ordered = { invoice, charge: newCharge(), tier: "pro", login } as const;
        const charge = await world.store.prepareUpgrade(verification.accountKey, ordered, now());
        await setPassword(tenant);
        await world.store.settleCharge(charge?.reference ?? "", payment, now());
        expect(await tenantNow(tenant)).toMatchObject({
          ...{ tier: "pro", enforcedTier: "pro", email: "ada@x.io", passwordHash: "newer" },
        });
        expect(await world.store.findTenantByLoginEmail("eve@x.io")).toBeNull();
        // Its own address is what it signs in with on the paid plan, and nobody else's from now on.
        expect((await world.store.findTenantByLoginEmail("ada@x.io"))?.key).toBe(tenant.key);
      });

      test.each([
        ["is the login of nobody else", null, true],
        ["is another account's login", "pro", false],
      ] as const)("without its login makes the account's address one, if it %s", async (_, other, isLogin) => {
        if (other) await world.tenant({ tier: other, email: "ada@x.io", loginEmail: "ada@x.io" });
        const tenant = await world.tenant({ tier: "free", email: "Ada@x.io" });
        const { verification } = await world.store.openVerification(tenant.key, newIds(), null, now());
        const login = { email: "eve@x.io", passwordHash: "ordered before" };
        const ordered = { invoice: newInvoice("upgrade", [7]), charge: newCharge(), tier: "pro", login } as const;
        const charge = await world.store.prepareUpgrade(verification.accountKey, ordered, now());
        const reference = charge?.reference ?? "";
        await world.store.setPassword(tenant.key, "newer");
        await world.store.awaitConfirmation(reference, "https://bank.example", newIds(), now(), now());
        const holds = async () => (await world.store.findTenantByLoginEmail("ada@x.io"))?.key === tenant.key;
        expect(await holds()).toBe(isLogin);
        await world.store.settleCharge(reference, payment, now());
        expect(await holds()).toBe(isLogin);
        expect(await tenantNow(tenant)).toMatchObject({ tier: "pro", email: "Ada@x.io", passwordHash: "newer" });
      });

      test("that was paid is found whatever was charged since, and one that was not paid is not", async () => {
        const { tenant, accountKey } = await verified();
        expect(await world.store.latestPaidUpgrade(accountKey)).toBeNull();
        const charge = await upgrade(accountKey);
        await world.store.settleCharge(charge.reference, payment, now());
        await world.store.openVerification(tenant.key, newIds(), null, now());
        await openPage(accountKey);
        await fail(await upgrade(accountKey, { days: [{ day: 8, tier: "pro" }] }), { kind: "void" });
        const paid = await world.store.latestPaidUpgrade(accountKey);
        expect(paid).toMatchObject({ reference: charge.reference, state: "succeeded", settledAt: now() });
      });

      describe("is in the audit", () => {
        const by = byAccount("192.0.2.7");
        const entries = async ({ id }: Tenant) =>
          (await world.store.audit({ tenantId: id, offset: 0, limit: 9 })).entries.map(
            ({ action, address, detail }) => ({ action, address, detail }),
          );
        const raised = { action: "tier.raised", detail: { tier: "business" } } as const;

        test("not as it is ordered, nor when it is declined", async () => {
          const { tenant, accountKey } = await verified();
          await fail(await upgrade(accountKey), { kind: "void" });
          expect(await entries(tenant)).toEqual([]);
        });

        test("once it is paid, with who waited for that", async () => {
          const { tenant, accountKey } = await verified();
          const { reference } = await upgrade(accountKey);
          for (let n = 0; n < 2; n++) await world.store.settleCharge(reference, payment, now(), by);
          expect(await entries(tenant)).toEqual([{ ...raised, address: "192.0.2.7" }]);
        });

        test("once it is paid, also when nobody waited for that", async () => {
          const { tenant, accountKey } = await verified();
          await world.store.settleCharge((await upgrade(accountKey)).reference, payment, now());
          expect(await entries(tenant)).toEqual([{ ...raised, address: null }]);
        });

        test.each(["it is paid", "its bank asks for a confirmation"])(
          "once %s, with the login it brings",
          async (end) => {
            const { tenant, accountKey } = await verified();
            await world.store.setTier(tenant.key, "free");
            const login = { email: "ada@x.io", passwordHash: "h2" };
            const ordered = { invoice: newInvoice("upgrade", [7]), charge: newCharge(), tier: "pro", login } as const;
            const { reference = "" } = (await world.store.prepareUpgrade(accountKey, ordered, now())) ?? {};
            expect(await entries(tenant)).toEqual([]);
            if (end !== "it is paid") {
              await world.store.awaitConfirmation(reference, "https://bank.example", newIds(), now() + 1, now(), by);
            }
            await world.store.settleCharge(reference, payment, now(), by);
            const brought = { address: "192.0.2.7", detail: undefined };
            expect(await entries(tenant)).toEqual([
              { action: "password.changed", ...brought },
              { action: "email.changed", ...brought },
              { action: "tier.raised", address: "192.0.2.7", detail: { tier: "pro" } },
            ]);
          },
        );

        test("once its bank asks for a confirmation, and not again with the payment", async () => {
          const { tenant, accountKey } = await verified();
          const { reference } = await upgrade(accountKey);
          await world.store.awaitConfirmation(reference, "https://bank.example", newIds(), now() + 1, now(), by);
          await world.store.settleCharge(reference, payment, now());
          expect(await entries(tenant)).toEqual([{ ...raised, address: "192.0.2.7" }]);
        });
      });

      test("that is declined changes nothing and lets go of its days", async () => {
        const { tenant, accountKey } = await verified();
        const charge = await upgrade(accountKey);
        await fail(charge, { kind: "void" });
        expect(await tenantNow(tenant)).toMatchObject({ tier: "pro", pastDueAt: null });
        expect((await world.store.planDays(accountKey)).invoiced.size).toBe(0);
        expect((await world.store.settleCharge(charge.reference, payment, now())).kind).toBe("refund_due");
        expect(await tenantNow(tenant)).toMatchObject({ tier: "pro", enforcedTier: "pro" });
      });

      test("is one at a time", async () => {
        const { accountKey } = await verified();
        await upgrade(accountKey);
        const second = { invoice: newInvoice("upgrade", []), charge: newCharge(), ...order };
        expect(await world.store.prepareUpgrade(accountKey, second, now())).toBeNull();
      });

      test("that the customer has to confirm names its target at once, and reaches it with the payment", async () => {
        const { tenant, accountKey } = await verified();
        const charge = await upgrade(accountKey);
        const verification = await world.store.awaitConfirmation(
          charge.reference,
          "https://bank.example",
          newIds(),
          now() + hourMs,
          now(),
        );
        expect(verification).toMatchObject({ state: "open", chargeKey: charge.key });
        expect(await tenantNow(tenant)).toMatchObject({ tier: "business", enforcedTier: "pro" });
        await world.store.settleCharge(charge.reference, payment, now());
        expect(await tenantNow(tenant)).toMatchObject({ tier: "business", enforcedTier: "business" });
        expect((await books(accountKey)).verification).toBeNull();
      });

      test("that the bank refuses to confirm leaves the plan in force and its address behind", async () => {
        const { tenant, accountKey } = await verified();
        const charge = await upgrade(accountKey);
        await world.store.awaitConfirmation(charge.reference, "https://bank.example", newIds(), now() + 1, now());
        expect(await fail(charge, { kind: "void" })).toMatchObject({ tier: "pro", enforcedTier: "pro" });
        expect(await tenantNow(tenant)).toMatchObject({ tier: "pro", enforcedTier: "pro", pastDueAt: null });
        expect((await books(accountKey)).verification).toBeNull();
        expect(await upgrade(accountKey)).toMatchObject({ kind: "upgrade", state: "open" });
      });

      test("that the bank refuses to confirm leaves the address to a month's end that waits for it, too", async () => {
        const { tenant, accountKey } = await verified();
        const month = await charged(accountKey);
        const ids = newIds();
        await world.store.awaitConfirmation(month.charge.reference, "https://bank.example/1", ids, now() + 1, now());
        const charge = await upgrade(accountKey);
        await world.store.awaitConfirmation(charge.reference, "https://bank.example/2", newIds(), now() + 1, now());
        await fail(charge, { kind: "void" });
        expect(await tenantNow(tenant)).toMatchObject({ tier: "pro", enforcedTier: "pro" });
        expect((await books(accountKey)).verification).toMatchObject({ token: ids.token, chargeKey: month.charge.key });
      });

      test("that nobody confirms gives way to another card; a late confirmation goes back", async () => {
        const { tenant, accountKey } = await verified();
        const charge = await upgrade(accountKey);
        await world.store.awaitConfirmation(charge.reference, "https://bank.example", newIds(), now() + 1, now());
        const page = await openPage(accountKey);
        expect((await world.store.settleCharge(charge.reference, payment, now())).kind).toBe("refund_due");
        expect((await world.store.planDays(accountKey)).invoiced.size).toBe(0);
        await pay(page);
        expect(await tenantNow(tenant)).toMatchObject({ tier: "business", enforcedTier: "business" });
      });

      test("never lowers a tier that the operator has set meanwhile", async () => {
        const { tenant, accountKey } = await verified();
        const charge = await upgrade(accountKey);
        await world.store.setTier(tenant.key, "enterprise");
        await world.store.settleCharge(charge.reference, payment, now());
        expect(await tenantNow(tenant)).toMatchObject({ tier: "enterprise", enforcedTier: "enterprise" });
      });
    });
  });
}
