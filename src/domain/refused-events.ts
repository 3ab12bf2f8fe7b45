import type { DomainError } from "./errors.ts";

/**
 * Why the events of a request were not accepted (rules, section 6):
 * - `quota`: the month's quota is used up
 * - `inactive`: the account is suspended, or its card has not been verified
 * - `invalid`: the request breaks a rule, is too large, or reuses another request's key
 */
const refusalReasons = ["quota", "inactive", "invalid"] as const;
export type RefusalReason = (typeof refusalReasons)[number];

export type RefusedEvents = Readonly<Record<RefusalReason, number>>;

/** Sums of one month, from rows in any order; a reason without rows is 0. */
export function sumRefused(
  rows: readonly { readonly reason: RefusalReason; readonly events: number }[],
): RefusedEvents {
  const sums = { quota: 0, inactive: 0, invalid: 0 };
  for (const { reason, events } of rows) sums[reason] += events;
  return sums;
}

/**
 * Null: it is not counted. A 503 is the server's own trouble, and the same request will be accepted later; a request that
 * broke off was never made.
 */
export function refusalReasonOf({ kind, code }: Pick<DomainError, "kind" | "code">): RefusalReason | null {
  switch (kind) {
    case "rate_limited":
      return code === "quota_exceeded" || code === "storage_exceeded" ? "quota" : null;
    case "payment_required":
    case "forbidden":
      return "inactive";
    case "invalid":
      return brokenOff.has(code) ? null : "invalid";
    case "too_large":
    case "unsupported_media_type":
    case "idempotency_conflict":
      return "invalid";
    default:
      return null;
  }
}

const brokenOff: ReadonlySet<string> = new Set(["request_abandoned", "body_incomplete"]);
