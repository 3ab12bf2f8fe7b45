import { DomainError, invalidField, unavailable } from "./errors.ts";
import { isHigherTier } from "./plans.ts";
import type { Tenant, Tier } from "./tenant.ts";

/** The account was deleted while the request was under way: its credential is no longer valid. */
export const accountGone = () =>
  new DomainError({ kind: "unauthenticated", code: "account_gone", message: "The account no longer exists." });

/** The API key given is not one, or no longer one; the same words for every reason. */
export const apiKeyRefused = () =>
  new DomainError({
    kind: "unauthenticated",
    code: "unauthenticated",
    message: "Authorization must be `Bearer <API key>` with an active key; GET /v1/tenants/api-keys lists them.",
  });

/** Every write for an account checks this first: it may have been deleted while the request was under way. */
export const refusalOfWrite = ({ gone }: { readonly gone: boolean }): DomainError | null =>
  gone ? accountGone() : null;

export const emailTaken = () =>
  invalidField(
    "email",
    "is already the login of another account; use a different address or log in to that account",
    "email_taken",
  );

/** This server has no payment processor. */
export const paymentsUnavailable = () =>
  unavailable("This server offers no other tiers; ask its operator for higher limits.", "payments_unavailable", 3600);

/** The operator started this server paused (`POSTRIDER_PAUSED`). */
export const deliveriesPaused = () =>
  unavailable(
    "The operator of this server has paused deliveries; events are stored and go out when deliveries resume.",
    "deliveries_paused",
    60,
  );

/** Like `deliveriesPaused`. */
export const chargesPaused = () =>
  unavailable("The operator of this server has paused payments; nothing was charged or changed.", "charges_paused", 60);

/** The operator has suspended the account. */
export const suspendedByOperator = () =>
  new DomainError({
    kind: "forbidden",
    code: "account_suspended",
    message: "The operator of this server has suspended the account; ask them to resume it.",
  });

/** The account is suspended until a charge that failed is paid (rules, section 12). */
export const suspendedForCharge = () =>
  new DomainError({
    kind: "payment_required",
    code: "account_suspended",
    message: "The account is suspended for an outstanding charge; verify a card with POST /v1/tenants/payment-method.",
  });

/** The account was created on a paid tier, and no card has been verified yet. */
export const cardNotVerified = () =>
  new DomainError({
    kind: "payment_required",
    code: "card_not_verified",
    message:
      "Verify a card to activate the account: open its payment_url, or get one with POST /v1/tenants/payment-method.",
  });

/**
 * Why an account may not put work into the system now: ingest, replay, test, upgrade (rules, section 4). Null if it may.
 * Reading, a new payment method and deletion are always possible.
 */
export function refusalOfWork(tenant: Tenant): DomainError | null {
  if (tenant.operatorSuspendedAt !== null) return suspendedByOperator();
  return tenant.paymentSuspendedAt === null ? null : suspendedForCharge();
}

/** Like `refusalOfWork`; an account created on a paid tier must also verify its card before its first event. */
export function refusalOfIngestion(tenant: Tenant): DomainError | null {
  return tenant.enforcedTier === null ? cardNotVerified() : refusalOfWork(tenant);
}

/** By code, where nothing is sold. */
const unsoldSentences: Readonly<Record<string, string>> = {
  account_suspended: "The account is suspended; ask the operator of this server.",
  card_not_verified: "The account is not active yet; ask the operator of this server.",
  charge_outstanding: "The account cannot change its tier now; ask the operator of this server.",
};

/**
 * The same refusal as a server says it that sells nothing. An account may have a card to verify, or a charge to pay, from a
 * time when it did; what the usual sentence sends it to is 503 now.
 */
export function withoutSales(error: DomainError): DomainError {
  const message = error.kind === "payment_required" ? unsoldSentences[error.code] : undefined;
  return message === undefined ? error : new DomainError({ kind: error.kind, code: error.code, message });
}

/** Why an account may not move to a tier now (rules, section 12); null if it may. */
export function refusalOfUpgrade(tenant: Tenant, tier: Tier): DomainError | null {
  if (tier === tenant.tier && tenant.enforcedTier !== tier) {
    return invalidField(
      "tier",
      `must be higher than "${tier}", to which an upgrade is already pending; complete it with the payment_url of GET /v1/tenants/billing`,
      "not_an_upgrade",
    );
  }
  if (!isHigherTier(tier, tenant.tier)) {
    return invalidField(
      "tier",
      `must be higher than "${tenant.tier}", the current tier; downgrades are not supported`,
      "not_an_upgrade",
    );
  }
  const refusal = refusalOfWork(tenant);
  if (refusal || tenant.pastDueAt === null) return refusal;
  return new DomainError({
    kind: "payment_required",
    code: "charge_outstanding",
    message: "The account has an outstanding charge; verify a card with POST /v1/tenants/payment-method first.",
  });
}
