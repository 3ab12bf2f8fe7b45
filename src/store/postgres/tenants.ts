import { and, count, desc, eq, isNull, sql } from "drizzle-orm";
import { changed } from "../../domain/change.ts";
import { emailTaken } from "../../domain/standing.ts";
import type { Tenant, TenantChange } from "../../domain/tenant.ts";
import {
  isTaken,
  loginEmailOf,
  replacePassword,
  toEmail,
  toPassword,
  toSuspended,
  toTier,
} from "../../domain/tenant-change.ts";
import { openMonth } from "../../domain/tenant-state.ts";
import type { TenantVerbs } from "../store.ts";
import type { Connection } from "./connection.ts";
import { countersOf, lockTenant, tenantColumns } from "./held-tenants.ts";
import { livingTenants } from "./living-tenants.ts";
import * as t from "./schema.ts";
import { changeTenant, holderOf } from "./tenant-rows.ts";

export function tenantVerbs({
  pool,
  writes,
}: Connection): Omit<TenantVerbs, "eraseDeleted" | "releaseUnverifiedEmail"> {
  const { db } = pool;
  const byId = db
    .select(tenantColumns)
    .from(t.tenant)
    .where(and(eq(t.tenant.id, sql.placeholder("id")), isNull(t.tenant.deletedAt)))
    .prepare("tenant_by_id");
  const byLoginEmail = db
    .select(tenantColumns)
    .from(t.tenant)
    .where(and(eq(t.tenant.loginEmail, sql.placeholder("email")), isNull(t.tenant.deletedAt)))
    .prepare("tenant_by_login_email");

  const forTenant = livingTenants({ writes });

  const change = (tenantKey: number, decide: (tenant: Tenant) => TenantChange) =>
    forTenant(tenantKey, async (held, tx) => {
      await changeTenant(tx, held, decide(held.tenant));
      return held.tenant;
    });

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

    findTenant: async (id) => (await byId.execute({ id }))[0] ?? null,
    findTenantByLoginEmail: async (email) => (await byLoginEmail.execute({ email }))[0] ?? null,

    async listTenants({ offset, limit }) {
      const alive = isNull(t.tenant.deletedAt);
      const [tenants, [counted]] = await Promise.all([
        db.select(tenantColumns).from(t.tenant).where(alive).orderBy(desc(t.tenant.key)).limit(limit).offset(offset),
        db.select({ total: count() }).from(t.tenant).where(alive),
      ]);
      return { tenants, total: counted?.total ?? 0 };
    },

    async usage(tenantKey, now) {
      const counters = await countersOf({ run: pool.read }, tenantKey);
      return { eventsThisMonth: openMonth(counters, now).eventsInMonth };
    },

    setTier: (tenantKey, tier) =>
      forTenant(tenantKey, async (held, tx) => {
        const decision = toTier(held.tenant, tier, await holderOf(tx, loginEmailOf(tier, held.tenant.email)));
        if (decision.kind === "refused") throw decision.error;
        await changeTenant(tx, held, decision.change);
        return held.tenant;
      }),

    suspend: (tenantKey, cause, now) => change(tenantKey, () => toSuspended(cause, now)),
    resume: (tenantKey, cause) => change(tenantKey, () => toSuspended(cause, null)),
    changeEmail: (tenantKey, email) =>
      forTenant(tenantKey, async (held, tx) => {
        const decision = toEmail(held.tenant, email, await holderOf(tx, loginEmailOf(held.tenant.tier, email)));
        if (decision.kind === "refused") throw decision.error;
        await changeTenant(tx, held, decision.change);
        return held.tenant;
      }),
    setPassword: (tenantKey, passwordHash) => change(tenantKey, (tenant) => toPassword(tenant, passwordHash)),
    replacePassword: (tenantKey, verified, passwordHash) =>
      forTenant(tenantKey, async (held, tx) => {
        const replaced = replacePassword(held.tenant, verified, passwordHash);
        if (!replaced) return null;
        await changeTenant(tx, held, replaced);
        return held.tenant;
      }),

    deleteTenant: (tenantKey, now) =>
      writes.submit(async (tx) => {
        const tenant = await lockTenant(tx, tenantKey);
        if (!tenant) return;
        await tx.db.update(t.tenant).set({ deletedAt: now, loginEmail: null }).where(eq(t.tenant.key, tenantKey));
        tx.changed({ ...changed(tenant), kind: "account_deleted" });
      }),
  };
}
