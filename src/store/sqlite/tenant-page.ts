import { and, asc, eq, isNull, sql } from "drizzle-orm";
import type { BunSQLiteDatabase } from "drizzle-orm/bun-sqlite";
import type { Tenant, Webhook } from "../../domain.ts";
import type { LaneTransaction } from "./lane.ts";
import * as t from "./schema.ts";

/** A UTC calendar month as a number, 202611 (decisions, section 2: months of quotas are UTC). */
export function utcMonth(now: number): number {
  const date = new Date(now);
  return date.getUTCFullYear() * 100 + date.getUTCMonth() + 1;
}

/**
 * What a transaction knows of one tenant. A batch of a hundred jobs reads each tenant once and writes its counters once,
 * just before the commit. Whoever changes a tenant or its webhooks changes the page as well, for the jobs that follow.
 */
export interface TenantPage {
  /** The tenant was deleted, or never was. */
  gone: boolean;
  tenant: Tenant;
  webhooks: Webhook[];
  month: number;
  eventsInMonth: number;
  events: number;
  pending: number;
  delivered: number;
  failed: number;
}

/** The page of a tenant in a transaction. */
export type TenantPages = (tx: LaneTransaction, tenantKey: number) => TenantPage;

export const tenantColumns = {
  key: t.tenant.key,
  id: t.tenant.id,
  name: t.tenant.name,
  email: t.tenant.email,
  tier: t.tenant.tier,
  enforcedTier: t.tenant.enforcedTier,
  passwordHash: t.tenant.passwordHash,
  sessionVersion: t.tenant.sessionVersion,
  createdAt: t.tenant.createdAt,
  operatorSuspendedAt: t.tenant.operatorSuspendedAt,
  paymentSuspendedAt: t.tenant.paymentSuspendedAt,
  pastDueAt: t.tenant.pastDueAt,
};

export function createTenantPages(db: BunSQLiteDatabase): TenantPages {
  const readTenant = db
    .select({
      tenant: tenantColumns,
      deletedAt: t.tenant.deletedAt,
      month: t.tenantUsage.month,
      eventsInMonth: t.tenantUsage.eventsInMonth,
      events: t.tenantUsage.events,
      pending: t.tenantUsage.pending,
      delivered: t.tenantUsage.delivered,
      failed: t.tenantUsage.failed,
    })
    .from(t.tenantUsage)
    .innerJoin(t.tenant, eq(t.tenant.key, t.tenantUsage.tenantKey))
    .where(eq(t.tenantUsage.tenantKey, sql.placeholder("tenantKey")))
    .prepare();
  const readWebhooks = webhooksOf(db);
  const writeUsage = db
    .update(t.tenantUsage)
    .set({
      month: sql`${sql.placeholder("month")}`,
      eventsInMonth: sql`${sql.placeholder("eventsInMonth")}`,
      events: sql`${sql.placeholder("events")}`,
      pending: sql`${sql.placeholder("pending")}`,
      delivered: sql`${sql.placeholder("delivered")}`,
      failed: sql`${sql.placeholder("failed")}`,
    })
    .where(eq(t.tenantUsage.tenantKey, sql.placeholder("tenantKey")))
    .prepare();

  const books = new WeakMap<LaneTransaction, Map<number, TenantPage>>();

  function read(tenantKey: number): TenantPage {
    const row = readTenant.get({ tenantKey });
    if (!row) throw new Error(`There is no tenant with the key ${tenantKey}`);
    const { deletedAt, ...page } = row;
    return { gone: deletedAt !== null, ...page, webhooks: readWebhooks.all({ tenantKey }) };
  }

  return (tx, tenantKey) => {
    let book = books.get(tx);
    if (!book) {
      const opened = new Map<number, TenantPage>();
      book = opened;
      books.set(tx, opened);
      tx.beforeCommit(() => {
        for (const [key, page] of opened) if (!page.gone) writeUsage.run({ tenantKey: key, ...page });
      });
    }
    let page = book.get(tenantKey);
    if (!page) {
      page = read(tenantKey);
      book.set(tenantKey, page);
    }
    return page;
  };
}

/** The registered webhooks of a tenant, in the order in which they were given. */
export function webhooksOf(db: BunSQLiteDatabase) {
  return db
    .select({ key: t.webhook.key, id: t.webhook.id, url: t.webhook.url, name: t.webhook.name })
    .from(t.webhook)
    .where(and(eq(t.webhook.tenantKey, sql.placeholder("tenantKey")), isNull(t.webhook.removedAt)))
    .orderBy(asc(t.webhook.position))
    .prepare();
}
