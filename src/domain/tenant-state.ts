import type { DeliveryState } from "./delivery.ts";
import type { Tenant } from "./tenant.ts";
import type { Webhook } from "./webhook.ts";

/** What a decision knows about one account, as plain data. */
export interface TenantState {
  /** The account was deleted, or never existed; then the rest means nothing. */
  readonly gone: boolean;
  readonly tenant: Tenant;
  /** In the order in which they were given. */
  readonly webhooks: readonly RegisteredWebhook[];
  readonly counters: Counters;
}

export interface RegisteredWebhook extends Webhook {
  /** Whether it ever had a record; null if unknown. */
  readonly used: boolean | null;
}

/**
 * The events of an account and the states of its records. These are values: each change makes a new one, so that a writer
 * that knows the last one written sees by identity whether there is anything to write.
 *
 *   accepted: events + 1, eventsInMonth + 1, and each record enters PENDING (or FAILED, when there is no webhook, or SKIPPED)
 *   pending ◀──▶ delivered, pending ◀──▶ failed, failed ──▶ delivered: a record moves, as `DeliveryState` says
 */
export interface Counters {
  /** The month of the latest event, as `utcMonth` writes it. */
  readonly month: number;
  readonly eventsInMonth: number;
  readonly events: number;
  readonly pending: number;
  readonly delivered: number;
  readonly failed: number;
  readonly skipped: number;
}

/** The counters of an account that has had no events. */
export const noEvents: Counters = {
  month: 0,
  eventsInMonth: 0,
  events: 0,
  pending: 0,
  delivered: 0,
  failed: 0,
  skipped: 0,
};

/** A UTC calendar month as a number, 202611 (rules, section 2: months of quotas are UTC). */
export function utcMonth(at: number): number {
  const date = new Date(at);
  return date.getUTCFullYear() * 100 + date.getUTCMonth() + 1;
}

/** The counters as of the month of `at`. An event belongs to the month of its ingestion, which never steps back. */
export function openMonth(counters: Counters, at: number): Counters {
  const month = utcMonth(at);
  return month <= counters.month ? counters : { ...counters, month, eventsInMonth: 0 };
}

/** An event was accepted, with these records. */
export function countEvent(
  counters: Counters,
  ingestedAt: number,
  records: readonly { readonly state: DeliveryState }[],
): Counters {
  const counted = copyOf(openMonth(counters, ingestedAt));
  counted.events += 1;
  counted.eventsInMonth += 1;
  for (const { state } of records) counted[countOf[state]] += 1;
  return counted;
}

/** Like `countEvent`, for an event of our own: it takes nothing from the month's quota. */
export function countOwnEvent(counters: Counters, records: readonly { readonly state: DeliveryState }[]): Counters {
  const counted = copyOf(counters);
  counted.events += 1;
  for (const { state } of records) counted[countOf[state]] += 1;
  return counted;
}

/** An event was deleted, with these records. What it took from the month's quota stays taken. */
export function forgetEvent(counters: Counters, records: readonly { readonly state: DeliveryState }[]): Counters {
  const counted = copyOf(counters);
  counted.events -= 1;
  for (const { state } of records) counted[countOf[state]] -= 1;
  return counted;
}

/** There is one more record in a state. */
export function enterState(counters: Counters, state: DeliveryState): Counters {
  const counted = copyOf(counters);
  counted[countOf[state]] += 1;
  return counted;
}

/** There is one record less in a state. */
export function leaveState(counters: Counters, state: DeliveryState): Counters {
  const counted = copyOf(counters);
  counted[countOf[state]] -= 1;
  return counted;
}

/** A record went from one state to another. */
export function moveState(counters: Counters, from: DeliveryState, to: DeliveryState): Counters {
  if (from === to) return counters;
  const counted = copyOf(counters);
  counted[countOf[from]] -= 1;
  counted[countOf[to]] += 1;
  return counted;
}

/** How many records are in a state; undefined: in any. */
export const recordsIn = (
  counters: Omit<Counters, "month" | "eventsInMonth" | "events">,
  state?: DeliveryState,
): number =>
  state === undefined
    ? counters.pending + counters.delivered + counters.failed + counters.skipped
    : counters[countOf[state]];

const countOf = {
  PENDING: "pending",
  DELIVERED: "delivered",
  FAILED: "failed",
  SKIPPED: "skipped",
} as const satisfies Record<DeliveryState, keyof Counters>;

/** Field by field: at every event and every attempt, copies made with `...` cost 2 % more of accepting and settling it. */
const copyOf = ({ month, eventsInMonth, events, pending, delivered, failed, skipped }: Counters) => ({
  month,
  eventsInMonth,
  events,
  pending,
  delivered,
  failed,
  skipped,
});
