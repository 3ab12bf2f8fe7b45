import { describe, expect, test } from "bun:test";
import type { ChargeableCard, ChargeState } from "../../src/billing/processor.ts";
import { judgePayment } from "../../src/billing/verdict.ts";
import { chargeOf } from "../support/billing-factory.ts";

const live = { mode: "live" } as const;
const card: ChargeableCard = {
  token: "AUTH_x",
  email: "ada@example.com",
  signature: "SIG_x",
  brand: "visa",
  last4: "4081",
  expMonth: "12",
  expYear: "2030",
};
const paid = {
  kind: "succeeded",
  reference: "ver-1",
  amountKobo: 10_000,
  requestedKobo: 10_000,
  currency: "NGN",
  mode: "live",
  transactionId: "7",
  card,
} as const satisfies ChargeState;

const page = chargeOf({ kind: "verification", reference: "ver-1", amountKobo: 10_000 });
const subscription = chargeOf({ kind: "subscription", reference: "ver-1", amountKobo: 10_000 });

describe("a payment counts", () => {
  test.each([
    ["as it was asked for", paid],
    ["when fees were added to it", { ...paid, amountKobo: 10_150 }],
    ["when the processor does not repeat what was asked", { ...paid, requestedKobo: null }],
  ])("%s", (_, state) => {
    expect(judgePayment(page, state, live)).toEqual({
      kind: "paid",
      transactionId: "7",
      amountKobo: 10_000,
      card,
    });
  });

  test("of a saved card also without a card in the answer", () => {
    expect(judgePayment(subscription, { ...paid, card: null }, live).kind).toBe("paid");
  });
});

describe("a payment that was made before the books were put back to a backup", () => {
  const unsent = chargeOf({ kind: "subscription", reference: "ver-1", amountKobo: 10_000, sentAt: null });

  test.each([
    ["less", 7_000],
    ["more", 12_000],
  ])("counts for what it was, also when that is %s than it would be now", (_, amountKobo) => {
    const state = { ...paid, amountKobo, requestedKobo: amountKobo };
    expect(judgePayment(unsent, state, live)).toMatchObject({ kind: "paid", amountKobo });
  });

  test.each([
    ["in another currency", { ...paid, currency: "GHS" }],
    ["in test mode, to a live key", { ...paid, mode: "test" as const }],
  ])("goes back %s all the same", (_, state) => {
    expect(judgePayment(unsent, state, live).kind).toBe("unacceptable");
  });
});

describe("a payment goes back", () => {
  test.each([
    ["of a card that cannot be charged again", { ...paid, card: null }],
    ["in another currency", { ...paid, currency: "GHS" }],
    ["over a lower amount", { ...paid, amountKobo: 9_999 }],
    ["that was asked over another amount", { ...paid, requestedKobo: 5_000 }],
    ["under another reference", { ...paid, reference: "ver-2" }],
    ["in test mode, to a live key", { ...paid, mode: "test" as const }],
  ])("%s", (_, state) => {
    expect(judgePayment(page, state, live).kind).toBe("unacceptable");
  });
});

describe("what else a processor says", () => {
  test.each([
    ["a decline on a hosted page leaves it open: another card may pay", page, "failed", "waiting"],
    ["a decline of a saved card is final", subscription, "failed", "failed"],
    ["a payment that was reversed before we knew of it is no payment", page, "reversed", "failed"],
    ["a reversed charge is none either", subscription, "reversed", "failed"],
    ["a word that means nothing yet", page, "pending", "waiting"],
    ["a confirmation that the bank wants", subscription, "confirmation", "confirmation"],
    ["a reference that it does not know", subscription, "not_found", "not_found"],
  ] as const)("%s", (_, charge, said, verdict) => {
    const states: Record<typeof said, ChargeState> = {
      failed: { kind: "failed", reason: "Declined", retry: "later" },
      reversed: { kind: "reversed" },
      pending: { kind: "pending", word: "ongoing" },
      confirmation: { kind: "confirmation", url: "https://bank.example" },
      not_found: { kind: "not_found" },
    };
    expect(judgePayment(charge, states[said], live).kind).toBe(verdict);
  });

  test("a card that will never do is known as such", () => {
    const state = { kind: "failed", reason: "Expired card", retry: "new_card" } as const;
    expect(judgePayment(subscription, state, live)).toEqual({
      kind: "failed",
      reason: "Expired card",
      cardRefused: true,
    });
  });
});
