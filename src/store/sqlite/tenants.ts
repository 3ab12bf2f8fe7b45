import { and, count, desc, eq, isNull, lte, or, sql } from "drizzle-orm";
import type { BunSQLiteDatabase } from "drizzle-orm/bun-sqlite";
import { accountGone, emailTaken } from "../../domain/standing.ts";
import type { SuspensionCause, Tenant } from "../../domain/tenant.ts";
import { noEvents, openMonth } from "../../domain/tenant-state.ts";
import type { TenantVerbs } from "../store.ts";
import { billingAccount, cardVerification } from "./billing-schema.ts";
import type { Connection } from "./connection.ts";
import { refuse } from "./lane.ts";
import * as t from "./schema.ts";
import { type TenantPage, tenantColumns } from "./tenant-page.ts";

const suspensionColumn = { operator: "operatorSuspendedAt", payment: "paymentSuspendedAt" } as const satisfies Record<
  SuspensionCause,
  string
>;

type TenantValues = Parameters<ReturnType<typeof updateTenant>["set"]>[0];

const updateTenant = (db: BunSQLiteDatabase) => db.update(t.tenant);

/** Writes changes of a living tenant to its row and its page; nothing to change is no write. */
export function changeTenant(db: BunSQLiteDatabase, page: TenantPage, values: TenantValues): void {
  if (Object.keys(values).length === 0) return;
  page.tenant = updateTenant(db).set(values).where(eq(t.tenant.key, page.tenant.key)).returning(tenantColumns).get();
}

/** An upgrade has come to nothing: the plan in force is the account's again, and a free one's e-mail is no login. */
export function returnToPlanInForce(db: BunSQLiteDatabase, page: TenantPage): void {
  const { enforcedTier, tier } = page.tenant;
  if (enforcedTier === null || enforcedTier === tier) return;
  changeTenant(db, page, { tier: enforcedTier, ...(enforcedTier === "free" && { loginEmail: null }) });
}

/** Whether an address, in lower case, can become the login of this tenant. */
export function isEmailFree(db: BunSQLiteDatabase, loginEmail: string, tenantKey?: number): boolean {
  const holder = db.select({ key: t.tenant.key }).from(t.tenant).where(eq(t.tenant.loginEmail, loginEmail)).get();
  return holder === undefined || holder.key === tenantKey;
}

/**
 * Takes an address from an account that has asked for a paid plan and not verified a card since: it has proved
 * nothing, and the address may be somebody else's. It keeps its id to sign in with, and the address as a contact.
 */
function releaseEmail(
  db: BunSQLiteDatabase,
  pageOf: (tenantKey: number) => TenantPage,
  email: string,
  unverifiedSince: number,
) {
  const holder = db
    .select({ key: t.tenant.key })
    .from(t.tenant)
    .innerJoin(billingAccount, eq(billingAccount.tenantKey, t.tenant.key))
    .innerJoin(cardVerification, eq(cardVerification.accountKey, billingAccount.key))
    .where(
      and(
        eq(t.tenant.loginEmail, email),
        // Not one that the operator vouches for.
        or(isNull(t.tenant.enforcedTier), eq(t.tenant.enforcedTier, "free")),
        isNull(billingAccount.verifiedAt),
        eq(cardVerification.state, "open"),
        lte(cardVerification.createdAt, unverifiedSince),
      ),
    )
    .get();
  if (!holder) return null;
  const page = pageOf(holder.key);
  changeTenant(db, page, { loginEmail: null });
  return page.tenant;
}

