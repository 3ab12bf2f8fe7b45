import { sql } from "drizzle-orm";
import { emailTaken } from "../../domain/standing.ts";
import { isTaken } from "../../domain/tenant-change.ts";
import type { TenantVerbs } from "../store.ts";
import type { Connection } from "./connection.ts";
import { tenantColumns } from "./held-tenants.ts";
import type { Transaction } from "./pool.ts";
import * as t from "./schema.ts";

export function tenantVerbs({ writes }: Connection): Pick<TenantVerbs, "createTenant"> {
  return {
    createTenant: (tenant, now) =>
      writes.submit(async (tx) => {
        if (isTaken(await holderOf(tx, tenant.loginEmail), null)) throw emailTaken();
        const { apiKey, signingKey, sealedSigningSecret, webhooks, verification, ...columns } = tenant;
        const [created] = await tx.db
          .insert(t.tenant)
          .values({ ...columns, createdAt: now })
          .returning(tenantColumns);
        if (!created) throw new Error("A tenant that was inserted was not returned");
        const tenantKey = created.key;
        await tx.db.insert(t.apiKey).values({ tenantKey, createdAt: now, ...apiKey });
        await tx.db.insert(t.signingKey).values({ tenantKey, activatesAt: now, ...signingKey });
        await tx.db.insert(t.signingSecret).values({ tenantKey, sealed: sealedSigningSecret, createdAt: now });
        for (const [position, webhook] of webhooks.entries()) {
          await tx.db.insert(t.webhook).values({ ...webhook, tenantKey, position, createdAt: now, used: false });
        }
        if (verification) throw new Error("TODO: payments");
        return created;
      }),
  };
}

/** The tenant that has this login; null when none has it. */
export async function holderOf({ db }: Pick<Transaction, "db">, loginEmail: string | null): Promise<number | null> {
  if (loginEmail === null) return null;
  const [row] = await db
    .select({ key: t.tenant.key })
    .from(t.tenant)
    .where(sql`${t.tenant.loginEmail} = ${loginEmail}`);
  return row?.key ?? null;
}
