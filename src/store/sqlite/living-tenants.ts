import { refusalOfWrite } from "../../domain/standing.ts";
import type { Connection } from "./connection.ts";
import type { HeldTenant } from "./held-tenants.ts";
import { type Refusal, refuse, type WriteTransaction } from "./writer.ts";

/** Writes for a tenant that must still exist. */
export const livingTenants =
  ({ writer, hold }: Pick<Connection, "writer" | "hold">) =>
  <T>(tenantKey: number, write: (held: HeldTenant, tx: WriteTransaction) => T | Refusal): Promise<T> =>
    writer.submit<T>((tx) => {
      const held = hold(tx, tenantKey);
      const refusal = refusalOfWrite(held);
      return refusal ? refuse(refusal) : write(held, tx);
    });
