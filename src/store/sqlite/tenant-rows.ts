import type { Database } from "bun:sqlite";
import { changesOf } from "../../domain/change.ts";
import type { TenantChange } from "../../domain/tenant.ts";
import type { HeldTenant } from "./held-tenants.ts";
import { createPatch } from "./patch.ts";
import type { WriteTransaction } from "./transaction.ts";

/** The tenant rows, which both the tenant verbs and the payment verbs change. */
export interface TenantRows {
  /**
   * Writes a change to a living tenant's row and to its held state, and reports it; writes nothing if nothing changes. With a
   * password end the link that was to replace it (rules, section 16), and the login of an upgrade that is not settled: it
   * was ordered before, perhaps by whoever is now locked out.
   */
  change(tx: WriteTransaction, held: HeldTenant, change: TenantChange): void;
  /** Notes up to which event payloads of a tenant were erased. This is not kept in memory, so it is not reported as a change. */
  noteErased(tenantKey: number, toSeq: number): void;
  /** The tenant that has this login; null when none has it. */
  holderOf(loginEmail: string | null): number | null;
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
  const byLogin = client.prepare<{ key: number }, [string | null]>("select key from tenant where login_email = ?1");
  const noteErased = client.prepare(
    "update tenant set payloads_erased_to = max(coalesce(payloads_erased_to, 0), ?2) where key = ?1",
  );
  return {
    noteErased: (tenantKey, toSeq) => void noteErased.run(tenantKey, toSeq),
    change(tx, held, change) {
      if (Object.keys(change).length === 0) return;
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
  };
}
