import type { Database } from "bun:sqlite";
import type { Tenant } from "../../../../src/domain/tenant.ts";
import type { Store } from "../../../../src/store/store.ts";

/** The store as the only account's: others are left from histories before, whose time was another. */
export function ownAccountOnly(store: Store, client: Database) {
  let tenantKey = 0;
  let key = 0;
  const account = client.prepare<{ key: number }, [number]>("select key from billing_account where tenant_key = ?1");
  const due = client.prepare<{ at: number | null; version: number }, [number]>(
    "select due_at as at, version from billing_account where key = ?1",
  );
  const verified = client.prepare<{ at: number | null }, [number]>(
    "select verified_at as at from billing_account where key = ?1",
  );
  const token = client.prepare<{ token: string }, [number]>(
    "select token from card_verification where account_key = ?1 and state = 'open'",
  );
  const tenant = client.prepare<Tenant, [number]>(
    `select key, id, tier, email, enforced_tier as enforcedTier, operator_suspended_at as operatorSuspendedAt,
       payment_suspended_at as paymentSuspendedAt, past_due_at as pastDueAt
     from tenant where key = ?1 and deleted_at is null`,
  );
  const accountKey = () => {
    key ||= account.get(tenantKey)?.key ?? 0;
    return key;
  };
  const dueAt = () => due.get(accountKey())?.at ?? null;
  return {
    watch(of: number) {
      tenantKey = of;
    },
    tenantKey: () => tenantKey,
    accountKey,
    dueAt,
    isVerified: () => verified.get(accountKey())?.at != null,
    openToken: () => token.get(accountKey())?.token ?? null,
    tenant: () => tenant.get(tenantKey),
    store: {
      ...store,
      async dueAccounts(now: number) {
        const { at, version } = due.get(accountKey()) ?? { at: null, version: 0 };
        const isDue = at !== null && at <= now;
        return { accounts: isDue ? [{ key: accountKey(), version }] : [], nextAt: isDue ? null : at };
      },
    } satisfies Store,
  };
}

export type OwnAccount = ReturnType<typeof ownAccountOnly>;
