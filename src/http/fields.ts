import * as v from "valibot";
import { tiersAscending } from "../domain/plans.ts";
import type { SuspensionCause, TenantStatus } from "../domain/tenant.ts";

/** Fields shared by the bodies of several features. */

/** A tier, also one that only the operator can set. */
export const anyTier = v.picklist(tiersAscending, 'must be "free", "pro", "business" or "enterprise"');

/** How an account stands, in the words of `statusOf`. */
export const tenantStatus = v.picklist([
  "active",
  "pending_verification",
  "past_due",
  "suspended",
] as const satisfies readonly TenantStatus[]);

/** Who has suspended an account: it may be both. */
export const suspendedBy = v.array(v.picklist(["operator", "payment"] as const satisfies readonly SuspensionCause[]));

/**
 * Characters that are invisible or that reorder the text around them: control and format characters (soft hyphen, zero-width
 * space and joiners, directional marks, byte order mark, tags) and fillers. Two addresses that look alike would be two
 * logins.
 */
const unseen = /[\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}]/u;

/** Of the usual shape; whether it exists, only a mail to it would tell. */
export const emailAddress = v.pipe(
  v.string("must be a string"),
  v.maxLength(254, "must have at most 254 characters"),
  v.regex(/^[^\s@]+@[^\s@.]+(?:\.[^\s@.]+)+$/, "must be an e-mail address such as ada@example.com"),
  v.check((text) => !unseen.test(text), "must not contain invisible or direction-changing characters"),
);
