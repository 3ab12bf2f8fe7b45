import { and, asc, eq, isNull } from "drizzle-orm";
import { refusalOfWrite } from "../../domain/standing.ts";
import type { Tenant } from "../../domain/tenant.ts";
import { type Counters, noEvents, type TenantState } from "../../domain/tenant-state.ts";
import { toWebhook } from "../webhook-rows.ts";
import { laneSlots } from "./event-schema.ts";
import type { Node } from "./nodes.ts";
import type { Transaction } from "./pool.ts";
import * as t from "./schema.ts";

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
  ownEventsPerMonth: t.tenant.ownEventsPerMonth,
  ownWebhooks: t.tenant.ownWebhooks,
  ownRetentionDays: t.tenant.ownRetentionDays,
  ownPayloadDays: t.tenant.ownPayloadDays,
  ownStorageBytes: t.tenant.ownStorageBytes,
  storageFullAt: t.tenant.storageFullAt,
};

const { key, id, url, name, eventTypes, ordered, paused, rateLimit, maxConcurrency, sealedHeaders } = t.webhook;
const { failingSince, goneInARow, toldAt, warnedAt, disabledAt, disabledReason } = t.webhook;
const settingColumns = { eventTypes, ordered, paused, rateLimit, maxConcurrency, sealedHeaders };
const standingColumns = { failingSince, goneInARow, toldAt, warnedAt, disabledAt, disabledReason };
export const webhookColumns = { key, id, url, name, ...settingColumns, ...standingColumns };

/** A tenant that a transaction has locked; a verb that changes it in the database must replace it here, too. */
export type HeldTenant = { -readonly [Field in keyof TenantState]: TenantState[Field] };

/** Stands in for a tenant that is gone, so that a late job sees the same thing whether its rows have been erased or not. */
const nobody: Tenant = {
  key: 0,
  id: "",
  name: "",
  email: "",
  tier: "free",
  enforcedTier: null,
  passwordHash: "",
  sessionVersion: 0,
  createdAt: 0,
  operatorSuspendedAt: null,
  paymentSuspendedAt: null,
  pastDueAt: null,
  ownEventsPerMonth: null,
  ownWebhooks: null,
  ownRetentionDays: null,
  ownPayloadDays: null,
  ownStorageBytes: null,
  storageFullAt: null,
};

const gone: TenantState = { gone: true, tenant: nobody, webhooks: [], counters: noEvents };

/**
 * Locks a tenant until the transaction ends: anyone who changes it, its webhooks or its credentials comes before or after.
 * Its counters are the sums of those of all lanes, which keep counting.
 */
export async function hold(tx: Transaction, tenantKey: number): Promise<HeldTenant> {
  const tenant = await lockTenant(tx, tenantKey);
  if (!tenant) return { ...gone };
  const rows = await tx.db
    .select({ ...webhookColumns, used: t.webhook.used })
    .from(t.webhook)
    .where(and(eq(t.webhook.tenantKey, tenantKey), isNull(t.webhook.removedAt)))
    .orderBy(asc(t.webhook.position));
  const webhooks = rows.map(({ used, ...row }) => ({ ...toWebhook(row), used }));
  return { gone: false, tenant, webhooks, counters: await countersOf(tx, tenantKey) };
}

/** Like `hold`, for the tenant alone. Null when it is gone. */
export async function lockTenant({ db }: Transaction, tenantKey: number): Promise<Tenant | null> {
  const [tenant] = await db
    .select(tenantColumns)
    .from(t.tenant)
    .where(and(eq(t.tenant.key, tenantKey), isNull(t.tenant.deletedAt)))
    .for("update");
  return tenant ?? null;
}

/** Like `hold`, for a tenant that must still exist. @throws unauthenticated `account_gone` */
export async function holdLiving(tx: Transaction, tenantKey: number): Promise<HeldTenant> {
  const held = await hold(tx, tenantKey);
  const refusal = refusalOfWrite(held);
  if (refusal) throw refusal;
  return held;
}

/** The sums of what each lane counts; the monthly ones are for the latest month that any lane is in. */
export async function countersOf({ run }: Pick<Transaction, "run">, tenantKey: number): Promise<Counters> {
  const [sums] = await run<Counters>(
    `select coalesce(max(month), 0) as month,
       coalesce(sum(used) filter (where month = latest), 0)::float8 as "eventsInMonth",
       coalesce(sum(events), 0)::float8 as events, coalesce(sum(pending), 0)::float8 as pending,
       coalesce(sum(delivered), 0)::float8 as delivered, coalesce(sum(failed), 0)::float8 as failed,
       coalesce(sum(skipped), 0)::float8 as skipped
     from (select *, max(month) over () as latest from usage where tenant_key = $1::bigint) of_tenant`,
    [tenantKey],
  );
  return sums ?? noEvents;
}

/** How much a verb adds to the counters of a tenant, or takes from them. */
export type CounterDelta = Partial<Pick<Counters, "events" | "pending" | "delivered" | "failed" | "skipped">>;

/** Where rare verbs count: a row of their own, that of a lane which the node does not write through. */
export const rareLane = laneSlots - 1;

/** Adds to the counters of a tenant, in the row reserved for this node's rare verbs. */
export async function count(tx: Transaction, node: Node, tenantKey: number, delta: CounterDelta): Promise<void> {
  const { events = 0, pending = 0, delivered = 0, failed = 0, skipped = 0 } = delta;
  await tx.run(
    `insert into usage as u (tenant_key, slot, month, used, granted, events, pending, delivered, failed, skipped)
     values ($1::bigint, $2::smallint, 0, 0, 0, $3::bigint, $4::bigint, $5::bigint, $6::bigint, $7::bigint)
     on conflict (tenant_key, slot) do update set events = u.events + excluded.events,
       pending = u.pending + excluded.pending, delivered = u.delivered + excluded.delivered,
       failed = u.failed + excluded.failed, skipped = u.skipped + excluded.skipped`,
    [tenantKey, node.slot * laneSlots + rareLane, events, pending, delivered, failed, skipped],
  );
}
