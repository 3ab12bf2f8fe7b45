import { plans } from "./plans.ts";
import { type Tenant, type TenantChange, tierInForce } from "./tenant.ts";

/**
 * What an account may use: what its plan includes, unless the operator has set something else for it. Only the operator
 * can change that, so neither an upgrade nor a payment touches it.
 */
export type OwnLimits = Pick<
  Tenant,
  "ownEventsPerMonth" | "ownWebhooks" | "ownRetentionDays" | "ownPayloadDays" | "ownStorageBytes"
>;

const names = [
  "ownEventsPerMonth",
  "ownWebhooks",
  "ownRetentionDays",
  "ownPayloadDays",
  "ownStorageBytes",
] as const satisfies readonly (keyof OwnLimits)[];

/** The events that an account may submit in a calendar month. */
export const quotaOf = (tenant: Pick<Tenant, "ownEventsPerMonth" | "enforcedTier">): number =>
  tenant.ownEventsPerMonth ?? plans[tierInForce(tenant)].eventsPerMonth;

/** The quota once an upgrade under way is complete. */
export const orderedQuotaOf = ({ ownEventsPerMonth, tier }: Pick<Tenant, "ownEventsPerMonth" | "tier">): number =>
  ownEventsPerMonth ?? plans[tier].eventsPerMonth;

/** The number of webhooks that an account may have. Before its card is verified, it can set up those of its plan. */
export const webhooksAllowed = ({
  ownWebhooks,
  enforcedTier,
  tier,
}: Pick<Tenant, "ownWebhooks" | "enforcedTier" | "tier">): number =>
  ownWebhooks ?? plans[enforcedTier ?? tier].webhooks;

/** The operator sets limits: the named ones change to a number, or (null) back to the plan's. */
export function toOwnLimits(tenant: OwnLimits, wanted: Partial<OwnLimits>): TenantChange {
  const change: { -readonly [Limit in keyof OwnLimits]?: number | null } = {};
  for (const limit of names) {
    const value = wanted[limit];
    if (value !== undefined && value !== tenant[limit]) change[limit] = value;
  }
  // Whether the new limit is exceeded will be found out.
  return "ownStorageBytes" in change ? { ...change, storageFullAt: null } : change;
}
