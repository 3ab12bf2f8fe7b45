import { describe, expect, test } from "bun:test";
import { readTransaction } from "../../../src/billing/paystack/transaction.ts";

const reference = "ver-7f3k";

const authorization = {
  authorization_code: "AUTH_uh8bcl3zbn",
  bin: "408408",
  last4: "4081",
  exp_month: "12",
  exp_year: "2030",
  channel: "card",
  card_type: "visa ",
  bank: "TEST BANK",
  country_code: "NG",
  brand: "visa",
  reusable: true,
  signature: "SIG_yEXu7dLBeqG0kU7g95Ke",
  account_name: null,
};

const paid = {
  id: 4099490251,
  domain: "test",
  status: "success",
  reference,
  amount: 10_000,
  requested_amount: 10_000,
  currency: "NGN",
  channel: "card",
  gateway_response: "Successful",
  message: null,
  metadata: "",
  authorization,
  customer: { id: 181873746, email: "ops@acme.example" },
};

const read = (changes: object = {}) => readTransaction({ ...paid, ...changes }, reference);
const cardWith = (changes: object) => read({ authorization: { ...authorization, ...changes } });

describe("a transaction that is paid", () => {
  test("has succeeded, with amounts, currency, mode, id and card", () => {
    expect(read()).toEqual({
      kind: "succeeded",
      reference,
      amountKobo: 10_000,
      requestedKobo: 10_000,
      currency: "NGN",
      mode: "test",
      transactionId: "4099490251",
      card: {
        token: "AUTH_uh8bcl3zbn",
        email: "ops@acme.example",
        signature: "SIG_yEXu7dLBeqG0kU7g95Ke",
        brand: "visa",
        last4: "4081",
        expMonth: "12",
        expYear: "2030",
      },
    });
  });

  test("is read whatever its metadata is", () => {
    for (const metadata of ["", 0, null, "{}", { purpose: "card_verification" }, [], "not json"]) {
      expect(read({ metadata })).toEqual(read());
    }
  });

  test("says the amount, the currency and the mode that Paystack says, for others to judge", () => {
    expect(read({ amount: 40_333, requested_amount: 30_050 })).toMatchObject({
      amountKobo: 40_333,
      requestedKobo: 30_050,
    });
    expect(read({ currency: "GHS", domain: "live" })).toMatchObject({ currency: "GHS", mode: "live" });
    expect(read({ requested_amount: undefined })).toMatchObject({ requestedKobo: null });
    expect(read({ amount: "10000" })).toMatchObject({ amountKobo: 10_000 });
  });

  test.each([
    ["amount", undefined],
    ["amount", 100.5],
    ["amount", -1],
    ["amount", "1e4"],
    ["currency", null],
    ["domain", "staging"],
    ["id", null],
    ["id", ""],
  ])("is not relied on with the %s %p", (field, value) => {
    expect(read({ [field]: value })).toEqual({ kind: "unknown", reason: expect.any(String) });
  });

  test("keeps an id of 64 bits as text", () => {
    expect(read({ id: "18446744073709551615" })).toMatchObject({ transactionId: "18446744073709551615" });
  });
});

describe("a card", () => {
  test.each([
    ["is not reusable", { reusable: false }],
    ["says that it is reusable in other words than true", { reusable: "true" }],
    ["does not say whether it is reusable", { reusable: undefined }],
    ["has no code", { authorization_code: null }],
    ["has an empty code", { authorization_code: " " }],
    ["is a bank account", { channel: "bank" }],
    ["has no last digits", { last4: "81" }],
    ["has no month", { exp_month: null }],
    ["has no year", { exp_year: "soon" }],
  ])("that %s is none", (_, changes) => {
    expect(cardWith(changes)).toMatchObject({ kind: "succeeded", card: null });
  });

  test.each([
    ["no authorization", { authorization: {} }],
    ["another thing for an authorization", { authorization: [authorization] }],
    ["no customer", { customer: null }],
    ["no e-mail address", { customer: { email: "" } }],
    ["another channel", { channel: "bank_transfer" }],
  ])("cannot be read from %s", (_, changes) => {
    expect(read(changes)).toMatchObject({ kind: "succeeded", card: null });
  });

  test("may come without a channel and without a signature", () => {
    expect(cardWith({ channel: undefined, signature: null })).toMatchObject({ card: { signature: null } });
  });

  test("has its brand from its type when there is none, without the space at its end", () => {
    expect(cardWith({ brand: null })).toMatchObject({ card: { brand: "visa" } });
    expect(cardWith({ brand: null, card_type: null })).toMatchObject({ card: { brand: "card" } });
  });

  test("has a month of two digits", () => {
    expect(cardWith({ exp_month: "4" })).toMatchObject({ card: { expMonth: "04" } });
    expect(cardWith({ exp_month: 4, exp_year: 2031 })).toMatchObject({ card: { expMonth: "04", expYear: "2031" } });
  });
});

describe("a transaction that is not paid", () => {
  test.each(["abandoned", "ongoing", "pending", "processing", "queued", "send_otp", "a word of tomorrow"])(
    "is pending while it is %s",
    (status) => {
      expect(read({ status })).toEqual({ kind: "pending", word: status });
    },
  );

  test("is reversed when it was paid back", () => {
    expect(read({ status: "reversed" })).toEqual({ kind: "reversed" });
  });

  test.each([
    ["Expired Card", "new_card"],
    ["Pickup card (lost/stolen card)", "new_card"],
    ["Transaction not permitted to cardholder", "new_card"],
    ["Restricted card", "new_card"],
    ["Insufficient Funds", "later"],
    ["Do not honor", "later"],
    ["Declined", "later"],
    ["Issuer or switch inoperative", "later"],
    ["Timeout", "later"],
    ["Denied by fraud system", "later"],
    ["Something that nobody has heard of", "later"],
  ] as const)("has failed with %p, for %s", (text, retry) => {
    expect(read({ status: "failed", gateway_response: text })).toEqual({ kind: "failed", reason: text, retry });
  });

  test("has failed for a reason even when none is given", () => {
    const failed = { status: "failed", gateway_response: null };
    expect(read({ ...failed, message: "Expired card" })).toMatchObject({ reason: "Expired card", retry: "new_card" });
    expect(read(failed)).toEqual({ kind: "failed", reason: "Declined", retry: "later" });
  });
});

describe("a challenge", () => {
  const url = "https://checkout.paystack.com/resume/0744ub5o065nwyz";
  const challenge = { reference, paused: true, access_code: "0744ub5o065nwyz", authorization_url: url };

  test("is a page for the customer", () => {
    expect(readTransaction(challenge, reference)).toEqual({ kind: "confirmation", url });
  });

  test.each([undefined, "", "/resume/1", "javascript:alert(1)", 7])(
    "is pending without a page, as in %p",
    (address) => {
      expect(readTransaction({ ...challenge, authorization_url: address }, reference)).toEqual({
        kind: "pending",
        word: "paused",
      });
    },
  );

  test("is none when it is not paused", () => {
    expect(readTransaction({ ...challenge, paused: false }, reference)).toMatchObject({ kind: "unknown" });
  });
});

test("nothing is concluded from what is no transaction", () => {
  for (const data of [null, undefined, "success", 1, [], {}, { status: "success" }, { reference }]) {
    expect(readTransaction(data, reference)).toMatchObject({ kind: "unknown" });
  }
});

test("nothing is concluded from another transaction", () => {
  expect(readTransaction({ ...paid, reference: "ver-7f3K" }, reference)).toMatchObject({ kind: "unknown" });
});
