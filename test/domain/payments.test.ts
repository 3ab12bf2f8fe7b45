import { describe, expect, test } from "bun:test";
import type { Charge, NewCard } from "../../src/domain/books.ts";
import type { BooksChange, OpenBooks, OrderedLogin } from "../../src/domain/books-change.ts";
import { payCharge, payVerification } from "../../src/domain/payments.ts";
import type { Tenant } from "../../src/domain/tenant.ts";
import { chargeOf, newCardOf, tenantOf, verificationOf } from "../support/billing-factory.ts";
import { openBooks, openInvoice } from "../support/open-books.ts";

const now = 10_000;
const hourMs = 3_600_000;
const transactionId = "T7";

const newCard = newCardOf();
const sameCard = newCardOf({ signature: "SIG" });

const goesBack = { refund: "due", refundAt: now, lookUpAt: null } as const;
const succeeded = { state: "succeeded", settledAt: now, transactionId, lookUpAt: null, reason: null } as const;
const forgotten = { ...newCard, forgetAt: now, savedAt: now };

/** A page, and the verification whose address leads to it. */
const page = chargeOf({ key: 9, kind: "verification", invoiceKey: null, cardKey: null, amountKobo: 10_000 });
const atPage = verificationOf({ key: 3, chargeKey: page.key });

const verified = (given: Parameters<typeof openBooks>[0] = {}, card = newCard, charge: Charge = page) =>
  payVerification(
    openBooks({ verification: atPage, charges: [page], ...given }),
    charge,
    { card, transactionId, nextInvoiceAt: 77_000 },
    now,
  );

describe("a hosted page that was paid (rules, section 12)", () => {
  test.each<[string, Partial<Charge>]>([
    ["it had succeeded", { state: "succeeded" }],
    ["it goes back already", { state: "superseded", refund: "due" }],
    ["it was paid back", { state: "failed", refund: "done" }],
  ])("changes nothing when %s", (_, charge) => {
    expect(verified({}, newCard, { ...page, ...charge })).toEqual({ kind: "known", change: null });
  });

  test.each<[string, Partial<Charge>, Partial<OpenBooks>]>([
    ["it was left behind", { state: "superseded" }, {}],
    ["it was given up", { state: "failed" }, {}],
    ["the address leads to another page by now", {}, { verification: verificationOf({ chargeKey: 8 }) }],
    ["no verification is open", {}, { verification: null }],
    ["the account was deleted", {}, { tenant: null }],
  ])("goes back, and its card is forgotten, when %s", (_, charge, given) => {
    const change = { charges: [{ key: page.key, ...goesBack, transactionId }], addsCard: forgotten };
    expect(verified(given, newCard, { ...page, ...charge })).toEqual({ kind: "refund_due", change });
  });

  test("for the first time is kept, and begins what is charged", () => {
    const given = {
      account: { verifiedAt: null, nextInvoiceAt: null },
      tenant: tenantOf({ enforcedTier: null }),
      card: null,
      period: null,
    };
    expect(verified(given)).toEqual({
      kind: "applied",
      change: {
        account: { creditKobo: 5_000, cardKey: "added", verifiedAt: now, nextInvoiceAt: 77_000 },
        tenant: { enforcedTier: "pro" },
        verification: { key: 3, state: "succeeded" },
        charges: [{ key: page.key, ...succeeded, cardKey: "added" }],
        invoices: [],
        freesDaysOf: [],
        addsCard: { ...newCard, forgetAt: null, savedAt: now },
        period: { ends: null, starts: "pro", at: now },
      },
    });
  });

  test("for the second time goes back, and changes neither the day nor the month's end", () => {
    expect(verified().change).toMatchObject({
      account: { verifiedAt: 0, nextInvoiceAt: 90_000 },
      charges: [{ key: page.key, ...succeeded, ...goesBack }],
    });
  });

  test.each<[string, NewCard, Partial<OpenBooks>, Partial<BooksChange>, number | "added"]>([
    [
      "another card takes the place of the earlier one, which is forgotten",
      newCard,
      {},
      { cards: [{ key: 1, forgetAt: now }], addsCard: { ...newCard, forgetAt: null, savedAt: now } },
      "added",
    ],
    [
      "the same card keeps its row, takes the newer token and is asked again",
      sameCard,
      {},
      { cards: [{ key: 1, sealed: newCard.sealed, savedAt: now, expMonth: "01", expYear: "2031", refused: false }] },
      1,
    ],
    [
      "a card without a signature is never the same",
      { ...newCard, signature: null },
      { card: { key: 1, processor: "sandbox:test", signature: null } },
      { cards: [{ key: 1, forgetAt: now }] },
      "added",
    ],
    [
      "a card at another processor is another one",
      sameCard,
      { card: { key: 1, processor: "paystack:live", signature: "SIG" } },
      { cards: [{ key: 1, forgetAt: now }] },
      "added",
    ],
  ])("%s", (_, card, given, changed, cardKey) => {
    const { change } = verified(given, card);
    expect(change).toMatchObject({ ...changed, account: { cardKey }, charges: [{ key: page.key, cardKey }] });
    if (cardKey !== "added") expect(change).not.toHaveProperty("addsCard");
  });

  test.each<[string, Partial<Tenant>, Partial<BooksChange>]>([
    ["the plan in force stays", {}, {}],
    [
      "the plan to come is in force",
      { tier: "business" },
      { tenant: { enforcedTier: "business" }, period: { ends: 1, starts: "business", at: now } },
    ],
    ["a suspended account begins no plan", { paymentSuspendedAt: 5 }, { period: { ends: 1, starts: null, at: now } }],
  ])("%s", (_, tenant, changed) => {
    const change: BooksChange = verified({ tenant: tenantOf(tenant) }).change ?? {};
    expect({ tenant: change.tenant, period: change.period }).toEqual({
      tenant: undefined,
      period: undefined,
      ...changed,
    });
  });

  test("takes the place of what a bank wanted to have confirmed, and pays at once what is owed", () => {
    const upgrade = chargeOf({
      key: 5,
      kind: "upgrade",
      invoiceKey: 5,
      pageUrl: "https://bank.example/5",
      lookUpAt: 40,
    });
    const month = chargeOf({ key: 6, invoiceKey: 6, pageUrl: "https://bank.example/6" });
    const underWay = chargeOf({ key: 7, kind: "upgrade", invoiceKey: 7 });
    const invoices = [
      openInvoice({ key: 5, kind: "upgrade", creditUsedKobo: 300 }),
      openInvoice({ key: 6, creditUsedKobo: 20 }),
      openInvoice({ key: 7, kind: "upgrade", creditUsedKobo: 1 }),
    ];
    const left = { state: "superseded", settledAt: now } as const;
    expect(verified({ charges: [upgrade, month, underWay, page], invoices }).change).toMatchObject({
      account: { creditKobo: 5_300 },
      charges: [
        { key: page.key, state: "succeeded" },
        { key: 5, ...left, lookUpAt: 40 },
        { key: 6, ...left, lookUpAt: now + hourMs },
      ],
      invoices: [
        { key: 5, state: "void", nextAttemptAt: null, login: null },
        { key: 6, nextAttemptAt: now },
      ],
      freesDaysOf: [5],
    });
  });
});

