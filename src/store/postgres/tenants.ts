import { and, count, desc, eq, isNull, sql } from "drizzle-orm";
import type { Act } from "../../domain/audit.ts";
import { changed } from "../../domain/change.ts";
import { leaveTenant } from "../../domain/invoices.ts";
import { toOwnLimits } from "../../domain/limits.ts";
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
import { openVerification, takeTier } from "../../domain/verifications.ts";
import { inAnyCase } from "../any-case.ts";
import type { TenantVerbs } from "../store.ts";
import { toColumns } from "../webhook-rows.ts";
import { noteAct } from "./audit.ts";
import type { Connection } from "./connection.ts";
import { countersOf, lockTenant, tenantColumns } from "./held-tenants.ts";
import { livingTenants } from "./living-tenants.ts";
import { loadBooksOf, openBooksOf, recordPlan, writeBooks } from "./open-books.ts";
import * as t from "./schema.ts";
import { changeTenant, holderOf, lockKeeper, takeLogin } from "./tenant-rows.ts";

const regexOf = (search: string): string =>
  inAnyCase(search)
    .map((cases) => (/../u.test(cases) ? `[${cases}]` : cases.replace(/[\\^$.|?*+()[\]{}]/, "\\$&")))
    .join("");

export function tenantVerbs({ pool, writes }: Connection): Omit<TenantVerbs, "eraseDeleted"> {
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

  const change = (tenantKey: number, act: Act | undefined, decide: (tenant: Tenant) => TenantChange) =>
    forTenant(tenantKey, act, async (held, tx) => {
      await changeTenant(tx, held, decide(held.tenant));
      await recordPlan(tx, held.tenant, tx.now);
      return held.tenant;
    });

  return {
    createTenant: (tenant, now, act) =>
      writes.submit(async (tx) => {
        if (isTaken(await lockKeeper(tx, tenant.loginEmail), null)) throw emailTaken();
        if (tenant.loginEmail !== null) await takeLogin(tx, tenant.loginEmail, null);
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
          const row = { ...toColumns(webhook), tenantKey, position, createdAt: now, used: false };
          await tx.db.insert(t.webhook).values(row);
        }
        if (verification) {
          const file = await openBooksOf(tx, tenantKey, { tenant: created }, verification.accountId);
          await writeBooks(file, openVerification(file, verification.token, null, now), now);
        }
        if (act) await noteAct(tx, created.id, act);
        return created;
      }),

    findTenant: async (id) => (await byId.execute({ id }))[0] ?? null,
    findTenantByLoginEmail: async (email) => (await byLoginEmail.execute({ email }))[0] ?? null,

    async listTenants({ offset, limit, search = "" }) {
      const words = sql`lower((${t.tenant.id} || ' ' || ${t.tenant.name} || ' ' || ${t.tenant.email}) collate "C")`;
      const alive = and(
        isNull(t.tenant.deletedAt),
        search === "" ? undefined : sql`${words} ~ ${regexOf(search)}::text`,
      );
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

    setTier: (tenantKey, tier, act) =>
      forTenant(tenantKey, act, async (held, tx) => {
        const decision = toTier(held.tenant, tier, await holderOf(tx, loginEmailOf(tier, held.tenant.email)));
        if (decision.kind === "refused") throw decision.error;
        const file = await loadBooksOf(tx, tenantKey, held);
        if (file) await writeBooks(file, takeTier(file, decision.change, tx.now), tx.now);
        else await changeTenant(tx, held, decision.change);
        return held.tenant;
      }),

    setLimits: (tenantKey, limits, act) => change(tenantKey, act, (tenant) => toOwnLimits(tenant, limits)),
    suspend: (tenantKey, cause, now, act) => change(tenantKey, act, () => toSuspended(cause, now)),
    resume: (tenantKey, cause, act) => change(tenantKey, act, () => toSuspended(cause, null)),
    changeEmail: (tenantKey, email, act) =>
      forTenant(tenantKey, act, async (held, tx) => {
        const decision = toEmail(held.tenant, email, await lockKeeper(tx, loginEmailOf(held.tenant.tier, email)));
        if (decision.kind === "refused") throw decision.error;
        await changeTenant(tx, held, decision.change);
        return held.tenant;
      }),
    setPassword: (tenantKey, passwordHash, act) => change(tenantKey, act, (tenant) => toPassword(tenant, passwordHash)),
    replacePassword: (tenantKey, verified, passwordHash, act) =>
      forTenant(tenantKey, act, async (held, tx) => {
        const replaced = replacePassword(held.tenant, verified, passwordHash);
        if (!replaced) return null;
        await changeTenant(tx, held, replaced);
        return held.tenant;
      }),

    deleteTenant: (tenantKey, now, act) =>
      writes.submit(async (tx) => {
        const tenant = await lockTenant(tx, tenantKey);
        if (!tenant) return;
        await tx.db.update(t.tenant).set({ deletedAt: now, loginEmail: null }).where(eq(t.tenant.key, tenantKey));
        tx.changed({ ...changed(tenant), kind: "account_deleted" });
        const file = await loadBooksOf(tx, tenantKey, null);
        if (file) await writeBooks(file, leaveTenant(file, now), now);
        if (act) await noteAct(tx, tenant.id, act);
      }),
  };
}
