import type { BillingAccount, NewLogin } from "./books.ts";
import type { OrderedLogin } from "./books-change.ts";
import type { DomainError } from "./errors.ts";
import { emailTaken } from "./standing.ts";
import type { SuspensionCause, Tenant, TenantChange, Tier } from "./tenant.ts";

/** What an operator or the account itself changes about it (rules, section 4). */
export type TenantDecision =
  | { readonly kind: "changed"; readonly change: TenantChange }
  | { readonly kind: "refused"; readonly error: DomainError };

/** What an account signs in with apart from its id: on paid tiers its e-mail, whatever its case. */
export const loginEmailOf = (tier: Tier, email: string): string | null =>
  tier === "free" ? null : email.toLowerCase();

/** Whether an address is the login of another account. @param holder the account that it is the login of */
export const isTaken = (holder: number | null, tenantKey: number | null): boolean =>
  holder !== null && holder !== tenantKey;

/** The operator sets a tier, and its limits with it. @param holder the account that has the login of that tier */
export function toTier(tenant: Tenant, tier: Tier, holder: number | null): TenantDecision {
  if (isTaken(holder, tenant.key)) return { kind: "refused", error: emailTaken() };
  return { kind: "changed", change: { tier, enforcedTier: tier, loginEmail: loginEmailOf(tier, tenant.email) } };
}

/** @param holder the account that has the new login */
export function toEmail(tenant: Tenant, email: string, holder: number | null): TenantDecision {
  if (isTaken(holder, tenant.key)) return { kind: "refused", error: emailTaken() };
  return { kind: "changed", change: { email, loginEmail: loginEmailOf(tenant.tier, email) } };
}

/** An upgrade has come to nothing: the account returns to the plan in force, and a free account's e-mail is not a login. */
export function toPlanInForce({ tier, enforcedTier }: Tenant): TenantChange {
  if (enforcedTier === null || enforcedTier === tier) return {};
  return { tier: enforcedTier, ...(enforcedTier === "free" && { loginEmail: null }) };
}

/**
 * What an upgrade makes the login: what was ordered with it. If a password that was set since has ended the order, it is the
 * account's own address, as on every paid plan. Null: the account has its login already.
 */
export function loginOfUpgrade(
  tenant: Pick<Tenant, "tier" | "email"> | null,
  targetTier: Tier | null,
  ordered: NewLogin | null,
): Omit<OrderedLogin, "isTaken"> | null {
  if (ordered) return ordered;
  return targetTier !== null && tenant?.tier === "free" ? { email: tenant.email, passwordHash: null } : null;
}

/** The login that comes with an upgrade. An address that another account has taken in the meantime is only a contact. */
export function toLogin(login: OrderedLogin | null): TenantChange {
  if (!login) return {};
  const { email, passwordHash, isTaken } = login;
  return { email, loginEmail: isTaken ? null : email.toLowerCase(), ...(passwordHash !== null && { passwordHash }) };
}

/** @param at null: resumed */
export const toSuspended = (cause: SuspensionCause, at: number | null): TenantChange =>
  cause === "operator" ? { operatorSuspendedAt: at } : { paymentSuspendedAt: at };

/** Ends every session. */
export const withoutSessions = ({ sessionVersion }: Tenant): TenantChange => ({ sessionVersion: sessionVersion + 1 });

/** A new password ends every session. */
export const toPassword = (tenant: Tenant, passwordHash: string): TenantChange => ({
  passwordHash,
  ...withoutSessions(tenant),
});

/** Like `toPassword`; null if another one was set since `verified` was the hash. */
export const replacePassword = (tenant: Tenant, verified: string, passwordHash: string): TenantChange | null =>
  tenant.passwordHash === verified ? toPassword(tenant, passwordHash) : null;

/** How long an account may keep an address without verifying a card. */
const unverifiedEmailMs = 24 * 60 * 60 * 1000;

/** The account whose login an address is, and what it has proved. */
export interface LoginHolder extends Pick<Tenant, "key" | "enforcedTier">, Pick<BillingAccount, "verifiedAt"> {
  /** When it asked for the verification that is open; null: none is. */
  readonly askedAt: number | null;
}

/**
 * Whether an account loses its address to another that asks for it: it asked for a paid plan a day ago, and has not verified
 * a card since. It has proved nothing, and the address may be someone else's. It keeps its id to sign in with, and the
 * address as a contact.
 */
export function losesLogin({ enforcedTier, verifiedAt, askedAt }: LoginHolder, now: number): boolean {
  // Not one that the operator vouches for.
  const hasPlan = enforcedTier !== null && enforcedTier !== "free";
  return !hasPlan && verifiedAt === null && askedAt !== null && askedAt <= now - unverifiedEmailMs;
}

/** The account that keeps its login when another one asks for it. */
export const keeperOf = (holder: LoginHolder | null | undefined, now: number): number | null =>
  holder && !losesLogin(holder, now) ? holder.key : null;
