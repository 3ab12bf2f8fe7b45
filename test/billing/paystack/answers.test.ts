import { describe, expect, test } from "bun:test";
import {
  readCharge,
  readDeactivation,
  readLookUp,
  readRefund,
  readVerification,
} from "../../../src/billing/paystack/answers.ts";
import type { HttpAnswer } from "../../../src/billing/paystack/http.ts";

const reference = "ver-7f3k";
const url = "https://checkout.paystack.com/3ni8kdavz62431k";
const ready = { authorization_url: url, access_code: "3ni8kdavz62431k", reference };

const answered = (status: number, body: unknown, retryAfterMs?: number): HttpAnswer => ({
  kind: "answered",
  status,
  body,
  retryAfterMs,
});
const refused = (status: number, message: string, code?: string) =>
  answered(status, { status: false, message, ...(code && { type: "validation_error", code }) });

const readers = [
  ["initialize", (answer: HttpAnswer) => readVerification(answer, reference)],
  ["verify", (answer: HttpAnswer) => readLookUp(answer, reference)],
  ["charge_authorization", (answer: HttpAnswer) => readCharge(answer, reference)],
  ["refund", readRefund],
  ["deactivate", readDeactivation],
] as const;

describe.each(readers)("an answer to %s", (_, read) => {
  test.each([
    ["a status that is text", answered(200, { status: "true", message: "Done", data: ready })],
    ["a status that is false, with HTTP 200", answered(200, { status: false, message: "No" })],
    ["no JSON", answered(200, undefined)],
    ["a list", answered(200, [])],
    ["HTTP 307", answered(307, undefined)],
    ["HTTP 403 of somebody on the way, without JSON", answered(403, undefined)],
    ["HTTP 400 that contradicts itself", answered(400, { status: true, message: "Charge attempted" })],
    [
      "a refused connection",
      { kind: "no_answer", reason: "The connection to Paystack failed", underWay: false } as const,
    ],
  ])("with %s is unknown, and no request is under way any more", (_, answer) => {
    const { underWay = false, ...rest } = Object(read(answer));
    expect(rest).toEqual({ kind: "unknown", reason: expect.stringMatching(/^(Paystack|The connection)/) });
    expect(underWay).toBe(false);
  });

  // A gateway gives up while Paystack, or its bank, goes on.
  test.each([
    ["HTTP 408", refused(408, "Request timeout")],
    ["HTTP 500", answered(500, { status: false, message: "Oops" })],
    ...[502, 503, 504, 520, 522, 524, 527].map(
      (status) => [`HTTP ${status} without JSON`, answered(status, undefined)] as const,
    ),
    ["nothing", { kind: "no_answer", reason: "The connection to Paystack failed", underWay: true } as const],
  ])("with %s is unknown, and its request may still be under way", (_, answer) => {
    expect(read(answer)).toEqual({
      kind: "unknown",
      reason: expect.stringMatching(/^(Paystack|The connection)/),
      underWay: true,
    });
  });

  test("that asks to slow down is unknown, and says for how long", () => {
    const slowDown = answered(429, { status: false, message: "Rate limit exceeded!", code: "rate_limited" }, 30_000);
    expect(read(slowDown)).toEqual({ kind: "unknown", reason: expect.any(String), retryAfterMs: 30_000 });
  });
});

describe("initialize", () => {
  const read = (answer: HttpAnswer) => readVerification(answer, reference);

  test("answers with the page", () => {
    expect(read(answered(200, { status: true, message: "Authorization URL created", data: ready }))).toEqual({
      kind: "ready",
      url,
    });
  });

  test.each([
    ["another reference", { ...ready, reference: "ver-other" }],
    ["no page", { ...ready, authorization_url: null }],
    ["a page that is no web address", { ...ready, authorization_url: "javascript:alert(1)" }],
    ["nothing", undefined],
  ])("is unknown with %s", (_, data) => {
    expect(read(answered(200, { status: true, message: "Authorization URL created", data }))).toMatchObject({
      kind: "unknown",
    });
  });

  test("tells a used reference by its code, and by its text where there is none", () => {
    expect(read(refused(400, "Something new", "duplicate_reference"))).toEqual({ kind: "duplicate" });
    expect(read(refused(400, "Duplicate Transaction Reference"))).toEqual({ kind: "duplicate" });
  });

  test.each(["Invalid Email Address Passed", "Email is not allowed to be empty", "Email Address is required"])(
    "is about the address with %s",
    (message) => {
      expect(read(refused(400, message))).toEqual({
        kind: "email_refused",
        reason: `Paystack refused the request with HTTP 400: ${message}`,
      });
      // A wrong key says nothing about an address, whatever its text.
      expect(read(refused(401, message))).toMatchObject({ kind: "rejected", retry: "operator" });
    },
  );

  test.each([
    [401, "Invalid key"],
    [401, "No Authorization Header was found"],
    [400, "Currency not supported by merchant"],
    [400, "Integration has been deactivated"],
    [422, "Something that nobody has heard of"],
  ])("is the operator's with %i %s", (status, message) => {
    expect(read(refused(status, message))).toEqual({
      kind: "rejected",
      retry: "operator",
      reason: `Paystack refused the request with HTTP ${status}: ${message}`,
    });
  });
});

