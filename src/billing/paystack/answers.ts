import type {
  ChargeAnswer,
  ChargeState,
  Duplicate,
  PaymentProcessor,
  RefundAnswer,
  Rejected,
  Unknown,
  VerificationAnswer,
} from "../processor.ts";
import type { HttpAnswer } from "./http.ts";
import { publicText } from "./public-text.ts";
import { isAboutEmail, retryAfterText } from "./refusals.ts";
import { isFields, readTransaction, unknown, webAddress } from "./transaction.ts";

/** Every answer is an envelope: `{ status: boolean, message, data?, type?, code?, meta? }`. */
type Envelope =
  /** The API call worked; what became of the payment is in `data`. */
  | { readonly kind: "done"; readonly data: unknown }
  /** The request had no effect. */
  | { readonly kind: "refused"; readonly status: number; readonly code: string; readonly message: string }
  | Unknown;

/**
 * Only two answers are certain: a 2xx whose `status` is exactly `true`, and a 4xx that Paystack explains in words. After
 * any other answer a charge may have been made, even if something in between sent a page in its place.
 */
function open(answer: HttpAnswer): Envelope {
  if (answer.kind === "no_answer") return { ...unknown(answer.reason), underWay: answer.underWay };
  const { status, body } = answer;
  const envelope = isFields(body) ? body : {};
  const message = typeof envelope.message === "string" ? envelope.message : "";
  if (status === 429) return unknown("Paystack's rate limit was reached (HTTP 429)", answer.retryAfterMs);
  if (status >= 200 && status < 300 && envelope.status === true) return { kind: "done", data: envelope.data };
  // 408 is about time, and not about the request.
  const refused = status >= 400 && status < 500 && status !== 408 && envelope.status !== true && message !== "";
  if (!refused) {
    // Whatever stands in between gives up before the charge that it has passed on does, and answers in Paystack's place.
    const underWay = status === 408 || status >= 500;
    return { ...unknown(withText(`Paystack answered HTTP ${status}`, message)), ...(underWay && { underWay }) };
  }
  return { kind: "refused", status, code: typeof envelope.code === "string" ? envelope.code : "", message };
}

type Refused = Extract<Envelope, { kind: "refused" }>;

/** The answer to a hosted page that was asked for. @param reference the one it was asked for; a page of another is none */
export function readVerification(answer: HttpAnswer, reference: string): VerificationAnswer {
  const envelope = open(answer);
  if (envelope.kind === "refused") {
    const isEmailRefused = envelope.status !== 401 && isAboutEmail(envelope.message);
    return isEmailRefused ? { kind: "email_refused", reason: explain(envelope) } : readRefusal(envelope);
  }
  if (envelope.kind === "unknown") return envelope;
  const data = isFields(envelope.data) ? envelope.data : {};
  const url = webAddress(data.authorization_url);
  if (url === null || data.reference !== reference) return unknown("Paystack returned no payment page");
  return { kind: "ready", url };
}

/** The answer to a look-up. Whatever it does not say for certain is unknown, never "not found": that would be charged again. */
export function readLookUp(answer: HttpAnswer, reference: string): ChargeState | Unknown {
  const envelope = open(answer);
  if (envelope.kind === "done") return readTransaction(envelope.data, reference);
  if (envelope.kind === "unknown") return envelope;
  // The documentation says 404 and the API answers 400; the code says which 4xx is meant.
  const notFound =
    envelope.code === "transaction_not_found" || begins(envelope.message, "transaction reference not found");
  return notFound ? { kind: "not_found" } : unknown(explain(envelope));
}

/** The answer to a charge of a saved card. A refusal had no effect; anything unclear is looked up. */
export function readCharge(answer: HttpAnswer, reference: string): ChargeAnswer {
  const envelope = open(answer);
  if (envelope.kind === "refused") return readRefusal(envelope);
  if (envelope.kind === "unknown") return envelope;
  const state = readTransaction(envelope.data, reference);
  return state.kind === "unknown" ? state : { kind: "state", state };
}

/** The answer to a refund request. Accepted is not done: a look-up says when the payment no longer stands. */
export function readRefund(answer: HttpAnswer): RefundAnswer {
  const envelope = open(answer);
  if (envelope.kind === "done") return { kind: "accepted" };
  if (envelope.kind === "unknown") return envelope;
  return begins(envelope.message, "transaction has been fully reversed")
    ? { kind: "already_refunded" }
    : reject(envelope);
}

export function readDeactivation(answer: HttpAnswer): Awaited<ReturnType<PaymentProcessor["forgetCard"]>> {
  const envelope = open(answer);
  if (envelope.kind === "done") return { kind: "forgotten" };
  if (envelope.kind === "unknown") return envelope;
  const rejected = reject(envelope);
  const gone =
    envelope.status === 404 ||
    begins(envelope.message, "authorization code not found") ||
    rejected.retry === "new_card";
  return gone ? { kind: "forgotten" } : rejected;
}

function readRefusal(refused: Refused): Duplicate | Rejected {
  const duplicate =
    refused.code === "duplicate_reference" || begins(refused.message, "duplicate transaction reference");
  return duplicate ? { kind: "duplicate" } : reject(refused);
}

/** A text that is not in the table is for the operator to read. A wrong key says nothing about a card, whatever the text. */
function reject(refused: Refused): Rejected {
  const retry = refused.status === 401 ? "operator" : (retryAfterText(refused.message) ?? "operator");
  return { kind: "rejected", reason: explain(refused), retry };
}

const explain = ({ status, message }: Refused) => withText(`Paystack refused the request with HTTP ${status}`, message);

const withText = (sentence: string, message: string) => (message ? `${sentence}: ${publicText(message)}` : sentence);

const begins = (message: string, beginning: string) => message.trim().toLowerCase().startsWith(beginning);
