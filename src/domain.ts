import type { FailureCode } from "./domain/failure.ts";

/** The nouns of Postrider. Times are milliseconds since the Unix epoch; `key` is the store's own short key of a row. */

export type Tier = "free" | "pro" | "business" | "enterprise";

/**
 * An account. Its status is derived, never set (see `statusOf`):
 *
 *   enforcedTier ≠ tier ──card verified──▶ enforcedTier = tier
 *   (null: made on a paid tier and never verified, so it may not ingest yet)
 */
export interface Tenant {
  readonly key: number;
  readonly id: string;
  readonly name: string;
  readonly email: string;
  /** The tier that the account names: the target as soon as an upgrade is accepted. */
  readonly tier: Tier;
  /** The tier whose limits are in force; null until the first card verification of an account made on a paid tier. */
  readonly enforcedTier: Tier | null;
  readonly passwordHash: string;
  /** Part of every session token: raising it ends them all. */
  readonly sessionVersion: number;
  readonly createdAt: number;
  readonly operatorSuspendedAt: number | null;
  readonly paymentSuspendedAt: number | null;
  readonly pastDueAt: number | null;
}

export type TenantStatus = "suspended" | "past_due" | "pending_verification" | "active";

export type SuspensionCause = "operator" | "payment";

/** Decisions, section 4: derived, in this order. */
export function statusOf(tenant: Tenant): TenantStatus {
  if (tenant.operatorSuspendedAt !== null || tenant.paymentSuspendedAt !== null) return "suspended";
  if (tenant.pastDueAt !== null) return "past_due";
  return tenant.enforcedTier === tenant.tier ? "active" : "pending_verification";
}

/** The plan whose limits hold for an account. */
export const tierInForce = ({ enforcedTier }: Pick<Tenant, "enforcedTier">): Tier => enforcedTier ?? "free";

/** An endpoint of the tenant. A removed one stays as a row, because its records still name its URL. */
export interface Webhook {
  readonly key: number;
  readonly id: string;
  readonly url: string;
  readonly name: string;
}

export interface ApiKey {
  readonly id: string;
  /** The key itself, encrypted (`lib/vault.ts`). */
  readonly sealed: Uint8Array;
  readonly createdAt: number;
  readonly lastUsedAt: number | null;
  /** From then on it is refused; null: until it is rotated. */
  readonly expiresAt: number | null;
}

/** What a key of an account is encrypted for, so that it does not open in another account's row. */
export const keyContext = (tenantId: string, keyId: string) => `${tenantId}:${keyId}`;

/**
 * One event for one webhook: the public "event record" and the row of the queue.
 *
 *            2xx
 *   PENDING ─────▶ DELIVERED
 *     │  ▲ retry         │
 *     │  └───────────────┤ replay: the next run
 *     └────────▶ FAILED ─┘
 *      permanent, schedule used up, webhook removed
 */
export type DeliveryState = "PENDING" | "DELIVERED" | "FAILED";

export const deliveryStates: readonly DeliveryState[] = ["PENDING", "DELIVERED", "FAILED"];

/**
 * A text that may be long, as it stands in JSON: its UTF-8 in quotes, with what has to be escaped, to be sent as it is. A
 * list of such texts is made without a string of each, which on the event loop would be garbage of three times its length.
 */
export type JsonText = Uint8Array;

/** A record as the events endpoints show it (specification, "Event record"; decisions, section 7). */
export interface EventRecord {
  readonly eventId: string;
  readonly state: DeliveryState;
  readonly ingestedAt: number;
  /** "" when no webhook was registered as the event arrived. */
  readonly targetWebhook: string;
  readonly errorReason: string | null;
  /** Of the same failure; null also for those that earlier programs stored. */
  readonly errorCode: FailureCode | null;
  /** What that failure was answered with; null when it had no answer. */
  readonly statusCode: number | null;
  /** The very bytes that the tenant submitted; null when a list was asked for without them. */
  readonly payload: Uint8Array | null;
  readonly attempts: number;
  /** Of these, those that are no longer in the log. */
  readonly attemptsForgotten: number;
  readonly lastAttemptAt: number | null;
  readonly nextAttemptAt: number | null;
  readonly replayGroupId: JsonText | null;
  /** It lies on a damaged page of the storage: there is no payload, and what else is lost stands as if it had none. */
  readonly unreadable?: true;
}

