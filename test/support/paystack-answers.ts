import { createHash } from "node:crypto";

/** The bodies of Paystack's answers, with every field that it sends, in the forms in which it sends them. */

/** What a saved card does when it is charged while its owner is away. */
export type LaterCharge =
  | { readonly kind: "succeeds" }
  /** `text` is what the bank says, such as `Insufficient Funds`. */
  | { readonly kind: "declines"; readonly text: string }
  /** The bank wants its owner to confirm on a page. */
  | { readonly kind: "asks" };

export interface StandInCard {
  readonly bin: string;
  readonly last4: string;
  readonly brand: string;
  readonly reusable: boolean;
  readonly later: LaterCharge;
}

/** Paystack's own test cards have no counterpart for the last two: none declines a later charge. */
export const paystackCards = {
  visa: { bin: "408408", last4: "4081", brand: "visa", reusable: true, later: { kind: "succeeds" } },
  mastercard: { bin: "519260", last4: "4796", brand: "mastercard", reusable: true, later: { kind: "succeeds" } },
  notReusable: { bin: "507850", last4: "7812", brand: "verve", reusable: false, later: { kind: "succeeds" } },
  declinesLater: {
    bin: "408408",
    last4: "0409",
    brand: "visa",
    reusable: true,
    later: { kind: "declines", text: "Insufficient Funds" },
  },
  asksLater: { bin: "408408", last4: "1902", brand: "visa", reusable: true, later: { kind: "asks" } },
} as const satisfies Record<string, StandInCard>;

/** A card that was used once, and what may be done with it since. */
export interface StandInAuthorization {
  readonly code: string;
  readonly email: string;
  readonly card: StandInCard;
  /** As reported when it was created; it stays so after a deactivation, as at Paystack. */
  readonly reusable: boolean;
  active: boolean;
}

export interface StandInTransaction {
  readonly reference: string;
  readonly id: number;
  readonly email: string;
  /** What was asked for. */
  readonly requestedKobo: number;
  readonly callbackUrl: string;
  readonly cancelUrl: string | null;
  /** The hosted page, or the one on which a later charge is confirmed; null when there is none. */
  page: string | null;
  /** How often money was taken for it; at Paystack, never more than once. */
  timesCharged: number;
  /** `ongoing`: the bank is waiting for a confirmation. */
  status: "abandoned" | "ongoing" | "success" | "failed" | "reversed";
  /** What was charged. */
  amountKobo: number;
  currency: string;
  gatewayResponse: string;
  authorization: StandInAuthorization | null;
  refundedKobo: number;
}

