import type { Tier } from "./tenant.ts";

/**
 * Who pays for a tenant. It outlives the tenant: a deleted account still has a last charge to make, a card to forget and
 * late payments to refund, and nothing in here except the card says whose it was. Money is an integer number of kobo.
 */
export interface BillingAccount {
  readonly key: number;
  /** Reveals nothing about the tenant; references at the processor are derived from it (`billing/references.ts`). */
  readonly id: string;
  /** Null once the tenant has been deleted. */
  readonly tenantKey: number | null;
  /** When a card was verified for the first time: the days from then on are charged. */
  readonly verifiedAt: number | null;
  /** Paid in advance; the next month's end deducts it. */
  readonly creditKobo: number;
  /**
   * When days are invoiced next: at a month's end, or immediately when closing; null before the first verification, and
   * after the last invoice.
   */
  readonly nextInvoiceAt: number | null;
  /**
   *   active ──tenant deleted──▶ closing ──last charge made, card forgotten──▶ closed
   *
   * A closed one only gives late payments back.
   */
  readonly state: "active" | "closing" | "closed";
}

/**
 * A card to be verified on a hosted page. An account has at most one open verification, and its `payment_url` stays while
 * the pages behind it come and go.
 *
 *          page paid
 *   open ────────────▶ succeeded
 *     └──30 days─────▶ given_up
 */
export interface CardVerification {
  readonly key: number;
  readonly accountKey: number;
  /** The secret part of `payment_url`. */
  readonly token: string;
  readonly state: "open" | "succeeded" | "given_up";
  readonly createdAt: number;
  /** The charge that the page behind `payment_url` pays now; null before the first visit. */
  readonly chargeKey: number | null;
}

/** A card that can be charged while its owner is away. */
export interface SavedCard {
  readonly key: number;
  /** Where the token exists, such as `paystack:live`. */
  readonly processor: string;
  /** Token and e-mail of the card at the processor, encrypted (`billing/card-vault.ts`). */
  readonly sealed: Uint8Array;
  /** Identical for the same card. */
  readonly signature: string | null;
  readonly brand: string;
  readonly last4: string;
  readonly expMonth: string;
  readonly expYear: string;
  /** When its token was saved: the same card, verified again, has a newer one. */
  readonly savedAt: number;
  /** The bank said that this card will never work, so it is not tried again. */
  readonly refused: boolean;
  /** When to tell the processor to forget it; null while it is in use. */
  readonly forgetAt: number | null;
}

/** A plan that was in force and paid for; each day belongs to the highest plan held on it. */
export interface PlanPeriod {
  readonly tier: Tier;
  readonly startedAt: number;
  /** Null: still in force. */
  readonly endedAt: number | null;
}

/** Days of one plan in one month. */
export interface InvoiceLine {
  /** `2026-11`. */
  readonly month: string;
  readonly tier: Tier;
  readonly days: number;
  readonly daysInMonth: number;
  readonly amountKobo: number;
}

/**
 * Days to be paid for. A day is in at most one invoice that is not void.
 *
 *   open ──a charge succeeded──▶ paid
 *     └──upgrade declined, or the account was deleted: its days are free again──▶ void
 */
export interface Invoice {
  readonly key: number;
  readonly accountKey: number;
  /** Random; the references of its charges are derived from it. */
  readonly id: string;
  readonly kind: "upgrade" | "subscription" | "closing";
  readonly state: "open" | "paid" | "void";
  readonly lines: readonly InvoiceLine[];
  /** What the days cost. */
  readonly totalKobo: number;
  readonly creditUsedKobo: number;
  /** What is charged: the total less the credit, or more if the minimum charge is higher. */
  readonly amountKobo: number;
  /** Charges made for it so far. */
  readonly attempts: number;
  readonly firstFailedAt: number | null;
  /** When to make the next charge; null: none is planned. */
  readonly nextAttemptAt: number | null;
  /** The tier to move to once an upgrade is paid. */
  readonly targetTier: Tier | null;
}

/**
 * One payment at the processor, stored before the processor hears of it. `open` means that money may move.
 *
 *          paid                                       paid after all: it is given back
 *   open ───────▶ succeeded              superseded ─────────────────────────────────▶ refund due
 *     ├─ declined ─▶ failed                  ▲
 *     └─ another page, given up, deleted ────┘
 */
export interface Charge {
  readonly key: number;
  readonly accountKey: number;
  /** Our name for it at the processor, unique for all time: that is what makes a repetition harmless. */
  readonly reference: string;
  /** Where it was made, such as `sandbox:test`. */
  readonly processor: string;
  readonly kind: "verification" | Invoice["kind"];
  readonly state: "open" | "succeeded" | "failed" | "superseded";
  readonly amountKobo: number;
  readonly invoiceKey: number | null;
  readonly cardKey: number | null;
  readonly createdAt: number;
  /** When the processor was last asked to make it; null: not yet. */
  readonly sentAt: number | null;
  /**
   * From then on it may be asked again, if it does not know the reference: an earlier request has surely ended by then. For
   * a refund that was requested: if the payment still stands.
   */
  readonly resendAt: number | null;
  /** How often it was looked up. */
  readonly lookUps: number;
  /** When to look it up next; null: it need not be. */
  readonly lookUpAt: number | null;
  /** The hosted page, or the bank's page on which the customer confirms. */
  readonly pageUrl: string | null;
  readonly settledAt: number | null;
  /** Why it failed, in words for the customer. */
  readonly reason: string | null;
  /** Money that has to go back: `due` has yet to be requested, `requested` has been. */
  readonly refund: "due" | "requested" | "done" | null;
  readonly refundAt: number | null;
}

/** What an upgrade changes besides the tier: the login of an account that was free. */
export interface NewLogin {
  readonly email: string;
  readonly passwordHash: string;
}

export interface NewInvoice {
  readonly id: string;
  readonly kind: Invoice["kind"];
  readonly lines: readonly InvoiceLine[];
  /** Calendar days of the billing time zone, as days since the Unix epoch, with the tier that each belongs to. */
  readonly days: readonly { readonly day: number; readonly tier: Tier }[];
  readonly totalKobo: number;
  readonly creditUsedKobo: number;
  readonly amountKobo: number;
}

export interface NewCharge {
  readonly reference: string;
  readonly processor: string;
  readonly amountKobo: number;
  readonly cardKey: number | null;
  /** When to look it up, unless its outcome is reported before. */
  readonly lookUpAt: number | null;
}

export interface NewCard {
  readonly processor: string;
  readonly sealed: Uint8Array;
  readonly signature: string | null;
  readonly brand: string;
  readonly last4: string;
  readonly expMonth: string;
  readonly expYear: string;
}

/** What a failed charge means for its invoice: when it is tried again, or that it will not be. */
export type AfterFailure =
  | { readonly kind: "retry"; readonly at: number }
  | { readonly kind: "suspend" }
  /** Its days are free again. */
  | { readonly kind: "void" };

export interface ChargeFailure {
  /** For the customer. */
  readonly reason: string;
  /** The card will never work. */
  readonly cardRefused: boolean;
  /** Money moved anyway, and goes back. */
  readonly refund: boolean;
  /** A card that came with it, to be forgotten. */
  readonly card: NewCard | null;
  /** When to check that it stays failed; null: it never reached the processor. */
  readonly lookUpAt: number | null;
}