/** A delivery whose time has come, with all that one attempt needs. */
export interface DueDelivery {
  /** 0: a test, of which there is no record. */
  readonly deliveryKey: number;
  readonly tenantKey: number;
  readonly tenantId: string;
  /** The plan whose limits hold for the account. */
  readonly tier: Tier;
  readonly webhookKey: number;
  readonly url: string;
  readonly eventSeq: number;
  readonly eventId: string;
  readonly payload: Uint8Array;
  /** Grows with every replay; an attempt settles only its own run. */
  readonly run: number;
  /** Attempts that this run has had. */
  readonly attemptsInRun: number;
  /** Attempts over all runs. */
  readonly attempts: number;
  /** The replay that began this run. */
  readonly replayKey: number | null;
  readonly replayGroupId: string | null;
}

/** One HTTP POST, as `GET /v1/events/{id}/attempts` shows it. */
export interface Attempt {
  readonly targetWebhook: string;
  /** From 1; goes on counting through replays. */
  readonly number: number;
  readonly startedAt: number;
  readonly durationMs: number;
  readonly statusCode: number | null;
  readonly error: string | null;
  /** Null also where `error` is older than the codes. */
  readonly errorCode: FailureCode | null;
  readonly responseBody: string;
  /** As `cutLabel` has it. */
  readonly replayGroupId: string | null;
  readonly isReplayGroupIdCut: boolean;
}

/**
 * Decisions, section 15: a label may be as long as a body, and is cut to so many characters where each of a thousand
 * attempts names it. Its records and its replay have it whole.
 */
export const listedLabelCharacters = 255;

/** The label as it stands beside attempts: one that is longer ends with an ellipsis. */
export function cutLabel(label: string): string {
  if (label.length <= listedLabelCharacters) return label;
  const begin = label.slice(0, listedLabelCharacters - 1);
  // Not within a character of two units.
  return `${begin.isWellFormed() ? begin : begin.slice(0, -1)}…`;
}

export type ReplayKind = "single" | "timeline" | "all" | "failed";
export type ReplayStatus = "waiting" | "running" | "completed" | "cancelled";

/** A request to deliver stored events again. `selected` counts events, the other numbers count records. */
export interface Replay {
  readonly id: string;
  readonly kind: ReplayKind;
  readonly replayGroupId: string;
  readonly status: ReplayStatus;
  readonly selected: number;
  readonly queued: number;
  readonly delivered: number;
  readonly failed: number;
  readonly superseded: number;
  readonly skipped: number;
  readonly createdAt: number;
  readonly completedAt: number | null;
}

/** A replay in a list of them. */
export type ListedReplay = Omit<Replay, "replayGroupId"> & { readonly replayGroupId: JsonText };

/** A signing key pair of a tenant. The newest active one signs; the others are still published. */
export interface SigningKey {
  readonly id: string;
  readonly publicKey: Uint8Array;
  /** The private half, encrypted. */
  readonly sealedSeed: Uint8Array;
  readonly activatesAt: number;
  /** From then on it is no longer published; null: the current key. */
  readonly retiresAt: number | null;
}

/** A Standard Webhooks secret, `whsec_…`; for a while after a rotation the earlier one signs too. */
export interface SigningSecret {
  /** The secret, encrypted. */
  readonly sealed: Uint8Array;
  readonly expiresAt: number | null;
}

// ---------------------------------------------------------------- the inbox

/** How an account's inbox answers the deliveries that it gets. */
export interface InboxAnswer {
  readonly status: number;
  readonly delayMs: number;
  /** It never answers, whatever the rest says. */
  readonly silent: boolean;
}

