import { and, count, desc, eq, isNull, type SQL, sql } from "drizzle-orm";
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
import { noEvents, openMonth } from "../../domain/tenant-state.ts";
import { openVerification, takeTier } from "../../domain/verifications.ts";
import { inAnyCase } from "../any-case.ts";
import type { TenantVerbs } from "../store.ts";
import { toColumns } from "../webhook-rows.ts";
import type { Connection } from "./connection.ts";
import { tenantColumns } from "./held-tenants.ts";
import { livingTenants } from "./living-tenants.ts";
import * as t from "./schema.ts";
import { createTenantRows } from "./tenant-rows.ts";
import { refuse } from "./transaction.ts";

function contains(words: SQL, search: string): SQL {
  // A pattern ends there. Nothing that is stored has it.
  if (search.includes("\0")) return sql`false`;
  const parts = inAnyCase(search).map((cases) => (/^[*?[]$|../u.test(cases) ? `[${cases}]` : cases));
  return sql`${words} glob ${`*${parts.join("")}*`}`;
}

export function tenantVerbs({
  client,
  db,
  writer,
  hold,
  billing,
  books,
  audit,
}: Connection): Omit<TenantVerbs, "eraseDeleted"> {
  const rows = createTenantRows(client);
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

  const forTenant = livingTenants({ writer, hold, audit });

  const change = (tenantKey: number, act: Act | undefined, decide: (tenant: Tenant) => TenantChange) =>
    forTenant<Tenant>(tenantKey, act, (held, tx) => {
      rows.change(tx, held, decide(held.tenant));
      books.recordPlan(held.tenant, tx.now);
      return held.tenant;
    });

  return {
    createTenant: (tenant, now, act) =>
      writer.submit<Tenant>((tx) => {
        if (isTaken(rows.keeperOf(tenant.loginEmail, tx.now), null)) return refuse(emailTaken());
        if (tenant.loginEmail !== null) rows.takeLogin(tenant.loginEmail, null, tx.now);
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
            .values({ ...toColumns(webhook), tenantKey, position, createdAt: now, used: false })
            .run();
        });
        if (verification) {
          const file = books.load(tx, billing.openAccount(tenantKey, verification.accountId).key);
          books.write(file, openVerification(file, verification.token, null, now), now);
        }
        if (act) audit.note(tx, created.id, act);
        return created;
      }),

    findTenant: async (id) => byId.get({ id }) ?? null,
    findTenantByLoginEmail: async (email) => byLoginEmail.get({ email }) ?? null,

    async listTenants({ offset, limit, search = "" }) {
      const words = sql`lower(${t.tenant.id} || ' ' || ${t.tenant.name} || ' ' || ${t.tenant.email})`;
      const alive = and(isNull(t.tenant.deletedAt), search === "" ? undefined : contains(words, search));
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

    setTier: (tenantKey, tier, act) =>
      forTenant<Tenant>(tenantKey, act, (held, tx) => {
        const decision = toTier(held.tenant, tier, rows.holderOf(loginEmailOf(tier, held.tenant.email)));
        if (decision.kind === "refused") return refuse(decision.error);
        const account = billing.accountOf(tenantKey);
        const file = account && books.load(tx, account.key);
        if (file) books.write(file, takeTier(file, decision.change, tx.now), tx.now);
        else rows.change(tx, held, decision.change);
        return held.tenant;
      }),

    setLimits: (tenantKey, limits, act) => change(tenantKey, act, (tenant) => toOwnLimits(tenant, limits)),
    suspend: (tenantKey, cause, now, act) => change(tenantKey, act, () => toSuspended(cause, now)),
    resume: (tenantKey, cause, act) => change(tenantKey, act, () => toSuspended(cause, null)),
    changeEmail: (tenantKey, email, act) =>
      forTenant<Tenant>(tenantKey, act, (held, tx) => {
        const decision = toEmail(held.tenant, email, rows.keeperOf(loginEmailOf(held.tenant.tier, email), tx.now));
        if (decision.kind === "refused") return refuse(decision.error);
        rows.change(tx, held, decision.change);
        return held.tenant;
      }),
    setPassword: (tenantKey, passwordHash, act) => change(tenantKey, act, (tenant) => toPassword(tenant, passwordHash)),
    replacePassword: (tenantKey, verified, passwordHash, act) =>
      forTenant<Tenant | null>(tenantKey, act, (held, tx) => {
        const replaced = replacePassword(held.tenant, verified, passwordHash);
        if (!replaced) return null;
        rows.change(tx, held, replaced);
        return held.tenant;
      }),

    deleteTenant: (tenantKey, now, act) =>
      writer.submit<void>((tx) => {
        const held = hold(tx, tenantKey);
        if (held.gone) return;
        held.gone = true;
        db.update(t.tenant).set({ deletedAt: now, loginEmail: null }).where(eq(t.tenant.key, tenantKey)).run();
        tx.changed({ ...changed(held.tenant), kind: "account_deleted" });
        const account = billing.accountOf(tenantKey);
        const file = account && books.load(tx, account.key);
        if (file) books.write(file, leaveTenant(file, now), now);
        if (act) audit.note(tx, held.tenant.id, act);
      }),
  };
}
