import type { InvoiceLine, PlanPeriod } from "../domain/books.ts";
import { isHigherTier } from "../domain/plans.ts";
import type { Tier } from "../domain/tenant.ts";
import { type BillingCalendar, daysIn, monthOfDay } from "./calendar.ts";

/** Monthly price of each tier, in kobo. */
export type Prices = Readonly<Record<Tier, number>>;

/** Days to be paid for, and what they cost. */
export interface Usage {
  readonly days: readonly { readonly day: number; readonly tier: Tier }[];
  readonly lines: readonly InvoiceLine[];
  readonly totalKobo: number;
}

/** The plan that each day up to `throughDay` belongs to: the highest that was held on it (rules, section 12). */
export function heldDays(
  periods: readonly PlanPeriod[],
  calendar: BillingCalendar,
  throughDay: number,
): Map<number, Tier> {
  const held = new Map<number, Tier>();
  for (const { tier, startedAt, endedAt } of periods) {
    if (endedAt !== null && endedAt <= startedAt) continue;
    // A plan that ended at midnight was not held on the day that began then.
    const last = endedAt === null ? throughDay : Math.min(throughDay, calendar.dayOf(endedAt - 1));
    for (let day = calendar.dayOf(startedAt); day <= last; day += 1) {
      const other = held.get(day);
      if (other === undefined || isHigherTier(tier, other)) held.set(day, tier);
    }
  }
  return held;
}

/**
 * The cost of the days that are on no invoice yet: for each plan and month, the monthly price times the share of its
 * days, rounded down to a kobo.
 */
export function usageOf(held: ReadonlyMap<number, Tier>, isInvoiced: (day: number) => boolean, prices: Prices): Usage {
  const days = [...held]
    .filter(([day, tier]) => prices[tier] > 0 && !isInvoiced(day))
    .map(([day, tier]) => ({ day, tier }))
    .sort((a, b) => a.day - b.day);
  const groups = Map.groupBy(days, ({ day, tier }) => `${monthOfDay(day)} ${tier}`);
  const lines = [...groups.values()].flatMap((group): InvoiceLine[] => {
    const [first] = group;
    if (!first) return [];
    const month = monthOfDay(first.day);
    const { tier } = first;
    const daysInMonth = daysIn(month);
    const amountKobo = Math.floor((prices[tier] * group.length) / daysInMonth);
    return [{ month, tier, days: group.length, daysInMonth, amountKobo }];
  });
  return { days, lines, totalKobo: lines.reduce((sum, { amountKobo }) => sum + amountKobo, 0) };
}
