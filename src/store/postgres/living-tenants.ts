import type { Connection } from "./connection.ts";
import { type HeldTenant, holdLiving } from "./held-tenants.ts";
import type { WriteTransaction } from "./writes.ts";

/** Writes for a tenant that must still exist, and is locked meanwhile. */
export const livingTenants =
  ({ writes }: Pick<Connection, "writes">) =>
  <T>(tenantKey: number, write: (held: HeldTenant, tx: WriteTransaction) => Promise<T>): Promise<T> =>
    writes.submit(async (tx) => write(await holdLiving(tx, tenantKey), tx));
