import type { Act } from "../../domain/audit.ts";
import { refusalOfWrite } from "../../domain/standing.ts";
import type { Connection } from "./connection.ts";
import type { HeldTenant } from "./held-tenants.ts";
import { Refusal, refuse, type WriteTransaction } from "./transaction.ts";

/** Writes for a tenant that must still exist, and records the act; null means that nothing was done. */
export const livingTenants =
  ({ writer, hold, audit }: Pick<Connection, "writer" | "hold" | "audit">) =>
  <T>(
    tenantKey: number,
    act: Act | undefined,
    write: (held: HeldTenant, tx: WriteTransaction) => T | Refusal,
  ): Promise<T> =>
    writer.submit<T>((tx) => {
      const held = hold(tx, tenantKey);
      const refusal = refusalOfWrite(held);
      if (refusal) return refuse(refusal);
      const result = write(held, tx);
      if (act && result !== null && !(result instanceof Refusal)) audit.note(tx, held.tenant.id, act);
      return result;
    });
