import * as v from "valibot";
import type { AuditDetail } from "../domain/audit.ts";
import type { OwnLimits } from "../domain/limits.ts";
import { jsonObject } from "../http/validation.ts";

/** The limits of one account as the operator sets and sees them. One more is a line in each of these. */

const limit = (most: number) => {
  const rule = `must be a whole number from 0 to ${most}, or null for what the plan includes`;
  return v.pipe(v.number(rule), v.integer(rule), v.minValue(0, rule), v.maxValue(most, rule));
};

const limits = {
  events_per_month: limit(1_000_000_000_000),
  // Each event has a record for each of them.
  webhooks: limit(100),
};

export const setLimitsBody = jsonObject({
  events_per_month: v.optional(v.nullable(limits.events_per_month)),
  webhooks: v.optional(v.nullable(limits.webhooks)),
});

export const setLimitsExample = { events_per_month: 250_000, webhooks: 10 };

/** Null: what the plan includes. */
export const shownLimits = v.object({
  events_per_month: v.nullable(limits.events_per_month),
  webhooks: v.nullable(limits.webhooks),
});

export const toLimits = ({ ownEventsPerMonth, ownWebhooks }: OwnLimits): v.InferOutput<typeof shownLimits> => ({
  events_per_month: ownEventsPerMonth,
  webhooks: ownWebhooks,
});

/** Those that are named. */
export const fromLimits = (body: v.InferOutput<typeof setLimitsBody>): Partial<OwnLimits> => ({
  ...(body.events_per_month !== undefined && { ownEventsPerMonth: body.events_per_month }),
  ...(body.webhooks !== undefined && { ownWebhooks: body.webhooks }),
});

/** What an entry about it says. */
export const limitsDetail = (body: v.InferOutput<typeof setLimitsBody>): AuditDetail =>
  Object.fromEntries(
    Object.entries(body).flatMap(([name, value]) => (value === undefined ? [] : [[name, value ?? "default"]])),
  );
