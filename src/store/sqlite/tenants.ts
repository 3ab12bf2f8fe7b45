import { and, count, desc, eq, isNull, sql } from "drizzle-orm";
import type { SuspensionCause, Tenant } from "../../domain.ts";
import { DomainError, invalid } from "../../errors.ts";
import type { TenantVerbs } from "../store.ts";
import type { Connection } from "./connection.ts";
import { refuse } from "./lane.ts";
import * as t from "./schema.ts";
import { tenantColumns, utcMonth } from "./tenant-page.ts";

/** The account was deleted while the request was under way: its credential is no longer one. */
export const accountGone = () =>
  new DomainError({ kind: "unauthenticated", code: "account_gone", message: "The account no longer exists." });

const emailTaken = () =>
  invalid(
    "email is already the login of another paid account; use another one or log in to that account.",
    "email_taken",
  );

const suspensionColumn = { operator: "operatorSuspendedAt", payment: "paymentSuspendedAt" } as const satisfies Record<
  SuspensionCause,
  string
>;

export function tenantVerbs({ db, lane, pages }: Connection): Omit<TenantVerbs, "eraseDeleted"> {
  const byId = db
    .select(tenantColumns)
    .from(t.tenant)
    .where(and(eq(t.tenant.id, sql.placeholder("id")), isNull(t.tenant.deletedAt)))
    .prepare();
  const byLoginEmail = db
    .select(tenantColumns)
    .from(t.tenant)
    .where(and(eq(t.tenant.loginEmail, sql.placeholder("email")), isNull(t.tenant.deletedAt)))
    .prepare();
  const usageOf = db
    .select({ month: t.tenantUsage.month, eventsInMonth: t.tenantUsage.eventsInMonth })
    .from(t.tenantUsage)
    .where(eq(t.tenantUsage.tenantKey, sql.placeholder("tenantKey")))
    .prepare();

  /** Changes a living tenant; a deleted one is gone. */
  const change = (tenantKey: number, values: Parameters<ReturnType<typeof db.update<typeof t.tenant>>["set"]>[0]) =>
    lane.submit<Tenant>((tx) => {
      const page = pages(tx, tenantKey);
      if (page.gone) return refuse(accountGone());
      page.tenant = db.update(t.tenant).set(values).where(eq(t.tenant.key, tenantKey)).returning(tenantColumns).get();
      return page.tenant;
    });

  const isEmailFree = (loginEmail: string, tenantKey?: number) => {
    const holder = db.select({ key: t.tenant.key }).from(t.tenant).where(eq(t.tenant.loginEmail, loginEmail)).get();
    return holder === undefined || holder.key === tenantKey;
  };

  return {
    createTenant: (tenant, now) =>
      lane.submit<Tenant>(() => {
        if (tenant.loginEmail !== null && !isEmailFree(tenant.loginEmail)) return refuse(emailTaken());
        const { apiKey, signingKey, sealedSigningSecret, webhooks, ...columns } = tenant;
        const created = db
          .insert(t.tenant)
          .values({ ...columns, createdAt: now })
          .returning(tenantColumns)
          .get();
        const tenantKey = created.key;
        db.insert(t.tenantUsage)
          .values({ tenantKey, month: utcMonth(now), eventsInMonth: 0, events: 0, pending: 0, delivered: 0, failed: 0 })
          .run();
        db.insert(t.apiKey)
          .values({
            tenantKey,
            id: apiKey.id,
            hash: Buffer.from(apiKey.hash),
            sealed: Buffer.from(apiKey.sealed),
            createdAt: now,
          })
          .run();
        db.insert(t.signingKey)
          .values({
            tenantKey,
            id: signingKey.id,
            publicKey: Buffer.from(signingKey.publicKey),
            sealedSeed: Buffer.from(signingKey.sealedSeed),
            activatesAt: now,
          })
          .run();
        db.insert(t.signingSecret)
          .values({ tenantKey, sealed: Buffer.from(sealedSigningSecret), createdAt: now })
          .run();
        webhooks.forEach((webhook, position) => {
          db.insert(t.webhook)
            .values({ ...webhook, tenantKey, position, createdAt: now })
            .run();
        });
        return created;
      }),

    findTenant: async (id) => byId.get({ id }) ?? null,
    findTenantByLoginEmail: async (email) => byLoginEmail.get({ email }) ?? null,

    async listTenants({ offset, limit }) {
      const alive = isNull(t.tenant.deletedAt);
      const tenants = db
        .select(tenantColumns)
        .from(t.tenant)
        .where(alive)
        .orderBy(desc(t.tenant.key))
        .limit(limit)
        .offset(offset)
        .all();
      const total = db.select({ n: count() }).from(t.tenant).where(alive).get()?.n ?? 0;
      return { tenants, total };
    },

    async usage(tenantKey, now) {
      const found = usageOf.get({ tenantKey });
      return { eventsThisMonth: found && found.month >= utcMonth(now) ? found.eventsInMonth : 0 };
    },

    setTier: (tenantKey, tier) =>
      lane.submit<Tenant>((tx) => {
        const page = pages(tx, tenantKey);
        if (page.gone) return refuse(accountGone());
        const loginEmail = tier === "free" ? null : page.tenant.email.toLowerCase();
        if (loginEmail !== null && !isEmailFree(loginEmail, tenantKey)) return refuse(emailTaken());
        page.tenant = db
          .update(t.tenant)
          .set({ tier, enforcedTier: tier, loginEmail })
          .where(eq(t.tenant.key, tenantKey))
          .returning(tenantColumns)
          .get();
        return page.tenant;
      }),

    suspend: (tenantKey, cause, now) => change(tenantKey, { [suspensionColumn[cause]]: now }),
    resume: (tenantKey, cause) => change(tenantKey, { [suspensionColumn[cause]]: null }),
    setPassword: (tenantKey, passwordHash) =>
      change(tenantKey, { passwordHash, sessionVersion: sql`${t.tenant.sessionVersion} + 1` }),

    deleteTenant: (tenantKey, now) =>
      lane.submit<void>((tx) => {
        const page = pages(tx, tenantKey);
        if (page.gone) return;
        page.gone = true;
        db.update(t.tenant).set({ deletedAt: now, loginEmail: null }).where(eq(t.tenant.key, tenantKey)).run();
      }),
  };
}
