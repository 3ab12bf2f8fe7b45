import { accountGone } from "../../domain/standing.ts";
import type { Connection } from "./connection.ts";
import { type HeldTenant, lockTenant } from "./held-tenants.ts";
import type { WriteTransaction } from "./writes.ts";

/** Writes for a tenant that must still exist, and is locked meanwhile. */
export const livingTenants =
  ({ writes }: Pick<Connection, "writes">) =>
  <T>(tenantKey: number, write: (held: Pick<HeldTenant, "tenant">, tx: WriteTransaction) => Promise<T>): Promise<T> =>
    writes.submit(async (tx) => {
      const tenant = await lockTenant(tx, tenantKey);
      if (!tenant) throw accountGone();
      return write({ tenant }, tx);
    });
