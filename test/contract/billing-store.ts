import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import type { AfterFailure, Charge, NewCard, NewInvoice } from "../../src/domain/books.ts";
import type { Tenant } from "../../src/domain/tenant.ts";
import { newToken } from "../../src/lib/id.ts";
import { createWorld, refusalOf, type TestBackend, type World } from "../support/store-factory.ts";

const hourMs = 3_600_000;
const payment = { transactionId: "7" };
const monthEnd = Date.UTC(2026, 2, 31, 11);

const newIds = () => ({ accountId: `bill_${newToken(60)}`, token: newToken(130) });

const newCard = (signature: string | null = "SIG", sealed = newToken(60)): NewCard => ({
  processor: "sandbox:test",
  sealed: new TextEncoder().encode(sealed),
  signature,
  brand: "visa",
  last4: "4081",
  expMonth: "12",
  expYear: "2030",
});

const newCharge = (given: { amountKobo?: number; cardKey?: number | null; lookUpAt?: number | null } = {}) => ({
  reference: `ref-${newToken(60)}`,
  processor: "sandbox:test",
  amountKobo: 10_000,
  cardKey: null,
  lookUpAt: null,
  ...given,
});

const newInvoice = (kind: NewInvoice["kind"], days: number[], given: Partial<NewInvoice> = {}): NewInvoice => ({
  id: newToken(60),
  kind,
  lines: [],
  days: days.map((day) => ({ day, tier: "pro" as const })),
  totalKobo: 50_000,
  creditUsedKobo: 0,
  amountKobo: 50_000,
  ...given,
});

const declined = { reason: "Declined", cardRefused: false, refund: false, card: null, lookUpAt: null };

