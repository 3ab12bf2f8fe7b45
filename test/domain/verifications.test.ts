import { describe, expect, test } from "bun:test";
import type { Charge } from "../../src/domain/books.ts";
import type { BooksChange } from "../../src/domain/books-change.ts";
import type { Tenant, Tier } from "../../src/domain/tenant.ts";
import {
  closeVerification,
  confirmCharge,
  dropPage,
  giveUpVerification,
  openPage,
  openVerification,
  refusalOfVerification,
  takeTier,
  type Upgrade,
} from "../../src/domain/verifications.ts";
import { chargeOf, tenantOf, verificationOf } from "../support/billing-factory.ts";
import { openBooks, openInvoice } from "../support/open-books.ts";

const now = 10_000;
const login = { email: "Ada@Example.com", passwordHash: "new hash" };
const asLogin = { email: "Ada@Example.com", loginEmail: "ada@example.com", passwordHash: "new hash" };

test.each([
  [{ gone: false }, false, undefined],
  [{ gone: true }, false, "account_gone"],
  [{ gone: false }, true, "email_taken"],
  [{ gone: true }, true, "account_gone"],
])("of an account %j whose new address is another's: %p, a verification is refused with %p", (state, isTaken, code) => {
  expect<unknown>(refusalOfVerification({ ...state, tenant: tenantOf() }, null, isTaken)?.code).toBe(code);
});

const waiting = { tier: "pro", enforcedTier: "free", email: "ada@example.com" } as const;
test.each<[string, Partial<Tenant>, Upgrade, string | undefined]>([
  ["is free", { tier: "free", enforcedTier: "free" }, { tier: "pro", login }, undefined],
  ["waits for a lower plan", waiting, { tier: "business", login }, undefined],
  ["waits for this very upgrade", waiting, { tier: "pro", login }, undefined],
  ["waits for it without a new login", waiting, { tier: "pro", login: null }, undefined],
  [
    "waits for it with another address",
    waiting,
    { tier: "pro", login: { ...login, email: "eve@x.io" } },
    "not_an_upgrade",
  ],
  ["waits for a higher plan", { ...waiting, tier: "business" }, { tier: "pro", login }, "not_an_upgrade"],
  ["has the plan", { tier: "pro", enforcedTier: "pro" }, { tier: "pro", login: null }, "not_an_upgrade"],
  [
    "was set to a higher one",
    { tier: "enterprise", enforcedTier: "enterprise" },
    { tier: "pro", login },
    "not_an_upgrade",
  ],
  ["was suspended", { operatorSuspendedAt: 1 }, { tier: "business", login: null }, "account_suspended"],
  ["is past due", { pastDueAt: 1 }, { tier: "business", login: null }, "charge_outstanding"],
])("an upgrade of an account that %s is judged when it is written", (_, tenant, upgrade, code) => {
  expect<unknown>(refusalOfVerification({ gone: false, tenant: tenantOf(tenant) }, upgrade, false)?.code).toBe(code);
});

describe("a verification that is asked for", () => {
  const added = { addsVerification: { token: "new", createdAt: now, chargeKey: null } };
  test.each<[string, boolean, Tier, Upgrade | null, BooksChange]>([
    ["is opened", false, "pro", null, added],
    ["is the one that is open", true, "pro", null, {}],
    [
      "names the tier at once",
      false,
      "pro",
      { tier: "business", login: null },
      { ...added, tenant: { tier: "business" } },
    ],
    ["names a later tier", true, "pro", { tier: "business", login: null }, { tenant: { tier: "business" } }],
    [
      "brings the login of an account that was free",
      false,
      "free",
      { tier: "pro", login },
      { ...added, tenant: { tier: "pro", ...asLogin } },
    ],
    [
      "leaves a login that has come meanwhile",
      true,
      "pro",
      { tier: "business", login },
      { tenant: { tier: "business" } },
    ],
    ["changes nothing when it is asked for twice", true, "pro", { tier: "pro", login }, {}],
  ])("%s", (_, isOpen, tier, upgrade, change) => {
    const verification = isOpen ? verificationOf() : null;
    expect(openVerification({ verification, tenant: tenantOf({ tier }) }, "new", upgrade, now)).toEqual(change);
  });
});

