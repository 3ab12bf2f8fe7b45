import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { byAccount } from "../../../src/domain/audit.ts";
import type { Tenant, Tier } from "../../../src/domain/tenant.ts";
import type { StoreBackend } from "../../support/store-backend.ts";
import { createWorld, refusalOf, type World } from "../../support/store-factory.ts";
import { hourMs, monthEnd, newCard, newCharge, newIds, newInvoice, payingIn, payment } from "./paying.ts";

/** Cards and their verification: `src/store/billing.ts` as tests. */
export function verificationsContract(backend: StoreBackend): void {
  describe(`${backend.name} keeps the books:`, () => {
    let world: World;
    beforeEach(async () => {
      world = await createWorld(backend);
    });
    afterEach(() => world.end());

    const { now, unverified, books, openPage, pay, verified, fail, tenantNow } = payingIn(() => world);

    describe("the login of an account whose card was never verified", () => {
      const dayMs = 24 * hourMs;
      const asked = (enforcedTier: "pro" | null = null) =>
        world.tenant({ tier: "pro", enforcedTier, email: "ada@x.io", loginEmail: "ada@x.io", verification: newIds() });
      const holderNow = async () => (await world.store.findTenantByLoginEmail("ada@x.io"))?.id;
      const login = { email: "Ada@x.io", passwordHash: "h2" };

      /** How another account asks for it. Returns that account. */
      const ways: readonly [string, () => Promise<Tenant>][] = [
        ["a new account", () => world.tenant({ tier: "pro", loginEmail: "ada@x.io" })],
        [
          "an upgrade",
          async () => {
            const { key } = await world.tenant({ tier: "free" });
            return (await world.store.openVerification(key, newIds(), { tier: "pro", login }, now())).tenant;
          },
        ],
        ["a new address", async () => world.store.changeEmail((await world.tenant({ tier: "pro" })).key, "ada@x.io")],
      ];
      test.each(ways)("goes to %s a day after it was asked for", async (_, ask) => {
        const first = await asked();
        world.clock.advance(dayMs - 1);
        expect(await refusalOf(ask())).toBe("invalid email_taken");
        expect(await holderNow()).toBe(first.id);
        world.clock.advance(1);
        const { id } = await ask();
        expect(await holderNow()).toBe(id);
        expect(await tenantNow(first)).toEqual(first);
      });

      test.each(ways)("stays with a plan that is in force, whatever %s asks for", async (_, ask) => {
        const first = await asked("pro");
        world.clock.advance(dayMs);
        expect(await refusalOf(ask())).toBe("invalid email_taken");
        expect(await holderNow()).toBe(first.id);
      });

      test.each(["paid", "declined"] as const)(
        "and an upgrade with a saved card that is %s: only a paid one takes it",
        async (end) => {
          const { tenant, accountKey } = await verified();
          await world.store.setTier(tenant.key, "free");
          const first = await asked();
          world.clock.advance(dayMs);
          const order = { invoice: newInvoice("upgrade", [7]), charge: newCharge(), tier: "pro", login } as const;
          const charge = await world.store.prepareUpgrade(accountKey, order, now());
          if (!charge) throw new Error("The upgrade was not stored");
          expect(await holderNow()).toBe(first.id);
          if (end === "paid") await world.store.settleCharge(charge.reference, payment, now());
          else await fail(charge, { kind: "void" });
          expect(await holderNow()).toBe(end === "paid" ? tenant.id : first.id);
        },
      );
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

      test.each([
        ["with the login it brings", "Ada@x.io", ["password.changed", "email.changed", "tier.raised"]],
        ["without an address that stays", "eve@x.io", ["password.changed", "tier.raised"]],
      ])("notes the upgrade in the audit, %s", async (_, email, actions) => {
        const tenant = await world.tenant({ tier: "free", email: "eve@x.io" });
        const upgrade = { tier: "pro" as const, login: { email, passwordHash: "h2" } };
        await world.store.openVerification(tenant.key, newIds(), upgrade, now(), byAccount("192.0.2.7"));
        const { entries } = await world.store.audit({ tenantId: tenant.id, offset: 0, limit: 9 });
        expect(entries.map(({ action, address }) => `${action} ${address}`)).toEqual(
          actions.map((action) => `${action} 192.0.2.7`),
        );
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

      describe("for an upgrade that was found possible before", () => {
        const upgrade = (tenant: Tenant, tier: Tier, name: string) =>
          world.store.openVerification(
            tenant.key,
            newIds(),
            { tier, login: { email: `${name}@x.io`, passwordHash: name } },
            now(),
            byAccount("192.0.2.7"),
          );

        test("is refused, and nothing changes, when the operator has set a higher tier", async () => {
          const tenant = await world.tenant({ tier: "free" });
          const set = await world.store.setTier(tenant.key, "enterprise");
          expect(await refusalOf(upgrade(tenant, "pro", "ada"))).toBe("invalid not_an_upgrade");
          expect(await tenantNow(tenant)).toEqual(set);
          expect(await world.store.billingAccountOf(tenant.key)).toBeNull();
        });

        test.each<[Tier, Tier, string, Tier]>([
          ["business", "pro", "invalid not_an_upgrade", "business"],
          ["pro", "pro", "invalid not_an_upgrade", "pro"],
          ["pro", "business", "none", "business"],
        ])("to %s and then to %s: the first brings the login; the second: %s", async (first, second, refusal, tier) => {
          const tenant = await world.tenant({ tier: "free" });
          await upgrade(tenant, first, "ada");
          const refused = await upgrade(tenant, second, "eve").then(
            () => "none",
            ({ kind, code }) => `${kind} ${code}`,
          );
          expect(refused).toBe(refusal);
          expect(await tenantNow(tenant)).toMatchObject({
            tier,
            enforcedTier: "free",
            email: "ada@x.io",
            passwordHash: "ada",
          });
        });

        test("and twice is opened once", async () => {
          const tenant = await world.tenant({ tier: "free" });
          const first = await upgrade(tenant, "pro", "ada");
          expect(await upgrade(tenant, "pro", "ada")).toEqual(first);
          const { entries } = await world.store.audit({ tenantId: tenant.id, offset: 0, limit: 9 });
          expect(entries).toMatchObject([{ times: 1 }, { times: 1 }, { times: 1 }]);
        });
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
        expect((await books(accountKey)).card?.savedAt).toBe(now());
        world.clock.advance(hourMs);
        await world.store.openVerification(tenant.key, newIds(), null, now());
        await pay(await openPage(accountKey), newCard("SIG", "newer"));
        const { card, cardsToForget } = await books(accountKey);
        expect(new TextDecoder().decode(card?.sealed)).toBe("newer");
        expect(card?.savedAt).toBe(now());
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
  });
}
