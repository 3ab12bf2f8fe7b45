import type { Tier } from "./tenant.ts";

/** What a tier includes (specification, "Limits"; rules, section 4). */
export interface Plan {
  /** Webhooks registered at the same time. */
  readonly webhooks: number;
  /** Events accepted in one calendar month, UTC. */
  readonly eventsPerMonth: number;
}

/** Specification, "Limits"; enterprise accounts get theirs from the operator. */
export const plans: Readonly<Record<Tier, Plan>> = {
  free: { webhooks: 1, eventsPerMonth: 10_000 },
  pro: { webhooks: 1, eventsPerMonth: 5_000_000 },
  business: { webhooks: 2, eventsPerMonth: 25_000_000 },
  enterprise: { webhooks: 3, eventsPerMonth: 100_000_000 },
};

/** Tiers from the lowest to the highest: an upgrade goes to the right, and nothing goes to the left on its own. */
export const tiersAscending = ["free", "pro", "business", "enterprise"] as const satisfies readonly Tier[];

/** Whether the move is an upgrade; nothing else is offered to accounts. */
export function isHigherTier(target: Tier, current: Tier): boolean {
  return tiersAscending.indexOf(target) > tiersAscending.indexOf(current);
}

/** Price of a month of each tier, in kobo; enterprise is invoiced by the operator, outside the program. */
export const pricesOf = (config: {
  proPriceKobo: number;
  businessPriceKobo: number;
}): Readonly<Record<Tier, number>> => ({
  free: 0,
  pro: config.proPriceKobo,
  business: config.businessPriceKobo,
  enterprise: 0,
});
