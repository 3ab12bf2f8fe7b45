import { createHmac } from "node:crypto";
import { at, customerBody, type StandInTransaction } from "./paystack-answers.ts";

/** What Paystack reports on its own initiative. */
export interface StandInEvent {
  readonly name: "charge.success" | "refund.pending" | "refund.processed" | "refund.failed" | "charge.dispute.create";
  readonly transaction: StandInTransaction;
}

export interface SentCallback {
  readonly event: string;
  readonly reference: string;
  readonly body: Buffer;
  readonly headers: Headers;
  /** The status of the answer; null when there was none. Paystack counts only 200 as delivered. */
  readonly status: number | null;
}

/** Sends one callback, once. */
export async function sendCallback(
  url: string,
  { name, transaction }: StandInEvent,
  secretKey: string,
): Promise<SentCallback> {
  const domain = secretKey.startsWith("sk_live_") ? "live" : "test";
  const event = JSON.stringify({ event: name, data: dataOf(name, transaction, domain) });
  // Valid JSON whose bytes no parser would write back: checking the signature over anything but the raw body fails.
  const body = Buffer.from(event.replaceAll("/", "\\/").replaceAll("@", "\\u0040"));
  const headers = new Headers({
    "Content-Type": "application/json",
    "x-paystack-signature": createHmac("sha512", secretKey).update(body).digest("hex"),
  });
  return { event: name, reference: transaction.reference, body, headers, status: await post(url, body, headers) };
}

async function post(url: string, body: Buffer, headers: Headers): Promise<number | null> {
  try {
    const response = await fetch(url, { method: "POST", headers, body, redirect: "manual" });
    await response.arrayBuffer();
    return response.status;
  } catch {
    return null;
  }
}

function dataOf(name: StandInEvent["name"], transaction: StandInTransaction, domain: string): object {
  switch (name) {
    case "charge.success":
      return chargeSuccessData(transaction, domain);
    case "charge.dispute.create":
      return disputeData(transaction, domain);
    case "refund.pending":
      return refundData(transaction, "pending", domain);
    case "refund.processed":
      return refundData(transaction, "processed", domain);
    case "refund.failed":
      return refundData(transaction, "failed", domain);
  }
}

/** As documented: without `reusable`, `signature` and `channel`, and with the number 0 for metadata. */
function chargeSuccessData(transaction: StandInTransaction, domain: string) {
  const card = transaction.authorization?.card;
  return {
    id: transaction.id,
    domain,
    status: "success",
    reference: transaction.reference,
    amount: transaction.amountKobo,
    message: null,
    gateway_response: transaction.gatewayResponse,
    paid_at: at,
    created_at: at,
    channel: "card",
    currency: transaction.currency,
    ip_address: "127.0.0.1",
    metadata: 0,
    log: null,
    fees: null,
    customer: { ...customerBody(transaction.email), metadata: null },
    authorization: {
      authorization_code: transaction.authorization?.code,
      bin: card?.bin,
      last4: card?.last4,
      exp_month: "12",
      exp_year: "2030",
      card_type: `${card?.brand} `,
      bank: "TEST BANK",
      country_code: "NG",
      brand: card?.brand,
      account_name: null,
    },
    plan: {},
  };
}

/** In some of these callbacks the amount is text, in others a number. */
const refundData = (transaction: StandInTransaction, status: "pending" | "processed" | "failed", domain: string) => ({
  status,
  transaction_reference: transaction.reference,
  refund_reference: null,
  amount: status === "pending" ? String(transaction.refundedKobo) : transaction.refundedKobo,
  currency: transaction.currency,
  processor: "instant-transfer",
  customer: { first_name: null, last_name: null, email: transaction.email },
  integration: 412829,
  domain,
});

/** `transaction_reference` is null even though the transaction has a reference. */
const disputeData = (transaction: StandInTransaction, domain: string) => ({
  id: 358950,
  refund_amount: transaction.amountKobo,
  currency: transaction.currency,
  status: "awaiting-merchant-feedback",
  resolution: null,
  domain,
  transaction: { id: transaction.id, domain, reference: transaction.reference, amount: transaction.amountKobo },
  transaction_reference: null,
  category: null,
  customer: customerBody(transaction.email),
  bin: null,
  last4: null,
  dueAt: at,
  resolvedAt: null,
  evidence: null,
  attachments: "",
  note: null,
  history: [],
  messages: [],
  created_at: at,
  updated_at: at,
});
