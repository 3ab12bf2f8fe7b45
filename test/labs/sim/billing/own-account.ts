import type { Tenant } from "../../../../src/domain/tenant.ts";
import type { Store } from "../../../../src/store/store.ts";
import type { SimulatedStore } from "./simulated-store.ts";

interface AccountRow {
  key: number;
  dueAt: number | null;
  version: number;
  verifiedAt: number | null;
  token: string | null;
}

const accountText = `select key, due_at as dueAt, version, verified_at as verifiedAt,
    (select token from card_verification where account_key = billing_account.key and state = 'open') as token
  from billing_account`;

/**
 * The store as the only account's: others are left from histories before, whose time was another. What it tells of the
 * account is what was there at the last look.
 */
export function ownAccountOnly({ rows, writes }: SimulatedStore) {
  let tenantKey = 0;
  let key = 0;
  let lookedAt: number | null = null;
  let account: AccountRow | null = null;
  let tenant: Tenant | null = null;

  async function look(): Promise<void> {
    const at = writes();
    if (at === lookedAt) return;
    // By its own key as soon as that is known: a deleted tenant has left it.
    const [accounts, tenants] = await Promise.all([
      key === 0
        ? rows<AccountRow>(`${accountText} where tenant_key = ?1`, tenantKey)
        : rows<AccountRow>(`${accountText} where key = ?1`, key),
      rows<Tenant>(
        `select key, id, tier, email, enforced_tier as enforcedTier, operator_suspended_at as operatorSuspendedAt,
           payment_suspended_at as paymentSuspendedAt, past_due_at as pastDueAt
         from tenant where key = ?1 and deleted_at is null`,
        tenantKey,
      ),
    ]);
    account = accounts[0] ?? null;
    tenant = tenants[0] ?? null;
    key = account?.key ?? 0;
    lookedAt = at;
  }

  return {
    watch(of: number) {
      tenantKey = of;
    },
    look,
    tenantKey: () => tenantKey,
    accountKey: () => key,
    dueAt: () => account?.dueAt ?? null,
    isVerified: () => account?.verifiedAt != null,
    openToken: () => account?.token ?? null,
    tenant: () => tenant,
    over: (store: Store): Store => ({
      ...store,
      async dueAccounts(now: number) {
        await look();
        const { key = 0, dueAt: at = null, version = 0 } = account ?? {};
        const isDue = at !== null && at <= now;
        return { accounts: isDue ? [{ key, version }] : [], nextAt: isDue ? null : at };
      },
    }),
  };
}

export type OwnAccount = ReturnType<typeof ownAccountOnly>;
