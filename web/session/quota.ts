import type { Account } from "../api/types.ts";

/** From now on events are refused. Without a verified card there is no quota to use up. */
export const isUsedUp = ({ events_this_month: used, enforced_events_per_month: quota }: Account): boolean =>
  quota > 0 && used >= quota;

const nearly = 0.8;

/** Events will be refused soon. */
export const isNearlyUsedUp = ({ events_this_month: used, enforced_events_per_month: quota }: Account): boolean =>
  quota > 0 && used >= nearly * quota;

/** When the count of events starts over: quota months are UTC. */
export function quotaResetsAt(now: number): string {
  const date = new Date(now);
  return new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1)).toISOString();
}

/** Events of this month that were not accepted, for whatever reason. */
export const refusedOf = ({ refused_this_month: { quota, inactive, invalid } }: Account): number =>
  quota + inactive + invalid;