describe("verify", () => {
  const read = (answer: HttpAnswer) => readLookUp(answer, reference);

  test.each([
    [400, "Transaction reference not found.", "transaction_not_found"],
    [400, "Transaction reference not found", undefined],
    [404, "Transaction reference not found.", "transaction_not_found"],
    [404, "Transaction not found", "transaction_not_found"],
  ])("does not find the reference with %i %s", (status, message, code) => {
    expect(read(refused(status, message, code))).toEqual({ kind: "not_found" });
  });

  // A wrong address must not look as if nothing had been paid.
  test.each([
    [401, "Invalid key"],
    [404, "Cannot GET /transaction/verify"],
    [400, "Invalid character in transaction reference"],
  ])("knows nothing with %i %s", (status, message) => {
    expect(read(refused(status, message))).toEqual({
      kind: "unknown",
      reason: `Paystack refused the request with HTTP ${status}: ${message}`,
    });
  });
});

describe("charge_authorization", () => {
  const read = (answer: HttpAnswer) => readCharge(answer, reference);

  test.each([
    ["Authorization code is invalid", "new_card"],
    ["Invalid Authorization Code", "new_card"],
    [
      "Email does not match Authorization code. Authorization may be inactive or belong to a different email. Please confirm.",
      "new_card",
    ],
    ["This authorization is not reusable", "new_card"],
    ["Authorization code does not exist or has been deactivated", "new_card"],
    ["Charge attempt cannot be fulfilled until 30 minutes", "later"],
    ["Insufficient funds", "later"],
    ["Amount must be an integer", "operator"],
  ] as const)("is refused with %p: %s", (message, retry) => {
    expect(read(refused(400, message))).toMatchObject({ kind: "rejected", retry });
  });

  test("is unknown when it is refused without a word", () => {
    expect(read(refused(400, ""))).toMatchObject({ kind: "unknown" });
  });

  test("blames no card for a wrong key", () => {
    expect(read(refused(401, "Authorization code is invalid"))).toMatchObject({ kind: "rejected", retry: "operator" });
  });

  test("answers with the state of the charge, which may be that it failed", () => {
    const data = { reference, status: "failed", gateway_response: "Insufficient Funds" };
    expect(read(answered(200, { status: true, message: "Charge attempted", data }))).toEqual({
      kind: "state",
      state: { kind: "failed", reason: "Insufficient Funds", retry: "later" },
    });
  });

  test("is unknown when the charge cannot be read, since it may have been made", () => {
    const data = { reference, status: "success", amount: "a lot" };
    expect(read(answered(200, { status: true, message: "Charge attempted", data }))).toMatchObject({ kind: "unknown" });
  });
});

describe("refund", () => {
  test("is accepted", () => {
    const message = "Refund has been queued for processing";
    expect(readRefund(answered(200, { status: true, message }))).toEqual({ kind: "accepted" });
  });

  test("is nothing to do when it was done", () => {
    expect(readRefund(refused(400, "Transaction has been fully reversed"))).toEqual({ kind: "already_refunded" });
  });

  test("waits for the balance", () => {
    expect(readRefund(refused(400, "Insufficient balance to fulfill this refund. Please top up."))).toMatchObject({
      kind: "rejected",
      retry: "later",
    });
  });

  test("is the operator's otherwise", () => {
    expect(readRefund(refused(404, "Transaction not found"))).toMatchObject({ kind: "rejected", retry: "operator" });
  });
});

describe("deactivate", () => {
  test.each([
    [200, "Authorization has been deactivated"],
    [404, "Authorization code not found."],
    [404, "Not found"],
    [400, "Authorization code not found."],
    [400, "Authorization code does not exist or has been deactivated"],
  ])("forgets the card with %i %s", (status, message) => {
    expect(readDeactivation(answered(status, { status: status === 200, message }))).toEqual({ kind: "forgotten" });
  });

  test("has not forgotten it with a wrong key", () => {
    for (const message of ["Invalid key", "Authorization code is invalid"]) {
      expect(readDeactivation(refused(401, message))).toMatchObject({ kind: "rejected", retry: "operator" });
    }
  });
});
