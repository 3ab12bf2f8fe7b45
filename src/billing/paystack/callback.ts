import { createHmac, timingSafeEqual } from "node:crypto";
import type { Callback } from "../processor.ts";
import { type Fields, isFields } from "./transaction.ts";

/** 64 bytes in hex: anything else is not compared at all. */
const signatureForm = /^[0-9a-f]{128}$/i;

/**
 * Reads a Paystack webhook. There is no webhook secret: the secret key itself signs, so every key that may still be in
 * use is tried. Neither an id nor a time is signed, so anyone who has seen a callback can replay it.
 * @returns null when no key made the signature
 */
export function readCallback(body: Uint8Array, headers: Headers, secretKeys: readonly string[]): Callback | null {
  const signature = headers.get("x-paystack-signature") ?? "";
  if (!signatureForm.test(signature) || !isSigned(body, Buffer.from(signature, "hex"), secretKeys)) return null;
  const { event, data } = parse(body);
  if (typeof event !== "string" || !isFields(data)) return ignored;
  if (event === "charge.success") return aboutCharge("charge", data.reference);
  if (event.startsWith("refund.")) {
    const isStuck = event === "refund.failed" || event === "refund.needs-attention";
    return aboutCharge(isStuck ? "refund_failed" : "refund", data.transaction_reference);
  }
  // The operator has to hear of a dispute even when it does not say what it is about.
  if (event.startsWith("charge.dispute.")) return { kind: "dispute", reference: disputed(data) };
  return ignored;
}

const ignored: Callback = { kind: "ignored", reference: null };

/** Over the bytes as received: a parsed and rewritten body has different bytes for `1.0`, `\u20a6` and `\/`. */
function isSigned(body: Uint8Array, signature: Uint8Array, secretKeys: readonly string[]): boolean {
  return secretKeys
    .map((key) => timingSafeEqual(createHmac("sha512", key).update(body).digest(), signature))
    .includes(true);
}

function parse(body: Uint8Array): Fields {
  try {
    const value: unknown = JSON.parse(new TextDecoder().decode(body));
    return isFields(value) ? value : {};
  } catch {
    return {};
  }
}

const aboutCharge = (kind: "charge" | "refund" | "refund_failed", reference: unknown): Callback =>
  typeof reference === "string" ? { kind, reference } : ignored;

/** `transaction_reference` may be null even though the transaction has a reference. */
function disputed({ transaction, transaction_reference }: Fields): string | null {
  const reference = isFields(transaction) ? transaction.reference : transaction_reference;
  return typeof reference === "string" ? reference : null;
}