const left = { state: "superseded", settledAt: now, lookUpAt: now + 3_600_000 } as const;

/** An account whose address leads to this charge. */
const leadingTo = (charge: Partial<Charge> | null, given: Parameters<typeof openBooks>[0] = {}) =>
  openBooks({
    verification: verificationOf({ key: 3, chargeKey: charge && 9 }),
    charges: charge ? [chargeOf({ key: 9, invoiceKey: 4, ...charge })] : [],
    invoices: [openInvoice({ key: 4, kind: "upgrade", creditUsedKobo: 700 })],
    ...given,
  });

const voided = {
  account: { creditKobo: 5_700 },
  invoices: [{ key: 4, state: "void", nextAttemptAt: null, login: null }],
  freesDaysOf: [4],
} as const;
const keeps = { account: { creditKobo: 5_000 }, invoices: [], freesDaysOf: [] };

describe("the page behind an address", () => {
  const newCharge = { reference: "ver-2", processor: "sandbox:test", amountKobo: 10_000, cardKey: null, lookUpAt: 5 };

  test.each<[string, Partial<Charge> | null, BooksChange]>([
    ["there is none", null, {}],
    [
      "a page is left behind, and watched",
      { kind: "verification", invoiceKey: null },
      { charges: [{ key: 9, ...left }], ...keeps },
    ],
    [
      "one that is looked up sooner keeps its time",
      { kind: "verification", invoiceKey: null, lookUpAt: 20 },
      { charges: [{ key: 9, ...left, lookUpAt: 20 }], ...keeps },
    ],
    [
      "the confirmation of an upgrade is, with its invoice",
      { kind: "upgrade" },
      { charges: [{ key: 9, ...left }], ...voided },
    ],
    ["a month's charge stays: its days are owed all the same", { kind: "subscription" }, {}],
  ])("%s", (_, charge, change) => {
    const books = leadingTo(charge);
    expect(dropPage(books, 3, now)).toEqual({ ...change, verification: { key: 3, chargeKey: null } });
    expect(openPage(books, 3, newCharge, now)).toEqual({
      ...change,
      verification: { key: 3, chargeKey: "added" },
      addsCharge: {
        ...newCharge,
        kind: "verification",
        state: "open",
        invoiceKey: null,
        createdAt: now,
        sentAt: now,
        settledAt: null,
        transactionId: null,
      },
    });
    expect(closeVerification(books, now)).toEqual({ ...change, verification: { key: 3, state: "given_up" } });
  });

  test.each([
    ["that has ended", openBooks()],
    ["that another one has followed", leadingTo(null, { verification: verificationOf({ key: 8 }) })],
  ])("of a verification %s stays as it is", (_, books) => {
    expect([dropPage(books, 3, now), openPage(books, 3, newCharge, now), giveUpVerification(books, 3, now)]).toEqual([
      null,
      null,
      null,
    ]);
  });

  test("needs no closing when there is none", () => {
    expect(closeVerification(openBooks(), now)).toEqual({});
  });
});

describe("a verification that nobody completes", () => {
  test.each<[string, Partial<Tenant>, object]>([
    ["returns to the plan in force", { tier: "business" }, { tier: "pro" }],
    ["takes the login of a free account back", { enforcedTier: "free" }, { tier: "free", loginEmail: null }],
    ["leaves a plan that is in force", {}, {}],
    ["leaves an account without a plan to be removed", { enforcedTier: null }, {}],
  ])("%s", (_, tenant, changed) => {
    expect(giveUpVerification(leadingTo(null, { tenant: tenantOf(tenant) }), 3, now)).toEqual({
      verification: { key: 3, state: "given_up" },
      tenant: changed,
    });
  });
});

