import type { Tenant } from "./domain.ts";
import { DomainError } from "./errors.ts";

/**
 * Why an account may not put work into the system now: ingest, replay, test, upgrade (decisions, section 4). Null when it
 * may. Reading, a new payment method and deletion are always possible.
 */
export function refusalOfWork(tenant: Tenant): DomainError | null {
  if (tenant.operatorSuspendedAt !== null) {
    return new DomainError({
      kind: "forbidden",
      code: "account_suspended",
      message: "The account is suspended by the operator of this server; ask them to resume it.",
    });
  }
  if (tenant.paymentSuspendedAt !== null) {
    return new DomainError({
      kind: "payment_required",
      code: "account_suspended",
      message:
        "The account is suspended because a charge is outstanding; verify a card with POST /v1/tenants/payment-method.",
    });
  }
  return null;
}

/** As `refusalOfWork`; an account made on a paid tier also has to verify its card before its first event. */
export function refusalOfIngestion(tenant: Tenant): DomainError | null {
  if (tenant.enforcedTier === null) {
    return new DomainError({
      kind: "payment_required",
      code: "card_not_verified",
      message:
        "The account takes events once its card is verified; open its payment_url, or get one with POST /v1/tenants/payment-method.",
    });
  }
  return refusalOfWork(tenant);
}
