import { refusalOfWrite } from "../../domain/standing.ts";
import type { Connection } from "./connection.ts";
import { type LaneTransaction, type Refusal, refuse } from "./lane.ts";
import type { TenantPage } from "./tenant-page.ts";

/** Writes for a tenant that must still exist. */
export const livingTenants =
  ({ lane, pages }: Pick<Connection, "lane" | "pages">) =>
  <T>(tenantKey: number, write: (page: TenantPage, tx: LaneTransaction) => T | Refusal): Promise<T> =>
    lane.submit<T>((tx) => {
      const page = pages(tx, tenantKey);
      const refusal = refusalOfWrite(page);
      return refusal ? refuse(refusal) : write(page, tx);
    });