/** The part of `src/store/billing.ts` that payments rest on, as tests. A backend of the store is one that passes them. */
export function billingStoreContract(name: string, newBackend: () => TestBackend): void {
  describe(`${name} keeps the books:`, () => {
    let world: World;
    beforeEach(async () => {
      world = await createWorld(newBackend());
    });
    afterEach(() => world.end());

    const now = () => world.clock.now();

    /** An account made on a paid tier, with its open verification. */
    async function unverified() {
      const ids = newIds();
      const tenant = await world.tenant({ tier: "pro", enforcedTier: null, verification: ids });
      const accountKey = (await world.store.billingAccountOf(tenant.key)) ?? 0;
      return { tenant, accountKey, token: ids.token };
    }

    const books = (accountKey: number) => world.store.books(accountKey);

    async function openPage(accountKey: number): Promise<Charge> {
      const { verification } = await books(accountKey);
      const page = await world.store.preparePage(
        verification?.key ?? 0,
        newCharge({ lookUpAt: now() + hourMs }),
        now(),
      );
      if (!page) throw new Error("No page was made");
      return page;
    }

    const pay = (page: Charge, card = newCard()) =>
      world.store.settleVerification(page.reference, card, payment, monthEnd, now());

    /** An account with a verified card. */
    async function verified() {
      const made = await unverified();
      await pay(await openPage(made.accountKey));
      return made;
    }

    /** A month's end whose charge is open. */
    async function charged(accountKey: number, days = [20_500]) {
      await world.store.endMonth(accountKey, newInvoice("subscription", days), monthEnd + 30 * 24 * hourMs, now());
      const { invoices, card } = await books(accountKey);
      const invoice = invoices.at(-1);
      const charge = await world.store.prepareAttempt(
        invoice?.key ?? 0,
        newCharge({ amountKobo: 50_000, cardKey: card?.key ?? null }),
        now(),
      );
      if (!invoice || !charge) throw new Error("Nothing was charged");
      return { invoice, charge };
    }

    const fail = (charge: Charge, after: AfterFailure | null, given: Partial<typeof declined> = {}) =>
      world.store.failCharge(charge.reference, { ...declined, ...given }, after, now());

    const tenantNow = async (tenant: Tenant) => {
      const found = await world.store.findTenant(tenant.id);
      if (!found) throw new Error("The tenant is gone");
      return found;
    };

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

    describe("the login of an account whose card was never verified", () => {
      const email = () => `${newToken(60)}@example.com`;
      const asked = (loginEmail: string, enforcedTier: "pro" | null) =>
        world.tenant({ tier: "pro", enforcedTier, loginEmail, verification: newIds() });

      test("is freed once it was asked for long enough ago", async () => {
        const loginEmail = email();
        const tenant = await asked(loginEmail, null);
        expect(await world.store.releaseUnverifiedEmail(loginEmail, now() - 1)).toBeNull();
        expect((await world.store.releaseUnverifiedEmail(loginEmail, now()))?.id).toBe(tenant.id);
        expect(await world.store.findTenantByLoginEmail(loginEmail)).toBeNull();
        expect((await tenantNow(tenant)).email).toBe(tenant.email);
      });

      test("stays with a plan that is in force, and is nobody's else", async () => {
        const loginEmail = email();
        await asked(loginEmail, "pro");
        expect(await world.store.releaseUnverifiedEmail(loginEmail, now())).toBeNull();
        expect(await world.store.releaseUnverifiedEmail(email(), now())).toBeNull();
      });
    });

    describe("a verification", () => {
      test("comes with an account that is made on a paid tier", async () => {
        const { tenant, accountKey, token } = await unverified();
        expect(await world.store.findVerification(token)).toMatchObject({ tenant, verification: { state: "open" } });
        expect(await books(accountKey)).toMatchObject({ account: { verifiedAt: null, state: "active" }, card: null });
      });

      test("is one for an account: a later upgrade changes its target and keeps its address", async () => {
        const tenant = await world.tenant({ tier: "free" });
        const login = { email: "Ada@x.io", passwordHash: "h2" };
        const first = await world.store.openVerification(tenant.key, newIds(), { tier: "pro", login }, now());
        expect(first.tenant).toMatchObject({
          tier: "pro",
          enforcedTier: "free",
          email: "Ada@x.io",
          passwordHash: "h2",
        });
        const again = await world.store.openVerification(
          tenant.key,
          newIds(),
          { tier: "business", login: null },
          now(),
        );
        expect(again.verification).toEqual(first.verification);
        expect((await world.store.findTenantByLoginEmail("ada@x.io"))?.tier).toBe("business");
      });

      test("refuses the login of another paid account, and changes nothing", async () => {
        await world.tenant({ loginEmail: "ada@x.io" });
        const tenant = await world.tenant({ tier: "free" });
        const upgrade = { tier: "pro" as const, login: { email: "Ada@x.io", passwordHash: "h2" } };
        expect(await refusalOf(world.store.openVerification(tenant.key, newIds(), upgrade, now()))).toBe(
          "invalid email_taken",
        );
        expect(await tenantNow(tenant)).toEqual(tenant);
        expect(await world.store.billingAccountOf(tenant.key)).toBeNull();
      });

      test("that is paid activates the target and saves the card, once", async () => {
        const { tenant, accountKey } = await unverified();
        const page = await openPage(accountKey);
        const outcomes = await Promise.all([pay(page), pay(page), pay(page)]);
        expect(outcomes.map(({ kind }) => kind).toSorted()).toEqual(["applied", "known", "known"]);
        expect(await tenantNow(tenant)).toMatchObject({ tier: "pro", enforcedTier: "pro" });
        const { account, card, verification } = await books(accountKey);
        expect({ account, verification }).toMatchObject({
          account: { verifiedAt: now(), nextInvoiceAt: monthEnd },
          verification: null,
        });
        expect(card).toMatchObject({ last4: "4081", signature: "SIG", refused: false });
      });

      test("that is paid on a page that was left behind goes back, with the card that paid it", async () => {
        const { tenant, accountKey } = await unverified();
        const [old, current] = [await openPage(accountKey), await openPage(accountKey)];
        expect((await pay(old)).kind).toBe("refund_due");
        expect(await tenantNow(tenant)).toMatchObject({ enforcedTier: null });
        const { charges, cardsToForget, card } = await books(accountKey);
        expect(charges.find(({ key }) => key === old.key)).toMatchObject({ state: "superseded", refund: "due" });
        expect({ card, toForget: cardsToForget.length }).toEqual({ card: null, toForget: 1 });
        expect((await pay(current)).kind).toBe("applied");
      });

      test("after the first one is paid back once the card is saved, and the card before is forgotten", async () => {
        const { tenant, accountKey } = await verified();
        await world.store.openVerification(tenant.key, newIds(), null, now());
        expect((await pay(await openPage(accountKey), newCard("SIG2"))).kind).toBe("applied");
        const { charges, card, cardsToForget } = await books(accountKey);
        expect(charges).toMatchObject([{ state: "succeeded", refund: "due" }]);
        expect(card?.signature).toBe("SIG2");
        expect(cardsToForget.map(({ signature }) => signature)).toEqual(["SIG"]);
      });

      test("with the same card takes its newer token and forgets nothing", async () => {
        const { tenant, accountKey } = await verified();
        await world.store.openVerification(tenant.key, newIds(), null, now());
        await pay(await openPage(accountKey), newCard("SIG", "newer"));
        const { card, cardsToForget } = await books(accountKey);
        expect(new TextDecoder().decode(card?.sealed)).toBe("newer");
        expect(cardsToForget).toEqual([]);
      });

      test("that is given up returns an upgrade to the plan in force, and a late payment goes back", async () => {
        const tenant = await world.tenant({ tier: "free" });
        const login = { email: "ada@x.io", passwordHash: "h2" };
        const { verification } = await world.store.openVerification(
          tenant.key,
          newIds(),
          { tier: "pro", login },
          now(),
        );
        const page = await openPage(verification.accountKey);
        expect(await world.store.giveUpVerification(verification.key, now())).toMatchObject({ tier: "free" });
        expect(await world.store.findTenantByLoginEmail("ada@x.io")).toBeNull();
        expect((await pay(page)).kind).toBe("refund_due");
        expect(await world.store.giveUpVerification(verification.key, now())).toBeNull();
        expect(await world.store.preparePage(verification.key, newCharge(), now())).toBeNull();
      });

      test("ends when the operator sets a plan that is not paid by card", async () => {
        const { tenant, accountKey } = await unverified();
        const page = await openPage(accountKey);
        await world.store.setTier(tenant.key, "enterprise");
        expect((await books(accountKey)).verification).toBeNull();
        expect((await pay(page)).kind).toBe("refund_due");
        expect(await tenantNow(tenant)).toMatchObject({ tier: "enterprise", enforcedTier: "enterprise" });
      });

      test("of an unacceptable payment leaves the verification open without a page", async () => {
        const { accountKey } = await unverified();
        const page = await openPage(accountKey);
        await fail(page, null, { refund: true, reason: "The card cannot be charged again; use another one" });
        const { verification, charges } = await books(accountKey);
        expect(verification).toMatchObject({ state: "open", chargeKey: null });
        expect(charges).toMatchObject([{ state: "failed", refund: "due" }]);
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
        const again = world.store.endMonth(accountKey, newInvoice("subscription", [2, 3]), monthEnd + 2, now());
        await expect(again).rejects.toThrow("UNIQUE");
        expect(await books(accountKey)).toEqual(before);
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
        expect(world.backend.countRows()).toMatchObject({
          invoice: 0,
          invoice_day: 0,
          saved_card: 0,
          plan_period: 0,
          card_verification: 0,
          charge: 3,
        });
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
        await world.store.rest(accountKey, (await books(accountKey)).version, now() + hourMs);
        expect(await world.store.dueAccounts(now(), 10)).toEqual({ accounts: [], nextAt: now() + hourMs });
      });

      test("stays due when something has changed since its books were read", async () => {
        const { accountKey } = await unverified();
        const { version } = await books(accountKey);
        const page = await openPage(accountKey);
        await world.store.rest(accountKey, version, now() + hourMs);
        expect((await world.store.dueAccounts(now(), 10)).accounts).toMatchObject([{ key: accountKey }]);
        await world.store.rest(accountKey, (await books(accountKey)).version, null);
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
