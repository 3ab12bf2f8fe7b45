import type { AfterFailure, Charge, NewCard, NewCharge, NewInvoice } from "../../../src/domain/books.ts";
import type { Tenant } from "../../../src/domain/tenant.ts";
import { newToken } from "../../../src/lib/id.ts";
import type { World } from "../../support/store-factory.ts";

export const hourMs = 3_600_000;
export const payment = { transactionId: "7" };
export const monthEnd = Date.UTC(2026, 2, 31, 11);

export const newIds = () => ({ accountId: `bill_${newToken(60)}`, token: newToken(130) });

export const newCard = (signature: string | null = "SIG", sealed = newToken(60)): NewCard => ({
  processor: "sandbox:test",
  sealed: new TextEncoder().encode(sealed),
  signature,
  brand: "visa",
  last4: "4081",
  expMonth: "12",
  expYear: "2030",
});

export const newCharge = (given: Partial<NewCharge> = {}) => ({
  reference: `ref-${newToken(60)}`,
  processor: "sandbox:test",
  amountKobo: 10_000,
  cardKey: null,
  lookUpAt: null,
  ...given,
});

export const newInvoice = (kind: NewInvoice["kind"], days: number[], given: Partial<NewInvoice> = {}): NewInvoice => ({
  id: newToken(60),
  kind,
  lines: [],
  days: days.map((day) => ({ day, tier: "pro" as const })),
  totalKobo: 50_000,
  creditUsedKobo: 0,
  amountKobo: 50_000,
  ...given,
});

export const declined = { reason: "Declined", cardRefused: false, refund: false, card: null, lookUpAt: null };

/** Accounts that pay, in the world of the test that runs, and what happens to them shortened to what it has to say. */
export function payingIn(world: () => World) {
  const now = () => world().clock.now();

  /** An account made on a paid tier, with its open verification. */
  async function unverified() {
    const ids = newIds();
    const tenant = await world().tenant({ tier: "pro", enforcedTier: null, verification: ids });
    const accountKey = (await world().store.billingAccountOf(tenant.key)) ?? 0;
    return { tenant, accountKey, token: ids.token };
  }

  const books = (accountKey: number) => world().store.books(accountKey);

  async function openPage(accountKey: number): Promise<Charge> {
    const { verification } = await books(accountKey);
    const page = await world().store.preparePage(
      verification?.key ?? 0,
      newCharge({ lookUpAt: now() + hourMs }),
      now(),
    );
    if (!page) throw new Error("No page was made");
    return page;
  }

  const pay = (page: Charge, card = newCard()) =>
    world().store.settleVerification(page.reference, card, payment, monthEnd, now());

  /** An account with a verified card. */
  async function verified() {
    const made = await unverified();
    await pay(await openPage(made.accountKey));
    return made;
  }

  /** A month's end whose charge is open. */
  async function charged(accountKey: number, days = [20_500]) {
    const endedAt = (await books(accountKey)).account.nextInvoiceAt ?? monthEnd;
    await world().store.endMonth(accountKey, newInvoice("subscription", days), endedAt + 30 * 24 * hourMs, now());
    const { invoices, card } = await books(accountKey);
    const invoice = invoices.at(-1);
    const charge = await world().store.prepareAttempt(
      invoice?.key ?? 0,
      newCharge({ amountKobo: 50_000, cardKey: card?.key ?? null }),
      now(),
    );
    if (!invoice || !charge) throw new Error("Nothing was charged");
    return { invoice, charge };
  }

  const fail = (charge: Charge, after: AfterFailure | null, given: Partial<typeof declined> = {}) =>
    world().store.failCharge(charge.reference, { ...declined, ...given }, after, now());

  const tenantNow = async (tenant: Tenant) => {
    const found = await world().store.findTenant(tenant.id);
    if (!found) throw new Error("The tenant is gone");
    return found;
  };

  return { now, unverified, books, openPage, pay, verified, charged, fail, tenantNow };
}
