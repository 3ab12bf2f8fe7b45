import { describe, expect, test } from "bun:test";
import type { Charge } from "../../src/domain/books.ts";
import { adoptCharge, isSettled, keepWaiting, lookUpSoon, removeCard, sendCharge } from "../../src/domain/charges.ts";
import { chargeOf } from "../support/billing-factory.ts";
import { openBooks } from "../support/open-books.ts";

const now = 10_000;

describe("a charge", () => {
  test.each<[Partial<Charge>, boolean]>([
    [{ state: "open" }, false],
    [{ state: "failed" }, false],
    [{ state: "superseded" }, false],
    [{ state: "succeeded" }, true],
    [{ state: "succeeded", refund: "due" }, true],
    [{ state: "failed", refund: "due" }, true],
    [{ state: "superseded", refund: "requested" }, true],
    [{ state: "superseded", refund: "done" }, true],
  ])("%j has had its consequences: %p", (charge, expected) => {
    expect(isSettled(chargeOf(charge))).toBe(expected);
  });

  test.each(["succeeded", "failed", "superseded"] as const)("that has %s is not sent", (state) => {
    expect(sendCharge(chargeOf({ state }), { lookUpAt: 1, resendAt: 2 }, now)).toBeNull();
  });

  test.each([
    ["is under way for a moment more", now + 1, false],
    ["has had its time", now, true],
  ])("whose last request %s is sent again: %p", (_, resendAt, isSent) => {
    const sent = sendCharge(chargeOf({ sentAt: 1, resendAt }), { lookUpAt: 1, resendAt: 2 }, now);
    expect(sent !== null).toBe(isSent);
  });

  test("that is open is noted as sent, with the times to look it up and to send it again", () => {
    const change = { key: 1, sentAt: now, lookUpAt: 1, resendAt: 2 };
    expect(sendCharge(chargeOf(), { lookUpAt: 1, resendAt: 2 }, now)).toEqual(change);
  });

  test.each([
    ["may wait for ever", { lookUpAt: null }],
    ["keeps when it may be sent again", { lookUpAt: 5 }],
    ["may be sent again", { lookUpAt: 5, resendAt: 6 }],
    ["says why it waits", { lookUpAt: 5, reason: "Pending at the bank" }],
  ])("that was looked up counts it, and %s", (_, until) => {
    expect(keepWaiting(chargeOf({ lookUps: 3, lookUpAt: 4 }), 4, until)).toEqual({ key: 1, lookUps: 4, ...until });
  });

  test.each<
    [string, { seenAt: number | null; storedAt: number | null; until: number | null; lookUpAt: number | null }]
  >([
    ["of which there was news since, is looked up for them", { seenAt: 4, storedAt: 6, until: 9, lookUpAt: 6 }],
    ["of which there was news since, is not given up", { seenAt: 4, storedAt: 6, until: null, lookUpAt: 6 }],
    ["that had no time, and has one now, keeps it", { seenAt: null, storedAt: 6, until: 9, lookUpAt: 6 }],
    ["that another process looks up later, is looked up", { seenAt: 4, storedAt: 12, until: 9, lookUpAt: 9 }],
    ["that another process no longer looks up, is looked up", { seenAt: 4, storedAt: null, until: 9, lookUpAt: 9 }],
  ])("that was looked up, and %s", (_, { seenAt, storedAt, until, lookUpAt }) => {
    const change = keepWaiting(chargeOf({ lookUpAt: storedAt }), seenAt, { lookUpAt: until, resendAt: 7 });
    expect(change).toMatchObject({ lookUpAt, resendAt: 7 });
  });

  test.each<[string, Partial<Charge>, object]>([
    ["that is open is looked up", {}, { lookUpAt: now }],
    ["that has failed is looked up", { state: "failed" }, { lookUpAt: now }],
    ["that was left behind is looked up", { state: "superseded" }, { lookUpAt: now }],
    ["that has succeeded is not", { state: "succeeded" }, {}],
    ["that is to be paid back is not", { state: "succeeded", refund: "due" }, {}],
    ["whose refund was asked for has that looked up", { state: "succeeded", refund: "requested" }, { refundAt: now }],
    ["that was paid back is not", { state: "superseded", refund: "done" }, {}],
  ])("of which there is news, and %s", (_, charge, changed) => {
    expect(lookUpSoon(chargeOf(charge), now)).toEqual({ key: 1, ...changed });
  });
});

describe("a charge that only the processor knows of", () => {
  const found = { kind: "upgrade", reference: "upg-x-a1", processor: "sandbox:test", amountKobo: 40_000 } as const;
  const row = { ...found, cardKey: null, invoiceKey: null, createdAt: now, sentAt: null, settledAt: now };

  test("is credited when it was paid", () => {
    expect(adoptCharge(openBooks(), { ...found, transactionId: "T7" }, now)).toEqual({
      account: { creditKobo: 45_000 },
      addsCharge: { ...row, state: "succeeded", transactionId: "T7", lookUpAt: null },
    });
  });

  test("is watched for an hour at the most while it is under way, and credits nothing", () => {
    expect(adoptCharge(openBooks(), { ...found, transactionId: null }, now)).toEqual({
      addsCharge: { ...row, state: "superseded", transactionId: null, lookUpAt: now + 3_600_000 },
    });
  });
});

describe("a card that the processor has forgotten", () => {
  test.each([
    ["was in use: the account has none", 1, { removesCard: 1, account: { cardKey: null } }],
    ["was replaced: the account keeps its own", 8, { removesCard: 8 }],
  ])("and %s", (_, cardKey, change) => {
    expect(removeCard(openBooks(), cardKey)).toEqual(change);
  });
});
