import { laneSlots } from "./event-schema.ts";
import type { Transaction } from "./pool.ts";

/** A lane's share of a tenant's quota. */
export interface LaneQuota {
  /** Slot of the lane. */
  readonly slot: number;
  readonly month: number;
  readonly used: number;
  /** Both spent and unspent. */
  readonly granted: number;
}

/** A lane that asks gets one part in this many of what has not been granted yet. */
const grantedPart = 16;

/** The lane of a node that spends quota. */
export const acceptLaneOf = (node: { readonly slot: number }): number => node.slot * laneSlots;

/**
 * The lanes of a tenant, locked until the transaction ends: what a lane has in progress comes before, and from then on none
 * spends anything. The tenant has to be locked, too, or a lane that has no row yet could be missed.
 */
export const lockQuota = ({ run }: Pick<Transaction, "run">, tenantKey: number): Promise<LaneQuota[]> =>
  run<LaneQuota>(
    `select slot, month, used::float8 as used, granted::float8 as granted from usage
      where tenant_key = $1::bigint order by slot for update`,
    [tenantKey],
  );

/** What all lanes have spent in the latest month that any of them is in. */
export function spentOf(lanes: readonly LaneQuota[]): { month: number; eventsInMonth: number } {
  const month = Math.max(0, ...lanes.map((lane) => lane.month));
  return { month, eventsInMonth: sum(lanes.map((lane) => (lane.month === month ? lane.used : 0))) };
}

/**
 * Spends, and grants the lane more to spend on its own: a part of what is free. If nothing is free, it comes from what others
 * have not spent, in the order of their slots. So the sum of all grants never exceeds the quota, and no lane has to ask
 * another.
 *
 * @returns the lanes that change; the one that spends is the last
 */
export function spend(
  lanes: readonly LaneQuota[],
  { slot, events, month, quota }: { slot: number; events: number; month: number; quota: number },
): LaneQuota[] {
  const inMonth = lanes.map((lane) => (lane.month === month ? lane : { ...lane, month, used: 0, granted: 0 }));
  const before = inMonth.find((lane) => lane.slot === slot) ?? { slot, month, used: 0, granted: 0 };
  const used = before.used + events;
  const own = { ...before, used, granted: Math.max(used, before.granted) };
  const others = inMonth.filter((lane) => lane.slot !== slot);
  let free = quota - own.granted - sum(others.map(({ granted }) => granted));
  const poorer: LaneQuota[] = [];
  for (const lane of [...others, own]) {
    const unspent = Math.min(lane.granted - lane.used, -free);
    if (unspent <= 0) continue;
    free += unspent;
    const left = lane.granted - unspent;
    if (lane === own) own.granted = left;
    else poorer.push({ ...lane, granted: left });
  }
  return [...poorer, { ...own, granted: own.granted + Math.floor(Math.max(0, free) / grantedPart) }];
}

const sum = (numbers: readonly number[]) => numbers.reduce((total, one) => total + one, 0);