const monthly = chargeOf({ key: 2, invoiceKey: 4, amountKobo: 50_000 });
const ofMonth = openInvoice({ key: 4 });
const upgrade = chargeOf({ key: 2, kind: "upgrade", invoiceKey: 4, amountKobo: 50_000 });
const login: OrderedLogin = { email: "Ada@Example.com", passwordHash: "new hash", isTaken: false };
const ofUpgrade = openInvoice({ key: 4, kind: "upgrade", targetTier: "business" });
/** A bank waits for its customer, and the address of a verification leads there. */
const atBank = verificationOf({ key: 3, chargeKey: 2 });

const charged = (
  given: Parameters<typeof openBooks>[0] = {},
  charge: Charge = monthly,
  payment: { amountKobo?: number } = {},
) =>
  payCharge(
    openBooks({ charges: [charge], invoices: [ofMonth], ...given }),
    charge,
    { transactionId, ...payment },
    now,
  );

describe("a charge of a saved card that was paid", () => {
  test("pays its invoice", () => {
    expect(charged()).toEqual({
      kind: "applied",
      change: {
        charges: [{ key: 2, ...succeeded, amountKobo: 50_000 }],
        invoices: [{ key: 4, state: "paid", paidAt: now, nextAttemptAt: null, login: null }],
        tenant: {},
      },
    });
  });

  test.each<[string, Partial<Charge>]>([
    ["it had succeeded", { state: "succeeded" }],
    ["it goes back already", { state: "failed", refund: "requested" }],
  ])("changes nothing when %s", (_, charge) => {
    expect(charged({}, { ...monthly, ...charge })).toEqual({ kind: "known", change: null });
  });

  test.each<[string, Partial<Charge>, Partial<OpenBooks>]>([
    ["its invoice is paid or void", {}, { invoices: [] }],
    ["it has none", { invoiceKey: null }, {}],
    ["it was left behind", { state: "superseded" }, { charges: [] }],
    ["another charge of its month is open", { state: "failed" }, { charges: [chargeOf({ key: 8, invoiceKey: 4 })] }],
    ["it is of an upgrade that was given up", { state: "failed", kind: "upgrade" }, { charges: [] }],
    ["it is the last one of an account, and was given up", { state: "failed", kind: "closing" }, { charges: [] }],
  ])("goes back when %s", (_, charge, given) => {
    const change = { charges: [{ key: 2, ...goesBack, transactionId }] };
    expect(charged(given, { ...monthly, ...charge })).toEqual({ kind: "refund_due", change });
  });

  test("pays its days after all when its month was given up and nothing else pays them", () => {
    expect(charged({ charges: [] }, { ...monthly, state: "failed" })).toMatchObject({
      kind: "applied",
      change: { invoices: [{ key: 4, state: "paid" }] },
    });
  });

  test.each<[string, { amountKobo?: number; creditUsedKobo?: number }, object, number | undefined]>([
    ["as much as its invoice", { amountKobo: 50_000 }, {}, undefined],
    ["as much as its invoice, with credit", { amountKobo: 49_000, creditUsedKobo: 1_000 }, {}, undefined],
    ["more: the rest is credited", { amountKobo: 70_000 }, {}, 25_000],
    ["more, with credit", { amountKobo: 50_000, creditUsedKobo: 1_000 }, {}, 6_000],
    ["less: nobody owes the rest", { amountKobo: 30_000 }, { totalKobo: 30_000, amountKobo: 30_000 }, undefined],
    [
      "less, with credit",
      { amountKobo: 30_000, creditUsedKobo: 1_000 },
      { totalKobo: 31_000, amountKobo: 30_000 },
      undefined,
    ],
  ])("over %s", (_, { creditUsedKobo = 0, ...payment }, lowered, creditKobo) => {
    const { change } = charged({ invoices: [{ ...ofMonth, creditUsedKobo }] }, monthly, payment);
    const paid = { key: 4, state: "paid", paidAt: now, nextAttemptAt: null, login: null };
    expect<unknown>(change?.invoices?.[0]).toEqual({ ...paid, ...lowered });
    expect<unknown>(change?.account?.creditKobo).toBe(creditKobo);
  });

  test.each<[string, Partial<Tenant>, Partial<OpenBooks>, Partial<BooksChange>]>([
    [
      "restores an account that was past due",
      { pastDueAt: 5 },
      {},
      { tenant: { pastDueAt: null, paymentSuspendedAt: null } },
    ],
    [
      "restores a suspended one, whose plan counts again",
      { pastDueAt: 5, paymentSuspendedAt: 6 },
      { period: null },
      {
        tenant: { pastDueAt: null, paymentSuspendedAt: null },
        period: { ends: null, starts: "pro", at: now },
      },
    ],
    [
      "does not while another one is outstanding",
      { pastDueAt: 5 },
      { invoices: [ofMonth, openInvoice({ key: 5, firstFailedAt: 5 })] },
      { tenant: {} },
    ],
    [
      "does while another one has not failed",
      { pastDueAt: 5 },
      { invoices: [ofMonth, openInvoice({ key: 5 })] },
      { tenant: { pastDueAt: null, paymentSuspendedAt: null } },
    ],
    [
      "leaves an account suspended that its operator has suspended",
      { pastDueAt: 5, operatorSuspendedAt: 6 },
      { period: null },
      { tenant: { pastDueAt: null, paymentSuspendedAt: null } },
    ],
  ])("%s", (_, tenant, given, changed) => {
    const { change } = charged({ tenant: tenantOf(tenant), ...given });
    expect<unknown>({ tenant: change?.tenant, ...(change?.period && { period: change.period }) }).toEqual(changed);
  });

  const debt = { tier: "enterprise", enforcedTier: "enterprise", pastDueAt: 5 } as const;
  const elsewhere = chargeOf({ key: 6, pageUrl: "https://bank.example/6" });

  test.each<[string, Partial<Tenant>, Partial<OpenBooks>, object | undefined]>([
    ["closes a verification", debt, { verification: verificationOf({ key: 3 }) }, { key: 3, state: "given_up" }],
    [
      "closes one that has a page",
      debt,
      { verification: atPage, charges: [monthly, page] },
      { key: 3, state: "given_up" },
    ],
    [
      "closes one on free",
      { ...debt, tier: "free", enforcedTier: "free" },
      { verification: atPage },
      { key: 3, state: "given_up" },
    ],
    ["leaves one open whose plan is paid by card", { pastDueAt: 5 }, { verification: atPage }, undefined],
    [
      "leaves one open while another charge is outstanding",
      debt,
      { verification: atPage, invoices: [ofMonth, openInvoice({ key: 5, firstFailedAt: 5 })] },
      undefined,
    ],
    [
      "leaves one open whose address leads to a bank",
      debt,
      { verification: verificationOf({ key: 3, chargeKey: 6 }), charges: [monthly, elsewhere] },
      undefined,
    ],
    [
      "ends one whose address led to its own bank",
      debt,
      { verification: atBank },
      { key: 3, chargeKey: null, state: "succeeded" },
    ],
  ])("and leaves nothing else to pay by card: %s", (_, tenant, given, verification) => {
    expect<unknown>(charged({ tenant: tenantOf(tenant), ...given }).change?.verification).toEqual(verification);
  });

  test("and leaves nothing else to pay by card: a page that is left behind is watched, and what was paid too much is credited", () => {
    const given = { tenant: tenantOf(debt), verification: atPage, charges: [monthly, page] };
    expect(charged(given, monthly, { amountKobo: 60_000 }).change).toMatchObject({
      account: { creditKobo: 15_000 },
      charges: [
        { key: 2, state: "succeeded" },
        { key: page.key, state: "superseded", lookUpAt: now + hourMs },
      ],
      invoices: [{ key: 4, state: "paid" }],
      tenant: { pastDueAt: null, paymentSuspendedAt: null },
    });
  });

  test("of a deleted account pays its last invoice and nothing else", () => {
    const closing = chargeOf({ key: 2, kind: "closing", invoiceKey: 4, amountKobo: 50_000 });
    const { change } = charged({ tenant: null, period: null }, closing);
    expect(Object.keys(change ?? {}).sort()).toEqual(["charges", "invoices"]);
  });
});

