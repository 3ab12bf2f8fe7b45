import { describe, expect, test } from "bun:test";
import type { Charge } from "../../src/domain/books.ts";
import type { BooksChange } from "../../src/domain/books-change.ts";
import { failCharge } from "../../src/domain/payments.ts";
import type { Tenant } from "../../src/domain/tenant.ts";
import { chargeOf, newCardOf, tenantOf, verificationOf } from "../support/billing-factory.ts";
import { openBooks, openInvoice } from "../support/open-books.ts";

const now = 10_000;

const newCard = newCardOf();

const goesBack = { refund: "due", refundAt: now, lookUpAt: null } as const;
const forgotten = { ...newCard, forgetAt: now, savedAt: now };
const monthly = chargeOf({ key: 2, invoiceKey: 4, amountKobo: 50_000 });
const ofMonth = openInvoice({ key: 4 });
const upgrade = chargeOf({ key: 2, kind: "upgrade", invoiceKey: 4, amountKobo: 50_000 });
const ofUpgrade = openInvoice({ key: 4, kind: "upgrade", targetTier: "business" });
const atBank = verificationOf({ key: 3, chargeKey: 2 });

const declined = { reason: "Declined", cardRefused: false, refund: false, card: null, lookUpAt: 12_345 };
const failed = { key: 2, state: "failed", settledAt: now, reason: "Declined", lookUpAt: 12_345 } as const;
const retry = { kind: "retry", at: 88_000 } as const;

const failing = (
  given: Parameters<typeof openBooks>[0] = {},
  failure: Partial<Parameters<typeof failCharge>[2]> = {},
  after: Parameters<typeof failCharge>[3] = retry,
  charge: Charge = monthly,
) =>
  failCharge(
    openBooks({ charges: [charge], invoices: [ofMonth], ...given }),
    charge,
    { ...declined, ...failure },
    after,
    now,
  );

describe("a charge that failed", () => {
  test.each<[string, Partial<Charge>, boolean, BooksChange | null]>([
    ["had failed before", { state: "failed" }, false, null],
    ["was left behind", { state: "superseded" }, false, null],
    ["had succeeded", { state: "succeeded" }, true, null],
    ["goes back already", { state: "superseded", refund: "due" }, true, null],
    [
      "was left behind, and money moved all the same: it goes back",
      { state: "superseded" },
      true,
      { charges: [{ key: 2, ...goesBack }], addsCard: forgotten },
    ],
  ])("and %s", (_, charge, refund, change) => {
    expect(failing({}, { refund, card: newCard }, retry, { ...monthly, ...charge })).toEqual(change);
  });

  test("for the first time is tried again, and its account is past due", () => {
    expect(failing()).toEqual({
      charges: [failed],
      invoices: [{ key: 4, firstFailedAt: now, nextAttemptAt: 88_000 }],
      tenant: { pastDueAt: now },
    });
  });

  test("again is past due since the first time", () => {
    const given = { tenant: tenantOf({ pastDueAt: 5 }), invoices: [{ ...ofMonth, firstFailedAt: 5 }] };
    expect(failing(given)).toMatchObject({
      invoices: [{ firstFailedAt: 5, nextAttemptAt: 88_000 }],
      tenant: { pastDueAt: 5 },
    });
  });

  test("for the last time suspends the account, and its plan counts no more", () => {
    expect(failing({ tenant: tenantOf({ pastDueAt: 5 }) }, {}, { kind: "suspend" })).toMatchObject({
      invoices: [{ key: 4, nextAttemptAt: null }],
      tenant: { pastDueAt: 5, paymentSuspendedAt: now },
      period: { ends: 1, starts: null, at: now },
    });
  });

  test("for good frees the days of its invoice, and gives back the credit that it used", () => {
    const given = { invoices: [{ ...ofMonth, creditUsedKobo: 700 }] };
    expect(failing(given, {}, { kind: "void" })).toEqual({
      account: { creditKobo: 5_700 },
      charges: [failed],
      invoices: [{ key: 4, state: "void", nextAttemptAt: null, login: null }],
      freesDaysOf: [4],
      tenant: {},
    });
  });

  test("without an invoice, or without consequences, changes only itself", () => {
    for (const change of [failing({}, {}, null), failing({ invoices: [] })]) {
      expect(change).toEqual({ charges: [failed], tenant: {} });
    }
  });

  test("of a deleted account touches no tenant", () => {
    const change = failing({ tenant: null, period: null }, {}, { kind: "void" });
    expect(change).toMatchObject({ tenant: {}, freesDaysOf: [4] });
  });

  test.each<[string, Parameters<typeof failing>[1], Partial<BooksChange>]>([
    ["refuses its card for good", { cardRefused: true }, { cards: [{ key: 1, refused: true }] }],
    [
      "although money moved goes back, and its card is forgotten",
      { refund: true, card: newCard },
      { charges: [{ ...failed, ...goesBack }], addsCard: forgotten },
    ],
    ["keeps no card that came with it", { card: newCard }, { charges: [failed] }],
  ])("%s", (_, failure, changed) => {
    const change = failing({}, failure);
    expect(change).toMatchObject(changed);
    expect<unknown>(change?.addsCard).toEqual(changed.addsCard);
  });

  test.each<[string, Charge, Partial<Tenant>, object, object | undefined]>([
    ["at once leaves the tier as it was", upgrade, { tier: "business" }, {}, { key: 3, chargeKey: null }],
    [
      "at the bank returns to the plan in force, and closes its address",
      { ...upgrade, pageUrl: "https://bank.example/2" },
      { tier: "business" },
      { tier: "pro" },
      { key: 3, chargeKey: null, state: "given_up" },
    ],
    [
      "at the bank of an account that was free takes its login back",
      { ...upgrade, pageUrl: "https://bank.example/2" },
      { tier: "business", enforcedTier: "free" },
      { tier: "free", loginEmail: null },
      { key: 3, chargeKey: null, state: "given_up" },
    ],
  ])("as an upgrade %s", (_, charge, tenant, changed, verification) => {
    const given = { tenant: tenantOf(tenant), invoices: [ofUpgrade], verification: atBank, period: null };
    const change = failing({ account: { verifiedAt: null }, ...given }, {}, { kind: "void" }, charge);
    expect<unknown>([change?.tenant, change?.verification]).toEqual([changed, verification]);
  });

  test("at the bank leads on to the next charge that is to be confirmed", () => {
    const next = chargeOf({ key: 6, pageUrl: "https://bank.example/6" });
    const change = failing({
      verification: atBank,
      charges: [{ ...monthly, pageUrl: "https://bank.example/2" }, next],
    });
    expect(change?.verification).toEqual({ key: 3, chargeKey: 6 });
  });
});
