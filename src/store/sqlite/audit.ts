import { and, count, desc, eq, getTableColumns, gte, lte } from "drizzle-orm";
import { type AuditVerbs, countedAudit, countedUpTo, toAuditEntry } from "../audit.ts";
import { audit } from "./audit-schema.ts";
import type { Connection } from "./connection.ts";

export function auditVerbs({ client, db, writer, audit: log }: Connection): AuditVerbs {
  const isLiving = client.prepare("select 1 from tenant where id = ?1 and deleted_at is null");

  return {
    noteAct: (tenantId, act, times) =>
      writer.submit<void>((tx) => {
        if (tenantId === null || isLiving.get(tenantId)) log.note(tx, tenantId ?? "", act, times);
      }),

    async audit({ tenantId, action, from, to, offset, limit }) {
      const where = and(
        ...(tenantId === undefined ? [] : [eq(audit.tenantId, tenantId)]),
        ...(action === undefined ? [] : [eq(audit.action, action)]),
        ...(from === undefined ? [] : [gte(audit.at, from)]),
        ...(to === undefined ? [] : [lte(audit.at, to)]),
      );
      const { key: _, ...columns } = getTableColumns(audit);
      const rows = db
        .select(columns)
        .from(audit)
        .where(where)
        .orderBy(desc(audit.at), desc(audit.key))
        .limit(limit)
        .offset(offset)
        .all();
      const some = db
        .select({ key: audit.key })
        .from(audit)
        .where(where)
        .limit(countedAudit + 1);
      const total = db.select({ n: count() }).from(some.as("some")).get()?.n ?? 0;
      return { entries: rows.map(toAuditEntry), ...countedUpTo(total) };
    },
  };
}
