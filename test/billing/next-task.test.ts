import { describe, expect, test } from "bun:test";
import { nextTask } from "../../src/billing/next-task.ts";
import { verificationLifetimeMs } from "../../src/billing/terms.ts";
import type { Books } from "../../src/store/billing.ts";
import { booksOf, cardOf, chargeOf, invoiceOf, tenantOf, verificationOf } from "../support/billing-factory.ts";

const now = 1_000_000;
const later = now + 5_000;
const task = (books: Books) => nextTask(books, "sandbox:test", now);

describe("the next task of an account", () => {
  test.each<[string, string, Books]>([
    ["a charge that was stored and not sent is sent", "send", booksOf({ charges: [chargeOf({ sentAt: null })] })],
    ["a charge that is due is looked up", "look_up", booksOf({ charges: [chargeOf({ lookUpAt: now })] })],
    [
      "a page that was left behind is still looked up",
      "look_up",
      booksOf({ charges: [chargeOf({ kind: "verification", state: "superseded", lookUpAt: now })] }),
    ],
    [
      "money that came too late goes back",
      "refund",
      booksOf({ charges: [chargeOf({ state: "superseded", refund: "due", refundAt: now })] }),
    ],
    ["a replaced card is forgotten", "forget_card", booksOf({ cardsToForget: [cardOf({ key: 2, forgetAt: now })] })],
    ["a month's end is invoiced", "end_month", booksOf({ account: { nextInvoiceAt: now } })],
    ["an invoice is charged", "attempt", booksOf({ invoices: [invoiceOf({ nextAttemptAt: now })] })],
    [
      "a verification is given up after 30 days",
      "give_up",
      booksOf({ verification: verificationOf({ createdAt: now - verificationLifetimeMs }) }),
    ],
    [
      "an account that was never verified and has no verification any more is removed",
      "remove_tenant",
      booksOf({ tenant: tenantOf({ enforcedTier: null }), account: { verifiedAt: null } }),
    ],
    [
      "an upgrade whose request died before it was sent is dropped",
      "drop",
      booksOf({ charges: [chargeOf({ kind: "upgrade", sentAt: null, createdAt: now - 3_600_000 })] }),
    ],
    [
      "a month's charge of an account that was deleted meanwhile is not sent",
      "drop",
      booksOf({ tenant: null, account: { state: "closing", tenantKey: null }, charges: [chargeOf({ sentAt: null })] }),
    ],
    [
      "a deleted account settles up",
      "settle_up",
      booksOf({ tenant: null, account: { state: "closing", tenantKey: null, nextInvoiceAt: now } }),
    ],
    [
      "then its card is forgotten",
      "forget_card",
      booksOf({ tenant: null, account: { state: "closing", tenantKey: null } }),
    ],
    [
      "then its books are closed",
      "close_books",
      booksOf({ tenant: null, card: null, account: { state: "closing", tenantKey: null } }),
    ],
  ])("%s", (_, kind, books) => {
    expect(task(books).kind).toBe(kind as "wait");
  });
});

describe("an account rests", () => {
  test.each<[string, number | null, Books]>([
    ["when there is nothing to do", null, booksOf()],
    ["until its month's end", later, booksOf({ account: { nextInvoiceAt: later } })],
    ["until its next look-up", later, booksOf({ charges: [chargeOf({ lookUpAt: later })] })],
    [
      "rather than give up an address on which the bank waits for a confirmation",
      later,
      booksOf({
        verification: verificationOf({ createdAt: now - verificationLifetimeMs, chargeKey: 1 }),
        charges: [chargeOf({ pageUrl: "https://bank.example", lookUpAt: later })],
      }),
    ],
    [
      "rather than charge an invoice beside an open charge of it",
      null,
      booksOf({ invoices: [invoiceOf({ nextAttemptAt: now })], charges: [chargeOf({ lookUpAt: null })] }),
    ],
    [
      "also when the open charge is another processor's, which cannot be asked",
      null,
      booksOf({
        invoices: [invoiceOf({ nextAttemptAt: now })],
        charges: [chargeOf({ processor: "paystack:live", lookUpAt: now })],
      }),
    ],
    [
      "while a request for an upgrade may still be there",
      now + 60_000,
      booksOf({ charges: [chargeOf({ kind: "upgrade", sentAt: null, createdAt: now - 9 * 60_000 })] }),
    ],
    [
      "when it was deleted, until its open charge has ended",
      later,
      booksOf({
        tenant: null,
        account: { state: "closing", tenantKey: null, nextInvoiceAt: now },
        charges: [chargeOf({ lookUpAt: later })],
      }),
    ],
    [
      "when it is closed, but for money that may come",
      later,
      booksOf({
        tenant: null,
        card: null,
        account: { state: "closed", tenantKey: null },
        charges: [chargeOf({ state: "superseded", lookUpAt: later })],
      }),
    ],
  ])("%s", (_, until, books) => {
    expect(task(books)).toEqual({ kind: "wait", until });
  });
});

test("what may have happened is found out before anything new is begun", () => {
  const books = booksOf({
    account: { nextInvoiceAt: now },
    invoices: [invoiceOf({ key: 2, nextAttemptAt: now })],
    charges: [chargeOf({ lookUpAt: now })],
  });
  expect(task(books).kind).toBe("look_up");
});