export interface Answer {
  readonly status: number;
  readonly body: object;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The time at which everything happens. */
export const at = "2026-03-01T12:00:00.000Z";

export const done = (message: string, data?: object): Answer => ({
  status: 200,
  body: { status: true, message, ...(data && { data }) },
});

/** A refusal as Paystack words it; older ones have neither type nor code. */
export const refused = (status: number, message: string, code?: string): Answer => ({
  status,
  body: {
    status: false,
    message,
    ...(code && { meta: { nextStep: "Read the documentation" }, type: "validation_error", code }),
  },
});

export const pageReady = ({ reference, page }: StandInTransaction): Answer =>
  done("Authorization URL created", {
    authorization_url: page,
    access_code: accessCodeOf(reference),
    reference,
  });

/** The code in a page's address: lower-case letters and digits, as at Paystack. */
export const accessCodeOf = (reference: string) =>
  BigInt(`0x${createHash("sha256").update(reference).digest("hex")}`)
    .toString(36)
    .slice(0, 15);

export const challenged = ({ reference, page }: StandInTransaction): Answer =>
  done("Please, redirect your customer to the authorization url provided", {
    authorization_url: page,
    reference,
    access_code: accessCodeOf(reference),
    paused: true,
  });

const isPaid = ({ status }: StandInTransaction) => status === "success" || status === "reversed";

/** Has a trailing space in `card_type`, like Paystack's. */
function authorizationBody({ code, card, reusable }: StandInAuthorization) {
  return {
    authorization_code: code,
    bin: card.bin,
    last4: card.last4,
    exp_month: "12",
    exp_year: "2030",
    channel: "card",
    card_type: `${card.brand} `,
    bank: "TEST BANK",
    country_code: "NG",
    brand: card.brand,
    reusable,
    signature: signatureOf(card),
    account_name: null,
  };
}

/** The same for the same card, whoever pays with it. */
const signatureOf = ({ bin, last4 }: StandInCard) =>
  `SIG_${createHash("sha256").update(`${bin}${last4}`).digest("base64url").replace(/[-_]/g, "x").slice(0, 20)}`;

export const customerBody = (email: string) => ({
  id: 181873746,
  first_name: null,
  last_name: null,
  email,
  customer_code: "CUS_1rkzaqsv4rrhqo6",
  phone: null,
  metadata: null,
  risk_action: "default",
  international_format_phone: null,
});

export function verified(transaction: StandInTransaction, domain: string): Answer {
  const paidAt = isPaid(transaction) ? at : null;
  return done("Verification successful", {
    id: transaction.id,
    domain,
    status: transaction.status,
    reference: transaction.reference,
    receipt_number: null,
    amount: transaction.amountKobo,
    message: null,
    gateway_response: transaction.gatewayResponse,
    paid_at: paidAt,
    created_at: at,
    channel: "card",
    currency: transaction.currency,
    ip_address: "127.0.0.1",
    metadata: "",
    log: null,
    fees: isPaid(transaction) ? 150 : null,
    fees_split: null,
    authorization: transaction.authorization ? authorizationBody(transaction.authorization) : {},
    customer: customerBody(transaction.email),
    plan: null,
    split: {},
    order_id: null,
    paidAt,
    createdAt: at,
    requested_amount: transaction.requestedKobo,
    pos_transaction_data: null,
    source: null,
    fees_breakdown: null,
    connect: null,
    transaction_date: at,
    plan_object: {},
    subaccount: {},
  });
}

/** The same for a declined charge: the API call worked. */
export const chargeAttempted = (
  transaction: StandInTransaction,
  authorization: StandInAuthorization,
  domain: string,
): Answer =>
  done("Charge attempted", {
    amount: transaction.amountKobo,
    currency: transaction.currency,
    transaction_date: at,
    status: transaction.status,
    reference: transaction.reference,
    domain,
    metadata: "",
    gateway_response: transaction.gatewayResponse,
    message: null,
    channel: "card",
    ip_address: null,
    log: null,
    fees: isPaid(transaction) ? 150 : null,
    authorization: authorizationBody(authorization),
    customer: customerBody(transaction.email),
    plan: null,
    id: transaction.id,
  });

export const refundQueued = (transaction: StandInTransaction, amountKobo: number, domain: string): Answer =>
  done("Refund has been queued for processing", {
    transaction: {
      id: transaction.id,
      domain,
      reference: transaction.reference,
      amount: transaction.amountKobo,
      paid_at: at,
      channel: "card",
      currency: transaction.currency,
      authorization: { exp_month: null, exp_year: null, account_name: null },
      customer: { international_format_phone: null },
      plan: {},
      subaccount: { currency: null },
      split: {},
      order_id: null,
      paidAt: at,
      pos_transaction_data: null,
      source: null,
      fees_breakdown: null,
    },
    integration: 412829,
    deducted_amount: 0,
    channel: null,
    merchant_note: "Refund for transaction",
    customer_note: "Refund for transaction",
    status: "pending",
    refunded_by: "operator@relay.example",
    expected_at: at,
    currency: transaction.currency,
    domain,
    amount: amountKobo,
    fully_deducted: false,
    id: 3018284,
    createdAt: at,
    updatedAt: at,
  });