export function tenantVerbs({ db, lane, pages, billing }: Connection): Omit<TenantVerbs, "eraseDeleted"> {
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

  /** What has changed may begin or end the days that are charged. */
  function recordPlan(page: TenantPage, now: number): void {
    const account = billing.accountOf(page.tenant.key);
    if (account) billing.recordPlan(account, page.tenant, now);
  }

  /** Changes a living tenant; a deleted one is gone. */
  const change = (tenantKey: number, values: TenantValues) =>
    lane.submit<Tenant>((tx) => {
      const page = pages(tx, tenantKey);
      if (page.gone) return refuse(accountGone());
      changeTenant(db, page, values);
      recordPlan(page, tx.now);
      return page.tenant;
    });

  const newPassword = (passwordHash: string) => ({
    passwordHash,
    sessionVersion: sql`${t.tenant.sessionVersion} + 1`,
  });

  return {
    createTenant: (tenant, now) =>
      lane.submit<Tenant>(() => {
        if (tenant.loginEmail !== null && !isEmailFree(db, tenant.loginEmail)) return refuse(emailTaken());
        const { apiKey, signingKey, sealedSigningSecret, webhooks, verification, ...columns } = tenant;
        const created = db
          .insert(t.tenant)
          .values({ ...columns, createdAt: now })
          .returning(tenantColumns)
          .get();
        const tenantKey = created.key;
        db.insert(t.tenantUsage)
          .values({ tenantKey, ...openMonth(noEvents, now) })
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
            .values({ ...webhook, tenantKey, position, createdAt: now, used: false })
            .run();
        });
        if (verification) {
          const account = billing.openAccount(tenantKey, verification.accountId);
          billing.openVerification(account.key, verification.token, now);
          billing.touch(account.key, now);
        }
        return created;
      }),

    findTenant: async (id) => byId.get({ id }) ?? null,
    releaseUnverifiedEmail: (email, unverifiedSince) =>
      lane.submit<Tenant | null>((tx) => releaseEmail(db, (tenantKey) => pages(tx, tenantKey), email, unverifiedSince)),
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
      return { eventsThisMonth: openMonth({ ...noEvents, ...found }, now).eventsInMonth };
    },

    setTier: (tenantKey, tier) =>
      lane.submit<Tenant>((tx) => {
        const page = pages(tx, tenantKey);
        if (page.gone) return refuse(accountGone());
        const loginEmail = tier === "free" ? null : page.tenant.email.toLowerCase();
        if (loginEmail !== null && !isEmailFree(db, loginEmail, tenantKey)) return refuse(emailTaken());
        changeTenant(db, page, { tier, enforcedTier: tier, loginEmail });
        const account = billing.accountOf(tenantKey);
        if (account) {
          // A plan that is not paid by card leaves nothing to verify.
          if (tier === "free" || tier === "enterprise") billing.closeVerification(account.key, tx.now);
          billing.recordPlan(account, page.tenant, tx.now);
          billing.touch(account.key, tx.now);
        }
        return page.tenant;
      }),

    suspend: (tenantKey, cause, now) => change(tenantKey, { [suspensionColumn[cause]]: now }),
    resume: (tenantKey, cause) => change(tenantKey, { [suspensionColumn[cause]]: null }),
    changeEmail: (tenantKey, email) =>
      lane.submit<Tenant>((tx) => {
        const page = pages(tx, tenantKey);
        if (page.gone) return refuse(accountGone());
        const loginEmail = page.tenant.tier === "free" ? null : email.toLowerCase();
        if (loginEmail !== null && !isEmailFree(db, loginEmail, tenantKey)) return refuse(emailTaken());
        changeTenant(db, page, { email, loginEmail });
        return page.tenant;
      }),
    setPassword: (tenantKey, passwordHash) => change(tenantKey, newPassword(passwordHash)),
    replacePassword: (tenantKey, verified, passwordHash) =>
      lane.submit<Tenant | null>((tx) => {
        const page = pages(tx, tenantKey);
        if (page.gone) return refuse(accountGone());
        if (page.tenant.passwordHash !== verified) return null;
        changeTenant(db, page, newPassword(passwordHash));
        return page.tenant;
      }),

    deleteTenant: (tenantKey, now) =>
      lane.submit<void>((tx) => {
        const page = pages(tx, tenantKey);
        if (page.gone) return;
        page.gone = true;
        db.update(t.tenant).set({ deletedAt: now, loginEmail: null }).where(eq(t.tenant.key, tenantKey)).run();
        const account = billing.accountOf(tenantKey);
        if (account) billing.leaveTenant(account, now);
      }),
  };
}
