/**
 * Here and in the other domain types, times are milliseconds since the Unix epoch, and `key` is the store's own short key
 * of a row.
 */

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
  /** What the operator has set in place of the plan's, whatever the plan is or becomes; null: the plan's. */
  readonly ownEventsPerMonth: number | null;
  readonly ownWebhooks: number | null;
  /** How long its events and their payloads are kept, in days; 0: forever. Null: as for any account. */
  readonly ownRetentionDays: number | null;
  readonly ownPayloadDays: number | null;
  /** The most bytes that its events may take; null: any number. */
  readonly ownStorageBytes: number | null;
  /** Since when they have been taking more; null: they are not, as far as is known. */
  readonly storageFullAt: number | null;
}

export type TenantStatus = "suspended" | "past_due" | "pending_verification" | "active";

export type SuspensionCause = "operator" | "payment";

/** Rules, section 4: derived, in this order. */
export function statusOf(tenant: Tenant): TenantStatus {
  if (tenant.operatorSuspendedAt !== null || tenant.paymentSuspendedAt !== null) return "suspended";
  if (tenant.pastDueAt !== null) return "past_due";
  return tenant.enforcedTier === tenant.tier ? "active" : "pending_verification";
}

/** Why an account is suspended; empty: it is not. */
export const suspensionCauses = (tenant: Tenant): SuspensionCause[] => [
  ...(tenant.operatorSuspendedAt === null ? [] : (["operator"] as const)),
  ...(tenant.paymentSuspendedAt === null ? [] : (["payment"] as const)),
];

/** The plan whose limits apply to an account. */
export const tierInForce = ({ enforcedTier }: Pick<Tenant, "enforcedTier">): Tier => enforcedTier ?? "free";

/**
 * What changes about an account. `loginEmail` is the address that it signs in with; an account without one signs in with
 * its id.
 */
export type TenantChange = Partial<Omit<Tenant, "key" | "id" | "name" | "createdAt">> & {
  readonly loginEmail?: string | null;
};
