import type { Act } from "../../domain/audit.ts";
import { accountGone } from "../../domain/standing.ts";
import { noteAct } from "./audit.ts";
import type { Connection } from "./connection.ts";
import { type HeldTenant, lockTenant } from "./held-tenants.ts";
import type { WriteTransaction } from "./writes.ts";

/**
 * Writes for a tenant that must still exist and stays locked meanwhile, and notes the act; null means that nothing was done.
 */
export const livingTenants =
  ({ writes }: Pick<Connection, "writes">) =>
  <T>(
    tenantKey: number,
    act: Act | undefined,
    write: (held: Pick<HeldTenant, "tenant">, tx: WriteTransaction) => Promise<T>,
  ): Promise<T> =>
    writes.submit(async (tx) => {
      const tenant = await lockTenant(tx, tenantKey);
      if (!tenant) throw accountGone();
      const result = await write({ tenant }, tx);
      if (act && result !== null) await noteAct(tx, tenant.id, act);
      return result;
    });
