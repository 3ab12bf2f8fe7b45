import { and, count, desc, eq, getTableColumns, gte, lte } from "drizzle-orm";
import { type Act, type AuditActor, auditLimits, isCounted, mostOfOperator } from "../../domain/audit.ts";
import { type AuditVerbs, countedAudit, countedUpTo, toAuditEntry } from "../audit.ts";
import { audit } from "./audit-schema.ts";
import type { Connection } from "./connection.ts";
import type { WriteTransaction } from "./writes.ts";

const countAgainText = `update audit set times = times + $7::int, last_at = $5::bigint where key = (
  select key from audit where tenant_id = $1 and at > $6::bigint and action = $2 and actor = $3
    and address is not distinct from $4::text
  order by at desc limit 1) returning 1`;

const strangersOfLateText =
  "select count(*)::int as n from audit where actor = 'stranger' and tenant_id = $1 and at > $2::bigint";

const trimTextOf = (actor: AuditActor) => `delete from audit where key = any(array(
  select key from audit where actor = '${actor}' and tenant_id = $1 order by at desc, key desc offset $2::int))`;
const trimStrangersText = trimTextOf("stranger");
const trimOperatorText = trimTextOf("operator");
/** Counts in the index, and starts with the oldest: to tell whose each entry is takes a look at its row. */
const trimText = `delete from audit where key = any(array(
  select key from audit where tenant_id = $1 and actor <> 'operator' order by at, key
  limit greatest(0, (select count(*) from audit where tenant_id = $1) - $2::int)))`;

/**
 * Notes an act in the transaction that performs it. Two nodes that count the same act at the same time may make two entries.
 * @param tenantId empty: the act is about the server
 */
export async function noteAct(tx: WriteTransaction, tenantId: string, act: Act, times = 1): Promise<void> {
  const { action, actor, via, detail } = act;
  const { now } = tx;
  const since = now - auditLimits.windowMs;
  const isAgain = async (address: string | null) =>
    (await tx.run(countAgainText, [tenantId, action, actor, address, now, since, times])).length > 0;
  let { address } = act;
  if (isCounted(act) && (await isAgain(address))) return;
  if (actor === "stranger") {
    const [ofLate] = await tx.run<{ n: number }>(strangersOfLateText, [tenantId, since]);
    if ((ofLate?.n ?? 0) >= auditLimits.strangersAtOnce) {
      address = null;
      if (await isAgain(address)) return;
    }
  }
  const row = { tenantId, action, actor, via, address, times, at: now, lastAt: now };
  await tx.db.insert(audit).values({ ...row, detail: detail ? JSON.stringify(detail) : null });
  if (actor === "stranger") await tx.run(trimStrangersText, [tenantId, auditLimits.ofStrangers]);
  if (actor === "operator") await tx.run(trimOperatorText, [tenantId, mostOfOperator(tenantId)]);
  await tx.run(trimText, [tenantId, auditLimits.entries]);
}

export function auditVerbs({ pool, writes }: Connection): AuditVerbs {
  return {
    noteAct: (tenantId, act, times) =>
      writes.submit(async (tx) => {
        // Waits for a deletion in progress.
        const isLivingText = "select 1 from tenant where id = $1 and deleted_at is null for key share";
        if (tenantId !== null && (await tx.run(isLivingText, [tenantId])).length === 0) return;
        await noteAct(tx, tenantId ?? "", act, times);
      }),

    async audit({ tenantId, action, from, to, offset, limit }) {
      const where = and(
        ...(tenantId === undefined ? [] : [eq(audit.tenantId, tenantId)]),
        ...(action === undefined ? [] : [eq(audit.action, action)]),
        ...(from === undefined ? [] : [gte(audit.at, from)]),
        ...(to === undefined ? [] : [lte(audit.at, to)]),
      );
      const { key: _, ...columns } = getTableColumns(audit);
      const some = pool.db
        .select({ key: audit.key })
        .from(audit)
        .where(where)
        .limit(countedAudit + 1);
      const [rows, [counted]] = await Promise.all([
        pool.db
          .select(columns)
          .from(audit)
          .where(where)
          .orderBy(desc(audit.at), desc(audit.key))
          .limit(limit)
          .offset(offset),
        pool.db.select({ n: count() }).from(some.as("some")),
      ]);
      return { entries: rows.map(toAuditEntry), ...countedUpTo(counted?.n ?? 0) };
    },
  };
}
