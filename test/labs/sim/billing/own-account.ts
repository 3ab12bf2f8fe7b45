import type { Database } from "bun:sqlite";
import type { Tenant } from "../../../../src/domain/tenant.ts";
import type { Store } from "../../../../src/store/store.ts";

interface AccountRow {
  key: number;
  dueAt: number | null;
  version: number;
  verifiedAt: number | null;
}

const accountColumns = "key, due_at as dueAt, version, verified_at as verifiedAt";

/**
 * The store as the only account's: others are left from histories before, whose time was another.
 * @param commits so many there were; until the next one, what was read is not read again
 */
export function ownAccountOnly(store: Store, client: Database, commits: () => number) {
  let tenantKey = 0;
  let key = 0;
  const findAccount = client.query<AccountRow, [number]>(
    `select ${accountColumns} from billing_account where tenant_key = ?1`,
  );
  /** Of a deleted tenant, too. */
  const readAccount = client.query<AccountRow, [number]>(
    `select ${accountColumns} from billing_account where key = ?1`,
  );
  const token = client.query<{ token: string }, [number]>(
    "select token from card_verification where account_key = ?1 and state = 'open'",
  );
  const readTenant = client.query<Tenant, [number]>(
    `select key, id, tier, email, enforced_tier as enforcedTier, operator_suspended_at as operatorSuspendedAt,
       payment_suspended_at as paymentSuspendedAt, past_due_at as pastDueAt
     from tenant where key = ?1 and deleted_at is null`,
  );
  const untilCommit = <T>(read: () => T) => {
    let readAt = -1;
    let value: T;
    return (): T => {
      if (readAt !== commits()) value = read();
      readAt = commits();
      return value;
    };
  };
  const tenant = untilCommit(() => readTenant.get(tenantKey));
  const account = untilCommit(() => {
    const row = key === 0 ? findAccount.get(tenantKey) : readAccount.get(key);
    key = row?.key ?? 0;
    return row;
  });
  const accountKey = () => account()?.key ?? 0;
  return {
    watch(of: number) {
      tenantKey = of;
    },
    tenantKey: () => tenantKey,
    accountKey,
    dueAt: () => account()?.dueAt ?? null,
    isVerified: () => account()?.verifiedAt != null,
    openToken: () => token.get(accountKey())?.token ?? null,
    tenant,
    store: {
      ...store,
      async dueAccounts(now: number) {
        const { key = 0, dueAt: at = null, version = 0 } = account() ?? {};
        const isDue = at !== null && at <= now;
        return { accounts: isDue ? [{ key, version }] : [], nextAt: isDue ? null : at };
      },
    } satisfies Store,
  };
}

export type OwnAccount = ReturnType<typeof ownAccountOnly>;
