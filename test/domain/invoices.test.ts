import { describe, expect, test } from "bun:test";
import type { BillingAccount, NewCharge, NewInvoice } from "../../src/domain/books.ts";
import { beginAttempt, closeBooks, endMonth, leaveTenant, orderUpgrade, settleUp } from "../../src/domain/invoices.ts";
import { chargeOf, verificationOf } from "../support/billing-factory.ts";
import { openBooks, openInvoice } from "../support/open-books.ts";

const now = 10_000;
const charge: NewCharge = {
  reference: "x-a1",
  processor: "sandbox:test",
  amountKobo: 49_000,
  cardKey: 1,
  lookUpAt: null,
};
const invoice = (kind: NewInvoice["kind"]): NewInvoice => ({
  id: "x",
  kind,
  lines: [],
  days: [{ day: 20_500, tier: "pro" }],
  totalKobo: 50_000,
  creditUsedKobo: 1_000,
  amountKobo: 49_000,
});
const stored = { createdAt: now, targetTier: null, login: null };
const open = { state: "open", createdAt: now, sentAt: null, settledAt: null, transactionId: null } as const;
const voided = { state: "void", nextAttemptAt: null, login: null } as const;

describe("an upgrade that is about to be charged", () => {
  const order = { invoice: invoice("upgrade"), charge, tier: "business", login: null } as const;

  test("is stored with its charge, and uses up credit", () => {
    const login = { email: "ada@example.com", passwordHash: "hash" };
    expect(orderUpgrade(openBooks(), { ...order, login }, [], now)).toEqual({
      account: { creditKobo: 4_000 },
      addsInvoice: { ...order.invoice, ...stored, attempts: 1, nextAttemptAt: null, targetTier: "business", login },
      addsCharge: { ...charge, ...open, kind: "upgrade", invoiceKey: "added" },
    });
  });

  test.each<[string, boolean, Parameters<typeof openBooks>[0]]>([
    ["another upgrade is being charged", false, { charges: [chargeOf({ kind: "upgrade" })] }],
    ["a month's end is", true, { charges: [chargeOf()] }],
    ["a card is being verified", true, { charges: [chargeOf({ kind: "verification" })] }],
    ["the account is being deleted", false, { account: { state: "closing" } }],
    ["its books are closed", false, { account: { state: "closed" } }],
  ])("is stored while %s: %p", (_, isStored, given) => {
    expect(orderUpgrade(openBooks(given), order, [], now) !== null).toBe(isStored);
  });

  test("is not when a day of it has been invoiced since it was drawn up", () => {
    expect(orderUpgrade(openBooks(), order, [7], now)).toBeNull();
  });
});

describe("a month's end", () => {
  test("is invoiced, charged as soon as may be, and followed by the next one", () => {
    expect(endMonth(openBooks(), invoice("subscription"), [], 99_000, now)).toEqual({
      account: { nextInvoiceAt: 99_000, creditKobo: 4_000 },
      addsInvoice: { ...invoice("subscription"), ...stored, attempts: 0, nextAttemptAt: now },
    });
  });

  test("with too little to charge waits for the next one", () => {
    expect(endMonth(openBooks(), null, [], 99_000, now)).toEqual({ account: { nextInvoiceAt: 99_000 } });
  });

  test("that was dealt with is not dealt with again", () => {
    const books = openBooks({ account: { nextInvoiceAt: 99_000 } });
    expect(endMonth(books, invoice("subscription"), [], 99_000, now)).toBeNull();
    expect(endMonth(books, null, [], 98_000, now)).toBeNull();
    expect(endMonth(books, null, [], 99_001, now)).toEqual({ account: { nextInvoiceAt: 99_001 } });
  });

  test("is not invoiced as long as a day of it has been invoiced since it was drawn up", () => {
    expect(endMonth(openBooks(), invoice("subscription"), [7], 99_000, now)).toBeNull();
  });

  test.each(["closing", "closed"] as const)("of an account that is %s is none", (state) => {
    expect(endMonth(openBooks({ account: { state } }), invoice("subscription"), [], 99_000, now)).toBeNull();
  });
});