describe("an upgrade that was paid", () => {
  const upgraded = (tenant: Partial<Tenant>, given: Parameters<typeof openBooks>[0] = {}) =>
    charged({ tenant: tenantOf(tenant), invoices: [ofUpgrade], ...given }, upgrade).change;

  test("is in force, and its plan counts from now on", () => {
    expect(upgraded({})).toMatchObject({
      tenant: { tier: "business", enforcedTier: "business" },
      period: { ends: 1, starts: "business", at: now },
    });
  });

  test.each<[string, Partial<Tenant>, Partial<OpenBooks>, object]>([
    ["of an account that names it already", { tier: "business" }, {}, { enforcedTier: "business" }],
    ["of one whose operator gave it more", { tier: "enterprise", enforcedTier: "enterprise" }, {}, {}],
    ["that a later one has overtaken, is what was paid for", { tier: "enterprise" }, {}, { enforcedTier: "business" }],
    [
      "that had to be confirmed, and that a later one has overtaken, is the later one",
      { tier: "enterprise" },
      { verification: atBank },
      { enforcedTier: "enterprise" },
    ],
    [
      "brings its login",
      {},
      { invoices: [{ ...ofUpgrade, login }] },
      {
        tier: "business",
        enforcedTier: "business",
        email: "Ada@Example.com",
        loginEmail: "ada@example.com",
        passwordHash: "new hash",
      },
    ],
    [
      "leaves the password alone that ended the order of a login",
      {},
      { invoices: [{ ...ofUpgrade, login: { ...login, passwordHash: null } }] },
      {
        tier: "business",
        enforcedTier: "business",
        email: "Ada@Example.com",
        loginEmail: "ada@example.com",
      },
    ],
    [
      "brings a contact only when somebody has taken the address meanwhile",
      {},
      { invoices: [{ ...ofUpgrade, login: { ...login, isTaken: true } }] },
      {
        tier: "business",
        enforcedTier: "business",
        email: "Ada@Example.com",
        loginEmail: null,
        passwordHash: "new hash",
      },
    ],
  ])("%s", (_, tenant, given, changed) => {
    expect(upgraded(tenant, given)?.tenant).toEqual(changed);
  });

  test.each<[string, Partial<Tenant>, Charge[], object]>([
    ["is over", {}, [], { key: 3, chargeKey: null, state: "succeeded" }],
    [
      "is over when the plan was still to come",
      { tier: "business" },
      [],
      { key: 3, chargeKey: null, state: "succeeded" },
    ],
    [
      "leads to the next charge that is to be confirmed",
      {},
      [chargeOf({ key: 6, pageUrl: "https://bank.example/6" })],
      { key: 3, chargeKey: 6 },
    ],
    [
      "passes one over that nobody has to confirm",
      {},
      [chargeOf({ key: 6 })],
      { key: 3, chargeKey: null, state: "succeeded" },
    ],
  ])("at the bank: the address %s", (_, tenant, others, verification) => {
    expect<unknown>(upgraded(tenant, { verification: atBank, charges: [upgrade, ...others] })?.verification).toEqual(
      verification,
    );
  });

  test("leaves an address alone that leads elsewhere", () => {
    expect(upgraded({}, { verification: verificationOf({ chargeKey: 8 }) })).not.toHaveProperty("verification");
  });

  test("at the bank: a month's charge of an account whose plan is still to come leaves its address open", () => {
    const given = { tenant: tenantOf({ tier: "business" }), verification: atBank };
    expect(charged(given).change?.verification).toEqual({ key: 3, chargeKey: null });
  });
});
