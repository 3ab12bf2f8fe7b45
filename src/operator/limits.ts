import * as v from "valibot";
import type { AuditDetail } from "../domain/audit.ts";
import type { OwnLimits } from "../domain/limits.ts";
import { jsonObject } from "../http/validation.ts";

/** The limits of one account as the operator sets and sees them. A new limit takes one line in each of the objects below. */

/** The largest value that each may have. */
export const largestLimits = {
  events_per_month: 1_000_000_000_000,
  // Each event has a record for each webhook.
  webhooks: 100,
  retention_days: 3_650,
  retention_payloads_days: 3_650,
  storage_bytes: 1e15,
};

const limit = (most: number) => limitWith(most, "or null for what its tier includes");

function limitWith(most: number, otherwise: string) {
  const rule = `must be a whole number from 0 to ${most}, ${otherwise}`;
  return v.pipe(v.number(rule), v.integer(rule), v.minValue(0, rule), v.maxValue(most, rule));
}

const limits = {
  events_per_month: limit(largestLimits.events_per_month),
  webhooks: limit(largestLimits.webhooks),
};

const kept = {
  retention_days: limitWith(
    largestLimits.retention_days,
    "0 for ever, or null for as long as the server keeps those of any account",
  ),
  retention_payloads_days: limitWith(
    largestLimits.retention_payloads_days,
    "0 for as long as the events, or null for as long as the server keeps those of any account",
  ),
  storage_bytes: limitWith(largestLimits.storage_bytes, "or null for any number"),
};

export const setLimitsBody = jsonObject(
  {
    events_per_month: v.optional(v.nullable(limits.events_per_month)),
    webhooks: v.optional(v.nullable(limits.webhooks)),
    retention_days: v.optional(v.nullable(kept.retention_days)),
    retention_payloads_days: v.optional(v.nullable(kept.retention_payloads_days)),
    storage_bytes: v.optional(v.nullable(kept.storage_bytes)),
  },
  ["events_this_month"],
);

export const setLimitsExample = {
  ...{ events_per_month: 250_000, webhooks: 10 },
  ...{ retention_days: 30, retention_payloads_days: 7, storage_bytes: 5_000_000_000 },
};

/** Null: what its tier includes. */
export const shownLimits = v.object({
  events_per_month: v.nullable(limits.events_per_month),
  webhooks: v.nullable(limits.webhooks),
  retention_days: v.nullable(kept.retention_days),
  retention_payloads_days: v.nullable(kept.retention_payloads_days),
  storage_bytes: v.nullable(kept.storage_bytes),
});

export const toLimits = (own: OwnLimits): v.InferOutput<typeof shownLimits> => ({
  events_per_month: own.ownEventsPerMonth,
  webhooks: own.ownWebhooks,
  retention_days: own.ownRetentionDays,
  retention_payloads_days: own.ownPayloadDays,
  storage_bytes: own.ownStorageBytes,
});

/** Only the limits that the body names. */
export const fromLimits = (body: v.InferOutput<typeof setLimitsBody>): Partial<OwnLimits> => ({
  ...(body.events_per_month !== undefined && { ownEventsPerMonth: body.events_per_month }),
  ...(body.webhooks !== undefined && { ownWebhooks: body.webhooks }),
  ...(body.retention_days !== undefined && { ownRetentionDays: body.retention_days }),
  ...(body.retention_payloads_days !== undefined && { ownPayloadDays: body.retention_payloads_days }),
  ...(body.storage_bytes !== undefined && { ownStorageBytes: body.storage_bytes }),
});

/** How an audit entry describes the change. */
export const limitsDetail = (body: v.InferOutput<typeof setLimitsBody>): AuditDetail =>
  Object.fromEntries(
    Object.entries(body).flatMap(([name, value]) => (value === undefined ? [] : [[name, value ?? "default"]])),
  );