describe("the next charge of an invoice", () => {
  test.each(["upgrade", "subscription", "closing"] as const)("of the kind %s is stored and counted", (kind) => {
    const books = openBooks({ invoices: [openInvoice({ key: 4, kind, attempts: 2 })] });
    expect(beginAttempt(books, 4, charge, now)).toEqual({
      invoices: [{ key: 4, attempts: 3, nextAttemptAt: null }],
      addsCharge: { ...charge, ...open, kind, invoiceKey: 4 },
    });
  });

  test.each<[string, Parameters<typeof openBooks>[0]]>([
    ["it is paid or void", {}],
    ["a charge of it is open", { invoices: [openInvoice({ key: 4 })], charges: [chargeOf({ invoiceKey: 4 })] }],
  ])("is none when %s", (_, given) => {
    expect(beginAttempt(openBooks(given), 4, charge, now)).toBeNull();
  });

  test("is made beside that of another invoice", () => {
    const books = openBooks({ invoices: [openInvoice({ key: 4 })], charges: [chargeOf({ invoiceKey: 5 })] });
    expect(beginAttempt(books, 4, charge, now)).not.toBeNull();
  });
});

describe("an account whose tenant was deleted", () => {
  test.each<[string, Partial<BillingAccount>, number | null]>([
    ["owes its days, and settles up at once", {}, now],
    ["owes nothing when no card was ever verified", { verifiedAt: null }, null],
  ])("%s", (_, account, nextInvoiceAt) => {
    const change = leaveTenant(openBooks({ account, period: null }), now);
    expect(change).toEqual({ account: { tenantKey: null, state: "closing", nextInvoiceAt } });
  });

  test("holds no plan any more", () => {
    expect(leaveTenant(openBooks(), now).period).toEqual({ ends: 1, starts: null, at: now });
  });

  test("leaves what was to be verified or confirmed, and has the credit of that back", () => {
    const books = openBooks({
      verification: verificationOf({ key: 3, chargeKey: 9 }),
      charges: [chargeOf({ key: 9, kind: "upgrade", invoiceKey: 4 })],
      invoices: [openInvoice({ key: 4, kind: "upgrade", creditUsedKobo: 700 })],
    });
    expect(leaveTenant(books, now)).toMatchObject({
      account: { tenantKey: null, state: "closing", nextInvoiceAt: now, creditKobo: 5_700 },
      verification: { key: 3, state: "given_up" },
      charges: [{ key: 9, state: "superseded" }],
      invoices: [{ key: 4, ...voided }],
      freesDaysOf: [4],
    });
  });

  const closing = { state: "closing", tenantKey: null, nextInvoiceAt: 5 } as const;

  test("settles up with one charge in place of all that is open", () => {
    const invoices = [openInvoice({ key: 4, creditUsedKobo: 700 }), openInvoice({ key: 5, creditUsedKobo: 30 })];
    const books = openBooks({ account: closing, invoices });
    const voids = {
      invoices: [
        { key: 4, ...voided },
        { key: 5, ...voided },
      ],
      freesDaysOf: [4, 5],
    };
    expect(settleUp(books, { invoice: invoice("closing"), charge }, [], now)).toEqual({
      ...voids,
      account: { nextInvoiceAt: null, creditKobo: 4_730 },
      addsInvoice: { ...invoice("closing"), ...stored, attempts: 1, nextAttemptAt: null },
      addsCharge: { ...charge, ...open, kind: "closing", invoiceKey: "added" },
    });
    expect(settleUp(books, null, [], now)).toEqual({ ...voids, account: { nextInvoiceAt: null, creditKobo: 5_730 } });
  });

  test("may take the days of what is open, and not those of what was paid meanwhile", () => {
    const books = openBooks({ account: closing, invoices: [openInvoice({ key: 4 })] });
    const order = { invoice: invoice("closing"), charge };
    expect(settleUp(books, order, [4], now)).not.toBeNull();
    expect(settleUp(books, order, [4, 3], now)).toBeNull();
  });

  test.each<[string, Partial<BillingAccount>]>([
    ["it is not deleted", { nextInvoiceAt: 5 }],
    ["it has settled up", { ...closing, nextInvoiceAt: null }],
    ["its books are closed", { state: "closed", nextInvoiceAt: 5 }],
  ])("does not settle up when %s", (_, account) => {
    expect(settleUp(openBooks({ account }), { invoice: invoice("closing"), charge }, [], now)).toBeNull();
  });

  test.each([
    ["active", null],
    ["closing", { state: "closed", verifiedAt: null, creditKobo: 0 }],
    ["closed", null],
  ] as const)("while %s closes its books: %j", (state, account) => {
    expect<unknown>(closeBooks(openBooks({ account: { state } }).account)).toEqual(account);
  });
});
