import { laneSlots } from "./event-schema.ts";
import type { Transaction } from "./pool.ts";

/** What a lane has of the quota of a tenant. */
export interface LaneQuota {
  /** Of the lane. */
  readonly slot: number;
  readonly month: number;
  readonly used: number;
  /** Spent and unspent. */
  readonly granted: number;
}

/** Of what nobody has been granted yet, a lane that asks gets this part. */
const grantedPart = 16;

/** The lane of a node that spends. */
export const acceptLaneOf = (node: { readonly slot: number }): number => node.slot * laneSlots;

/**
 * The lanes of a tenant, locked until the transaction ends: what a lane has under way comes before, and then none spends
 * anything. The tenant has to be locked, too, or a lane that has no row yet could be missed.
 */
export const lockQuota = ({ run }: Pick<Transaction, "run">, tenantKey: number): Promise<LaneQuota[]> =>
  run<LaneQuota>(
    `select slot, month, used::float8 as used, granted::float8 as granted from usage
      where tenant_key = $1::bigint order by slot for update`,
    [tenantKey],
  );

/** What all of them have spent in the latest month that any of them is in. */
export function spentOf(lanes: readonly LaneQuota[]): { month: number; eventsInMonth: number } {
  const month = Math.max(0, ...lanes.map((lane) => lane.month));
  return { month, eventsInMonth: sum(lanes.map((lane) => (lane.month === month ? lane.used : 0))) };
}

/**
 * Spends, and gives the lane more to spend by itself: a part of what is free. If nothing is, it comes from what others have
 * not spent, in the order of their slots. So all that is granted is at most the quota, and no lane has to ask another.
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
