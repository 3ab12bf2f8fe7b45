import { describe, expect, test } from "bun:test";
import { createHmac } from "node:crypto";
import { readCallback } from "../../../src/billing/paystack/callback.ts";

const key = "sk_test_example";

function read(
  body: string | object,
  { signedWith = key, keys = [key] }: { signedWith?: string; keys?: string[] } = {},
) {
  const bytes = Buffer.from(typeof body === "string" ? body : JSON.stringify(body));
  const signature = createHmac("sha512", signedWith).update(bytes).digest("hex");
  return readCallback(bytes, new Headers({ "x-paystack-signature": signature }), keys);
}

describe("the signature of a callback", () => {
  const body = Buffer.from('{"event":"charge.success","data":{"reference":"ver-t1-1","amount":10000}}');
  // Computed with OpenSSL.
  const signature =
    "388542ee4ef75fccc7d6a80b5c4b2b0e243460291924de5e62ac6b29a3dc128de257b5093af6a8bbf2284fb9dd6e8156899859c295e80708f6c168ce5ffc799e";
  const readWith = (value: string, keys = [key]) =>
    readCallback(body, new Headers({ "X-Paystack-Signature": value }), keys);

  test("is the HMAC-SHA512 of the bytes, in hex of either case", () => {
    expect(readWith(signature)).toEqual({ kind: "charge", reference: "ver-t1-1" });
    expect(readWith(signature.toUpperCase())).toEqual({ kind: "charge", reference: "ver-t1-1" });
  });

  test.each([
    ["is missing", ""],
    ["is too short", signature.slice(2)],
    ["is too long", `${signature}00`],
    ["is not hex", `${signature.slice(1)}g`],
    ["is another one", `4${signature.slice(1)}`],
    ["is there twice", `${signature}, ${signature}`],
  ])("does not hold when it %s", (_, value) => {
    expect(readWith(value)).toBeNull();
  });

  test("may be of any key that is still in use, and of no other", () => {
    expect(readWith(signature, ["sk_test_new", key])).not.toBeNull();
    expect(readWith(signature, ["sk_test_new"])).toBeNull();
  });

  test.each(['{"event":"charge.success","data":{"reference":"ver-1","amount":1.0,"a":"\\u20a6","b":"x\\/y"}}'])(
    "is of the bytes, which no parser writes again: %s",
    (text) => {
      expect(read(text)).toEqual({ kind: "charge", reference: "ver-1" });
      expect(JSON.stringify(JSON.parse(text))).not.toBe(text);
    },
  );
});

describe("a callback", () => {
  test.each([
    ["charge.success", { reference: "ver-1" }, { kind: "charge", reference: "ver-1" }],
    ["refund.pending", { transaction_reference: "ver-1" }, { kind: "refund", reference: "ver-1" }],
    ["refund.processed", { transaction_reference: "ver-1", amount: "10000" }, { kind: "refund", reference: "ver-1" }],
    ["refund.needs-attention", { transaction_reference: "ver-1" }, { kind: "refund_failed", reference: "ver-1" }],
    ["refund.failed", { transaction_reference: "ver-1" }, { kind: "refund_failed", reference: "ver-1" }],
    [
      "charge.dispute.create",
      { transaction: { reference: "ver-1" }, transaction_reference: null },
      { kind: "dispute", reference: "ver-1" },
    ],
    ["charge.dispute.remind", { transaction_reference: "ver-1" }, { kind: "dispute", reference: "ver-1" }],
    ["charge.dispute.resolve", {}, { kind: "dispute", reference: null }],
  ] as const)("of %s %j is read", (event, data, expected) => {
    expect(read({ event, data })).toEqual(expected);
  });

  // Paystack does not tell of failures: a charge.failed is somebody's invention, and a look-up finds them.
  test.each(["charge.failed", "invoice.create", "subscription.disable", "transfer.success", "charge.successful", ""])(
    "of %p is ignored",
    (event) => {
      expect(read({ event, data: { reference: "ver-1" } })).toEqual({ kind: "ignored", reference: null });
    },
  );

  test.each([
    "",
    "null",
    "[]",
    "not json",
    "{}",
    '{"event":"charge.success"}',
    '{"event":"charge.success","data":[]}',
    '{"event":"charge.success","data":{"reference":7}}',
    '{"event":["charge.success"],"data":{"reference":"ver-1"}}',
  ])("of %p is signed, and ignored", (text) => {
    expect(read(text)).toEqual({ kind: "ignored", reference: null });
  });
});
