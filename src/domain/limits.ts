import { plans } from "./plans.ts";
import { type Tenant, type TenantChange, tierInForce } from "./tenant.ts";

/**
 * What an account may use: what its plan includes, unless the operator has set something else for it. That is nobody
 * else's to change, so neither an upgrade nor a payment touches it.
 */
export type OwnLimits = Pick<Tenant, "ownEventsPerMonth" | "ownWebhooks">;

/** The events that an account may submit in a calendar month. */
export const quotaOf = (tenant: OwnLimits & Pick<Tenant, "enforcedTier">): number =>
  tenant.ownEventsPerMonth ?? plans[tierInForce(tenant)].eventsPerMonth;

/** The quota once an upgrade that is under way has come to its end. */
export const orderedQuotaOf = ({ ownEventsPerMonth, tier }: OwnLimits & Pick<Tenant, "tier">): number =>
  ownEventsPerMonth ?? plans[tier].eventsPerMonth;

/** The webhooks that an account may have. Before its card is verified it can set up those of its plan. */
export const webhooksAllowed = ({
  ownWebhooks,
  enforcedTier,
  tier,
}: OwnLimits & Pick<Tenant, "enforcedTier" | "tier">): number => ownWebhooks ?? plans[enforcedTier ?? tier].webhooks;

/** The operator sets limits: those that are named, to a number or (null) to the plan's again. */
export function toOwnLimits(tenant: OwnLimits, wanted: Partial<OwnLimits>): TenantChange {
  const change: { -readonly [Limit in keyof OwnLimits]?: number | null } = {};
  for (const limit of ["ownEventsPerMonth", "ownWebhooks"] as const) {
    const value = wanted[limit];
    if (value !== undefined && value !== tenant[limit]) change[limit] = value;
  }
  return change;
}
