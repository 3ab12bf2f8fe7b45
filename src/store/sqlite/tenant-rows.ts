import type { Database } from "bun:sqlite";
import { changesOf } from "../../domain/change.ts";
import type { TenantChange } from "../../domain/tenant.ts";
import { keeperOf, type LoginHolder, losesLogin } from "../../domain/tenant-change.ts";
import type { HeldTenant } from "./held-tenants.ts";
import { createPatch } from "./patch.ts";
import type { WriteTransaction } from "./transaction.ts";

/** The tenant rows, which both the tenant verbs and the payment verbs change. */
export interface TenantRows {
  /**
   * Writes a change to a living tenant's row and to its held state, and reports it; writes nothing if nothing changes. With a
   * password end the link that was to replace it (rules, section 16), and the login of an upgrade that is not settled: it
   * was ordered before, perhaps by whoever is now locked out. A login is taken from an account that does not keep it.
   */
  change(tx: WriteTransaction, held: HeldTenant, change: TenantChange): void;
  /** Notes up to which event payloads of a tenant were erased. This is not kept in memory, so it is not reported as a change. */
  noteErased(tenantKey: number, toSeq: number): void;
  /** The tenant that has this login; null when none has it. */
  holderOf(loginEmail: string | null): number | null;
  /** Like `holderOf`; null also when its holder loses it to whoever asks for it now. `change` then takes it, or `takeLogin`. */
  keeperOf(loginEmail: string | null, now: number): number | null;
  /** Takes a login from a holder that does not keep it. @param tenantKey who takes it; null: it is about to be created */
  takeLogin(loginEmail: string, tenantKey: number | null, now: number): void;
}

export function createTenantRows(client: Database): TenantRows {
  const patch = createPatch<TenantChange>(client, "tenant", {
    email: "email",
    loginEmail: "login_email",
    tier: "tier",
    enforcedTier: "enforced_tier",
    passwordHash: "password_hash",
    sessionVersion: "session_version",
    operatorSuspendedAt: "operator_suspended_at",
    paymentSuspendedAt: "payment_suspended_at",
    pastDueAt: "past_due_at",
    ownEventsPerMonth: "own_events_per_month",
    ownWebhooks: "own_webhooks",
    ownRetentionDays: "own_retention_days",
    ownPayloadDays: "own_payload_days",
    ownStorageBytes: "own_storage_bytes",
    storageFullAt: "storage_full_at",
  });
  const forgetReset = client.prepare("delete from password_reset where tenant_key = ?1");
  const forgetOrdered = client.prepare(
    `update invoice set new_email = null, new_password_hash = null
     where state = 'open' and account_key = (select key from billing_account where tenant_key = ?1)`,
  );
  const byLogin = client.prepare<LoginHolder, [string | null]>(
    `select tenant.key, tenant.enforced_tier as enforcedTier, account.verified_at as verifiedAt,
       verification.created_at as askedAt
     from tenant left join billing_account account on account.tenant_key = tenant.key
       left join card_verification verification on verification.account_key = account.key and verification.state = 'open'
     where tenant.login_email = ?1`,
  );
  const freeLogin = client.prepare<null, [number]>("update tenant set login_email = null where key = ?1");
  const noteErased = client.prepare(
    "update tenant set payloads_erased_to = max(coalesce(payloads_erased_to, 0), ?2) where key = ?1",
  );
  const takeLogin: TenantRows["takeLogin"] = (loginEmail, tenantKey, now) => {
    const holder = byLogin.get(loginEmail);
    if (holder && holder.key !== tenantKey && losesLogin(holder, now)) freeLogin.run(holder.key);
  };
  return {
    takeLogin,
    noteErased: (tenantKey, toSeq) => void noteErased.run(tenantKey, toSeq),
    change(tx, held, change) {
      if (Object.keys(change).length === 0) return;
      if (change.loginEmail) takeLogin(change.loginEmail, held.tenant.key, tx.now);
      patch(held.tenant.key, change);
      if (change.passwordHash !== undefined) {
        for (const statement of [forgetReset, forgetOrdered]) statement.run(held.tenant.key);
      }
      const { loginEmail: _, ...changed } = change;
      const before = held.tenant;
      held.tenant = { ...before, ...changed };
      tx.changed(...changesOf(before, held.tenant));
    },
    holderOf: (loginEmail) => byLogin.get(loginEmail)?.key ?? null,
    keeperOf: (loginEmail, now) => keeperOf(byLogin.get(loginEmail), now),
  };
}