/** A delivery as an inbox received it. */
export interface InboxDelivery {
  readonly id: string;
  readonly receivedAt: number;
  readonly eventId: string;
  readonly headers: Readonly<Record<string, string>>;
  /** UTF-8. */
  readonly body: Uint8Array;
  /** What it is answered with; null: with nothing, in the time that an attempt has. */
  readonly answeredStatus: number | null;
  readonly isTest: boolean;
}

/** A delivery in a list of them. */
export type ListedDelivery = Omit<InboxDelivery, "body"> & { readonly body: JsonText };

// ---------------------------------------------------------------- payments

/**
 * Who pays for a tenant. It outlives it: a deleted account still has a last charge to make, a card to forget and late
 * payments to give back, and nothing in here but the card says whose it was. Money is an integer number of kobo.
 */
export interface BillingAccount {
  readonly key: number;
  /** Tells nothing of the tenant; references at the processor are worked out from it (`billing/references.ts`). */
  readonly id: string;
  /** Null once the tenant has been deleted. */
  readonly tenantKey: number | null;
  /** When a card was verified for the first time: the days from then on are charged. */
  readonly verifiedAt: number | null;
  /** Paid in advance; the next month's end takes it off. */
  readonly creditKobo: number;
  /** When days are invoiced next: a month's end, or at once when closing; null before the first verification, and after the last. */
  readonly nextInvoiceAt: number | null;
  /**
   *   active ──tenant deleted──▶ closing ──last charge made, card forgotten──▶ closed
   *
   * A closed one only gives late payments back.
   */
  readonly state: "active" | "closing" | "closed";
}

/**
 * A card to be verified on a hosted page. There is at most one open one for an account, and its `payment_url` stays while
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
  /** Where the token exists, as `paystack:live`. */
  readonly processor: string;
  /** Token and e-mail of the card at the processor, encrypted (`billing/card-vault.ts`). */
  readonly sealed: Uint8Array;
  /** The same for the same card. */
  readonly signature: string | null;
  readonly brand: string;
  readonly last4: string;
  readonly expMonth: string;
  readonly expYear: string;
  /** The bank said that this card will never do, so it is not asked again. */
  readonly refused: boolean;
  /** When the processor is to be told to forget it; null while it is in use. */
  readonly forgetAt: number | null;
}

/** A plan that was in force and paid for; a day belongs to the highest one that was held on it. */
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
  /** Random; references of its charges are made of it. */
  readonly id: string;
  readonly kind: "upgrade" | "subscription" | "closing";
  readonly state: "open" | "paid" | "void";
  readonly lines: readonly InvoiceLine[];
  /** What the days cost. */
  readonly totalKobo: number;
  readonly creditUsedKobo: number;
  /** What is charged: the total less the credit, or more than it where the least charge is higher. */
  readonly amountKobo: number;
  /** Charges made for it so far. */
  readonly attempts: number;
  readonly firstFailedAt: number | null;
  /** When the next charge is to be made; null: none is planned. */
  readonly nextAttemptAt: number | null;
  /** The tier to go to when an upgrade is paid. */
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
  /** Our name for it at the processor, unique for ever: what makes a repetition harmless. */
  readonly reference: string;
  /** Where it was made, as `sandbox:test`. */
  readonly processor: string;
  readonly kind: "verification" | Invoice["kind"];
  readonly state: "open" | "succeeded" | "failed" | "superseded";
  readonly amountKobo: number;
  readonly invoiceKey: number | null;
  readonly cardKey: number | null;
  readonly createdAt: number;
  /** When the processor was last asked to make it; null: not yet. */
  readonly sentAt: number | null;
  /** From then on it may be asked again, if it knows nothing of the reference: an earlier request has surely ended. */
  readonly resendAt: number | null;
  /** Times that it was looked up. */
  readonly lookUps: number;
  /** When to look it up next; null: it need not be. */
  readonly lookUpAt: number | null;
  /** The hosted page, or the bank's page on which the customer confirms. */
  readonly pageUrl: string | null;
  readonly settledAt: number | null;
  /** Why it failed, in words for the customer. */
  readonly reason: string | null;
  /** Money that has to go back: `due` is to be asked for, `requested` was. */
  readonly refund: "due" | "requested" | "done" | null;
  readonly refundAt: number | null;
}
