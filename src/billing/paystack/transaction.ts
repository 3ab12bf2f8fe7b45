import type { ChargeableCard, ChargeState, Unknown } from "../processor.ts";
import { publicText } from "./public-text.ts";
import { retryAfterText } from "./refusals.ts";

export type Fields = Readonly<Record<string, unknown>>;

export const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);

export const unknown = (reason: string, retryAfterMs?: number): Unknown => ({
  kind: "unknown",
  reason,
  ...(retryAfterMs !== undefined && { retryAfterMs }),
});

/**
 * Reads the transaction object of verify and charge_authorization. `metadata` is never looked at: it is anything from an
 * object to the number 0, and proves nothing.
 *
 *   success               succeeded, and `reversed` once it is paid back
 *   failed                failed
 *   paused: true          confirmation; such an answer has no status
 *   everything else       pending: abandoned (also before the customer has begun), ongoing, pending, processing, queued,
 *                         the words of Paystack's other products, and those that it will invent
 */
export function readTransaction(data: unknown, reference: string): ChargeState | Unknown {
  if (!isFields(data)) return unreadable("no transaction");
  // An answer about one charge says nothing about another.
  if (data.reference !== reference) return unreadable("a reference other than the one requested");
  if (data.paused === true) {
    const url = webAddress(data.authorization_url);
    return url === null ? { kind: "pending", word: "paused" } : { kind: "confirmation", url };
  }
  switch (data.status) {
    case "success":
      return readSuccess(data, reference);
    case "failed":
      return readFailure(data);
    case "reversed":
      return { kind: "reversed" };
    default:
      return typeof data.status === "string"
        ? { kind: "pending", word: publicText(data.status) }
        : unreadable("no status");
  }
}

function readSuccess(data: Fields, reference: string): ChargeState | Unknown {
  const amountKobo = kobo(data.amount);
  const mode = data.domain;
  const transactionId = idOf(data.id);
  if (amountKobo === null) return unreadable("no amount");
  if (typeof data.currency !== "string") return unreadable("no currency");
  if (mode !== "test" && mode !== "live") return unreadable("no domain");
  if (transactionId === null) return unreadable("no id");
  return {
    kind: "succeeded",
    reference,
    amountKobo,
    requestedKobo: kobo(data.requested_amount),
    currency: data.currency,
    mode,
    transactionId,
    card: data.channel === "card" ? readCard(data.authorization, data.customer) : null,
  };
}

/**
 * Null for a card that cannot be charged again, and for one with a part missing: without its token, or the e-mail address
 * that Paystack has for it, it cannot be charged either.
 */
function readCard(authorization: unknown, customer: unknown): ChargeableCard | null {
  if (!isFields(authorization) || !isFields(customer) || authorization.reusable !== true) return null;
  if (authorization.channel !== undefined && authorization.channel !== "card") return null;
  const token = textOf(authorization.authorization_code);
  const email = textOf(customer.email);
  const last4 = digits(authorization.last4, 4);
  const expMonth = monthOf(authorization.exp_month);
  const expYear = digits(authorization.exp_year, 4);
  if (token === null || email === null || last4 === null || expMonth === null || expYear === null) return null;
  return {
    token,
    email,
    signature: textOf(authorization.signature),
    // `card_type` says the same, with a space at the end in Paystack's own samples.
    brand: textOf(authorization.brand) ?? textOf(authorization.card_type) ?? "card",
    last4,
    expMonth,
    expYear,
  };
}

function readFailure(data: Fields): ChargeState {
  const text = textOf(data.gateway_response) ?? textOf(data.message) ?? "Declined";
  // For an unknown text: the card may work another day, and the retries are few.
  return { kind: "failed", reason: publicText(text), retry: retryAfterText(text) ?? "later" };
}

const unreadable = (what: string) => unknown(`Paystack's response has ${what}`);

/** Verify answers with numbers; other Paystack answers sometimes have amounts as strings. */
function kobo(value: unknown): number | null {
  const amount = typeof value === "string" && /^\d{1,15}$/.test(value) ? Number(value) : value;
  return Number.isSafeInteger(amount) && typeof amount === "number" && amount >= 0 ? amount : null;
}

/** Ids have 64 bits; one too long for a number arrives here as text. */
const idOf = (value: unknown) => (Number.isSafeInteger(value) ? String(value) : textOf(value));

const textOf = (value: unknown) => (typeof value === "string" && value.trim() !== "" ? value.trim() : null);

function digits(value: unknown, count: number): string | null {
  const text = typeof value === "number" ? String(value) : (textOf(value) ?? "");
  return /^\d+$/.test(text) && text.length === count ? text : null;
}

/** Two digits in the documentation; a single one can only mean the same month. */
function monthOf(value: unknown): string | null {
  const digit = digits(value, 1);
  return digit === null ? digits(value, 2) : `0${digit}`;
}

/** A page that a browser may be sent to. */
export function webAddress(value: unknown): string | null {
  if (typeof value !== "string" || !URL.canParse(value)) return null;
  return /^https?:$/.test(new URL(value).protocol) ? value : null;
}
