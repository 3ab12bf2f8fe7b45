/**
 * The seam to a payment processor. An adapter speaks one processor's language and decides nothing: references, amounts,
 * what counts as paid, retries and dunning are the business of this folder, so both adapters share them.
 *
 * Error contract: a call never throws for what the processor or the network does; that is a value. `unknown` means that
 * money may have moved, and only a look-up with the same reference can tell. An adapter never retries on its own.
 *
 * `test/contract/processor/` is this contract as a test suite; an adapter is whatever passes it.
 */
export interface PaymentProcessor {
  readonly name: "sandbox" | "paystack";
  /** Whether real money moves. What was made in one mode does not exist in the other. */
  readonly mode: "test" | "live";
  /** Maximum charges of saved cards per second, so that a month's end stays within the processor's limits. */
  readonly chargesPerSecond: number;

  /** Makes a hosted page on which the customer pays with a card that can be charged again later. Moves no money by itself. */
  startVerification(request: VerificationRequest): Promise<VerificationAnswer>;

  /** What the processor knows about a reference: the only source of truth, and repeatable. */
  lookUp(reference: string): Promise<ChargeState | Unknown>;

  /** Charges a card while its owner is away. */
  chargeSavedCard(request: CardCharge): Promise<ChargeAnswer>;

  /** Refunds a successful charge in full. */
  refund(request: { reference: string; amountKobo: number }): Promise<RefundAnswer>;

  /**
   * Reads a callback and verifies its signature over the raw bytes. A callback is a hint that a look-up is worthwhile,
   * nothing more.
   * @returns null when the signature is invalid
   */
  readCallback(body: Uint8Array, headers: Headers): Callback | null;

  /** Makes a token useless. A token that the processor no longer knows counts as forgotten. */
  forgetCard(token: string): Promise<{ readonly kind: "forgotten" } | Rejected | Unknown>;
}

export interface VerificationRequest {
  /** Ours, unique forever; letters, digits and `-`. */
  readonly reference: string;
  readonly email: string;
  readonly amountKobo: number;
  /** Where the browser goes after the payment; the processor adds the reference to it. */
  readonly returnUrl: string;
  /** Where the browser goes when the customer gives up. */
  readonly cancelUrl: string;
}

export interface CardCharge {
  readonly reference: string;
  readonly token: string;
  /** The exact address that the token was made with: any other is refused. */
  readonly email: string;
  readonly amountKobo: number;
  /** Where the browser goes after a confirmation, when the bank wants one. */
  readonly returnUrl: string;
}

/** A card that can be charged again. */
export interface ChargeableCard {
  /** Secret: sealed at rest, and never logged or returned. */
  readonly token: string;
  readonly email: string;
  /** The same for the same card; null when the processor does not say. */
  readonly signature: string | null;
  readonly brand: string;
  readonly last4: string;
  /** The month has two digits, the year four. */
  readonly expMonth: string;
  readonly expYear: string;
}

/** The state of one reference at the processor. */
export type ChargeState =
  | Succeeded
  /** The customer or the bank has not finished, or nobody has begun. `word` is the processor's own term, for the log. */
  | { readonly kind: "pending"; readonly word: string }
  /** The bank wants the customer to confirm on this page. */
  | { readonly kind: "confirmation"; readonly url: string }
  | Failed
  /** Paid and refunded since. */
  | { readonly kind: "reversed" }
  | { readonly kind: "not_found" };

export interface Succeeded {
  readonly kind: "succeeded";
  readonly reference: string;
  /** What the customer was charged; more than asked when the processor adds its fees. */
  readonly amountKobo: number;
  /** What we asked for; null when the processor does not say. */
  readonly requestedKobo: number | null;
  /** ISO 4217, such as `NGN`. */
  readonly currency: string;
  readonly mode: "test" | "live";
  readonly transactionId: string;
  /** Null: paid, but not with a card that can be charged again. */
  readonly card: ChargeableCard | null;
}

export interface Failed {
  readonly kind: "failed";
  /** For the customer: `Insufficient funds`. */
  readonly reason: string;
  /** `new_card`: this card will never work. */
  readonly retry: "later" | "new_card";
}

/** Refused before it had any effect. `operator`: our key, our account or our request is at fault, not the card. */
export interface Rejected {
  readonly kind: "rejected";
  readonly reason: string;
  readonly retry: "later" | "new_card" | "operator";
}

/** No reliable answer. */
export interface Unknown {
  readonly kind: "unknown";
  readonly reason: string;
  /** How long the processor asks us to wait. */
  readonly retryAfterMs?: number;
  /** No answer, or none by who does the work: the request may still be in transit or in progress. */
  readonly underWay?: boolean;
}

/** The reference was used before; a look-up tells what became of it. */
export interface Duplicate {
  readonly kind: "duplicate";
}

/**
 * The processor does not accept the customer's e-mail address, whatever the card: nothing was made, and only another
 * address helps.
 */
export interface EmailRefused {
  readonly kind: "email_refused";
  readonly reason: string;
}

export type VerificationAnswer =
  | { readonly kind: "ready"; readonly url: string }
  | Duplicate
  | EmailRefused
  | Rejected
  | Unknown;

export type ChargeAnswer = { readonly kind: "state"; readonly state: ChargeState } | Duplicate | Rejected | Unknown;

export type RefundAnswer = { readonly kind: "accepted" } | { readonly kind: "already_refunded" } | Rejected | Unknown;

export interface Callback {
  /**
   * `dispute`: the customer's bank asks for the money back; the operator has to respond at the processor. `refund_failed`:
   * the money has not reached the customer, and the operator may have to help.
   */
  readonly kind: "charge" | "refund" | "refund_failed" | "dispute" | "ignored";
  /** Null when the callback is not about a charge. */
  readonly reference: string | null;
}