describe("a tier that the operator sets", () => {
  test.each<[Tier, boolean]>([
    ["free", true],
    ["pro", false],
    ["business", false],
    ["enterprise", true],
  ])("%s leaves nothing to verify: %p", (tier, isClosed) => {
    const change = takeTier(leadingTo(null), { tier, enforcedTier: tier }, now);
    expect<unknown>(change.verification).toEqual(isClosed ? { key: 3, state: "given_up" } : undefined);
  });

  test.each<[Tier, Partial<Tenant>]>([
    ["free", { pastDueAt: 5 }],
    ["enterprise", { pastDueAt: 5, paymentSuspendedAt: 6 }],
  ])("%s leaves the card to be verified that pays what is outstanding", (tier, standing) => {
    const books = leadingTo(null, { tenant: tenantOf(standing) });
    expect(takeTier(books, { tier, enforcedTier: tier }, now)).not.toHaveProperty("verification");
  });

  test.each<[Tier, BooksChange["period"]]>([
    ["free", { ends: 1, starts: null, at: now }],
    ["pro", undefined],
    ["enterprise", { ends: 1, starts: "enterprise", at: now }],
  ])("%s counts from now on", (tier, period) => {
    expect<unknown>(takeTier(openBooks(), { tier, enforcedTier: tier }, now).period).toEqual(period);
  });
});

describe("a charge that a bank wants to have confirmed", () => {
  const page = { pageUrl: "https://bank.example/2", lookUpAt: 20_000, token: "new" };
  const charge = chargeOf({ key: 2, kind: "upgrade", invoiceKey: 4 });
  const changed = { key: 2, pageUrl: page.pageUrl, lookUpAt: 20_000 };
  const invoice = openInvoice({ key: 4, kind: "upgrade", targetTier: "business" });
  const forgets = [{ key: 4, login: null }];
  const gets = { addsVerification: { token: "new", createdAt: now, chargeKey: 2 } };
  const cardPage = chargeOf({ key: 8, kind: "verification", invoiceKey: null });

  test.each(["succeeded", "failed", "superseded"] as const)("and has %s changes nothing", (state) => {
    expect(confirmCharge(openBooks({ invoices: [invoice] }), { ...charge, state }, page, now)).toBeNull();
  });

  test.each<[string, Parameters<typeof openBooks>[0], BooksChange]>([
    [
      "gets an address, and the upgrade takes effect as far as its name",
      {},
      { ...gets, tenant: { tier: "business" }, invoices: forgets },
    ],
    [
      "gets the address that leads nowhere yet",
      { verification: verificationOf({ key: 3 }) },
      { verification: { key: 3, chargeKey: 2 }, tenant: { tier: "business" }, invoices: forgets },
    ],
    [
      "gets the address of a page for another card, which is left behind and watched",
      { verification: verificationOf({ key: 3, chargeKey: 8 }), charges: [charge, cardPage] },
      {
        ...{ ...keeps, verification: { key: 3, chargeKey: 2 }, tenant: { tier: "business" }, invoices: forgets },
        charges: [changed, { key: 8, ...left }],
      },
    ],
    [
      "waits behind a month's charge that is to be confirmed, too",
      { verification: verificationOf({ key: 3, chargeKey: 8 }), charges: [charge, chargeOf({ key: 8 })] },
      { tenant: { tier: "business" }, invoices: forgets },
    ],
    [
      "keeps its address when the bank names another page",
      { verification: verificationOf({ key: 3, chargeKey: 2 }) },
      { tenant: { tier: "business" }, invoices: forgets },
    ],
    [
      "brings the login that was ordered",
      { invoices: [{ ...invoice, login: { ...login, isTaken: false } }] },
      { ...gets, tenant: { tier: "business", ...asLogin }, invoices: forgets },
    ],
    [
      "brings a contact only when somebody has taken the address",
      { invoices: [{ ...invoice, login: { ...login, isTaken: true } }] },
      { ...gets, tenant: { tier: "business", ...asLogin, loginEmail: null }, invoices: forgets },
    ],
    ["lowers no tier", { tenant: tenantOf({ tier: "enterprise" }) }, { ...gets, tenant: {}, invoices: forgets }],
    ["changes no plan when it is a month's", { invoices: [openInvoice({ key: 4 })] }, gets],
    [
      "leaves a page alone on which a card is being given when it is a month's",
      {
        verification: verificationOf({ chargeKey: 8 }),
        charges: [charge, cardPage],
        invoices: [openInvoice({ key: 4 })],
      },
      {},
    ],
    ["of a deleted account gets none", { tenant: null }, {}],
  ])("%s", (_, given, change) => {
    const books = openBooks({ invoices: [invoice], charges: [charge], ...given });
    expect(confirmCharge(books, charge, page, now)).toEqual({ charges: [changed], ...change });
  });
});
