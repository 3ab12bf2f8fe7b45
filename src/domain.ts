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

/** A record as the events endpoints show it (specification, "Event record"; decisions, section 7). */
export interface EventRecord {
  readonly eventId: string;
  readonly state: DeliveryState;
  readonly ingestedAt: number;
  /** "" when no webhook was registered as the event arrived. */
  readonly targetWebhook: string;
  readonly errorReason: string | null;
  /** The very bytes that the tenant submitted. */
  readonly payload: Uint8Array;
  readonly attempts: number;
  readonly lastAttemptAt: number | null;
  readonly nextAttemptAt: number | null;
  readonly replayGroupId: string | null;
}

/** A delivery whose time has come, with all that one attempt needs. */
export interface DueDelivery {
  readonly deliveryKey: number;
  readonly tenantKey: number;
  readonly tenantId: string;
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
  readonly responseBody: string;
  readonly replayGroupId: string | null;
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
